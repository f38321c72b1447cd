"""Who may come in: tokens, the cookies and one-time codes made from them, and what each holder may do.

The gate asks here for every request; the session routes make cookies and codes here. A cookie is a statement signed with a
key derived from the owner's token, so it survives a restart and dies when the token is rotated. Must never log a secret,
compare one in variable time, or keep one in a form that could be shown.
"""

import hmac
import secrets
from base64 import urlsafe_b64encode
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from msgspec import Struct

from palaver.clock import Clock

Role = Literal["read", "send", "decide", "admin"]
Kind = Literal["owner", "human", "agent", "observer"]

ROLES: dict[Kind, frozenset[Role]] = {
    "owner": frozenset({"read", "send", "decide", "admin"}),
    "human": frozenset({"read", "send", "decide"}),
    # Never `decide`: an agent must not be able to approve what it asked for.
    "agent": frozenset({"read", "send"}),
    "observer": frozenset({"read"}),
}

CODE_LIFE_S = 60.0
"""Long enough to click the printed link, too short to be found in a scrollback."""
CODES_AT_ONCE = 16
FAILURES_A_MINUTE = 10
FAILURE_WINDOW_S = 60.0
PEERS_REMEMBERED = 1_000


class KeyRecord(Struct, frozen=True, kw_only=True):
    """A token beside the owner's, as `tokens.json` keeps it: the SHA-256 of its text, never the text."""

    name: str
    kind: Kind
    hash: str


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking. `key` tells tokens apart without giving anything away."""

    name: str
    kind: Kind
    key: str

    def may(self, role: Role) -> bool:
        return role in ROLES[self.kind]


def token_hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()


class SignedOut:
    """Hashes of cookies that were signed out. The composition root gives one that outlives the process."""

    def __init__(self) -> None:
        self._hashes: set[str] = set()

    def __contains__(self, cookie_hash: str) -> bool:
        return cookie_hash in self._hashes

    def add(self, cookie_hash: str) -> None:
        self._hashes.add(cookie_hash)


class Keys:
    def __init__(
        self, token: str, clock: Clock, others: Iterable[KeyRecord] = (), signed_out: SignedOut | None = None
    ) -> None:
        self._clock = clock
        self._codes: OrderedDict[str, tuple[float, Kind]] = OrderedDict()
        self._signed_out = signed_out or SignedOut()
        self._holders: dict[str, tuple[str, Principal]] = {}
        self._cookie_key = b""
        self.look_again: Callable[[], bool] = lambda: False
        """Whether there are other tokens than a moment ago: one that nobody knows may just have been made."""
        self.replace(token, others)

    def replace(self, token: str, others: Iterable[KeyRecord] = ()) -> None:
        """New tokens from now on: what the old ones signed is void."""
        records = [KeyRecord(name="owner", kind="owner", hash=token_hash(token)), *others]
        self._holders = {
            record.hash[:16]: (record.hash, Principal(record.name, record.kind, record.hash[:16])) for record in records
        }
        self._owner = self._holders[records[0].hash[:16]][1]
        cookie_key = hmac.digest(token.encode(), b"palaver cookie 1", "sha256")
        if cookie_key != self._cookie_key:
            # The owner's: a link that was just printed outlives a token that is made for somebody else.
            self._codes.clear()
        self._cookie_key = cookie_key

    @property
    def owner(self) -> Principal:
        return self._owner

    def holds(self, principal: Principal) -> bool:
        """Whether the key it came with is still one of ours."""
        return principal.key in self._holders

    def by_token(self, token: str) -> Principal | None:
        digest = token_hash(token)
        return self._holder(digest) or (self._holder(digest) if self.look_again() else None)

    def _holder(self, digest: str) -> Principal | None:
        found: Principal | None = None
        # All of them, always: the time taken says nothing about which one came close.
        for known, principal in self._holders.values():
            if hmac.compare_digest(known, digest):
                found = principal
        return found

    # -- cookies

    def cookie_for(self, principal: Principal) -> str:
        """Of a principal with fewer rights than its key's holder the cookie says so, under its signature."""
        held = self._holders.get(principal.key)
        lessened = f"{principal.kind}." if held and held[1].kind != principal.kind else ""
        statement = f"{principal.key}.{lessened}{secrets.token_urlsafe(16)}"
        return f"{statement}.{self._signature(statement)}"

    def by_cookie(self, cookie: str) -> Principal | None:
        statement, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(statement).encode()):
            return None
        if token_hash(cookie) in self._signed_out:
            return None
        key, *lessened, _ = statement.split(".")
        held = self._holders.get(key)
        return _with_kind(held[1], lessened[0] if lessened else held[1].kind) if held else None

    def end(self, cookie: str) -> None:
        """Sign out: this cookie is void from now on. Rotating the token voids all of them."""
        self._signed_out.add(token_hash(cookie))

    def _signature(self, statement: str) -> str:
        mac = hmac.digest(self._cookie_key, statement.encode(), "sha256")
        return urlsafe_b64encode(mac).rstrip(b"=").decode()

    # -- one-time codes

    def new_code(self, kind: Kind = "owner") -> str:
        """Signs the owner in once, within a minute; with another kind, with its rights alone."""
        code = secrets.token_urlsafe(24)
        self._codes[token_hash(code)] = (self._clock.monotonic_s() + CODE_LIFE_S, kind)
        while len(self._codes) > CODES_AT_ONCE:
            self._codes.popitem(last=False)
        return code

    def by_code(self, code: str) -> Principal | None:
        """Uses the code up."""
        # Looked up by hash: how far a guess got cannot be seen in the time it took.
        until_s, kind = self._codes.pop(token_hash(code), (0.0, "owner"))
        return _with_kind(self._owner, kind) if self._clock.monotonic_s() < until_s else None


def _with_kind(principal: Principal, kind: str) -> Principal | None:
    """The same person with these rights; nobody when they would be more."""
    for known, roles in ROLES.items():
        if known == kind and roles <= ROLES[principal.kind]:
            return Principal(principal.name, known, principal.key)
    return None


class Failures:
    """Wrong secrets a peer has shown lately."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._peers: OrderedDict[str, deque[float]] = OrderedDict()

    def add(self, peer: str) -> bool:
        """Counts one; true when it was one too many."""
        now_s = self._clock.monotonic_s()
        times = self._peers.setdefault(peer, deque(maxlen=FAILURES_A_MINUTE + 1))
        self._peers.move_to_end(peer)
        while len(self._peers) > PEERS_REMEMBERED:
            self._peers.popitem(last=False)
        times.append(now_s)
        return sum(now_s - time_s < FAILURE_WINDOW_S for time_s in times) > FAILURES_A_MINUTE
