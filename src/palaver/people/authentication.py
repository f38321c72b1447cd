"""Authentication: tokens, browser sessions (a cookie and a page key), one-time codes, and the roles of each holder.

The gate asks here for every request; the session routes make cookies and codes here. A cookie is a statement signed with a
key derived from the owner's token, so it survives a restart and dies when the token is rotated. It counts only together with
a proof of its page key: a browser sends cookies to every port of a host, but keeps the key in the storage of one origin, and
sends it nowhere. Must never log a secret, compare one in variable time, or keep one in a form that could be shown.
"""

import hmac
import secrets
from base64 import urlsafe_b64encode
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

from msgspec import Struct

from palaver.clock import Clock
from palaver.people.proofs import Challenges, Proof

Role = Literal["read", "send", "decide", "admin"]
Kind = Literal["owner", "human", "agent", "observer"]

ROLES: dict[Kind, frozenset[Role]] = {
    "owner": frozenset({"read", "send", "decide", "admin"}),
    "human": frozenset({"read", "send", "decide"}),
    # Never `decide`: an agent must not be able to approve what it asked for.
    "agent": frozenset({"read", "send"}),
    "observer": frozenset({"read"}),
}

COOKIE_LIFE_S = 30 * 86_400
"""A month without a visit signs a browser out; every visit begins it anew. By wall time: it outlives the process."""
SIGN_OUTS_A_KEY = 1_000
"""Remembered one by one. More in a month are no person's: then all browsers of that token are signed out at once."""
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
class BrowserSession:
    """One sign-in of a browser, as its cookie states it. `signer` tells which of our keys signed the cookie."""

    id: str
    begun_ms: int
    expires_ms: int
    signer: str


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking. `key` tells tokens apart without giving anything away."""

    name: str
    kind: Kind
    key: str
    session: BrowserSession | None = None
    """With a token there is none."""

    @property
    def holder(self) -> str:
        """What limits are counted by: a token and a browser that signed in with it or its codes are two holders."""
        return f"{self.group}.{self.session.id}" if self.session else self.group

    @property
    def group(self) -> str:
        """All browsers of the same token and kind: who may sign in as often as it likes must gain nothing by it."""
        return f"{self.key}.{self.kind}.browsers" if self.session else self.key

    def may(self, role: Role) -> bool:
        return role in ROLES[self.kind]


def token_hash(token: str) -> str:
    # A token that came as bytes which are no UTF-8 is hashed too, and is nobody's.
    return sha256(token.encode(errors="surrogatepass")).hexdigest()


class SignedOut:
    """Browser sessions that were signed out, until their cookies have expired. Bounded for each token.

    The composition root gives one that outlives the process.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, dict[str, int]] = {}
        """By the token's key: session ids, and when their cookies expire in milliseconds."""
        self._floors: dict[str, int] = {}
        """By the token's key: sessions that began up to this moment are signed out."""

    def holds(self, key: str, session: BrowserSession) -> bool:
        return session.id in self._sessions.get(key, {}) or session.begun_ms <= self._floors.get(key, -1)

    def add(self, key: str, session_id: str, now_ms: int) -> None:
        # Only when there are many: after a jump of the clock and back, cookies that seemed expired would count again.
        if max(len(self._sessions), len(self._sessions.get(key, ()))) >= SIGN_OUTS_A_KEY:
            self._prune(now_ms)
        sessions = self._sessions.setdefault(key, {})
        if len(sessions) >= SIGN_OUTS_A_KEY:
            self._floors[key] = now_ms
            sessions.clear()
        # The latest cookie of this session may have been renewed a moment ago.
        sessions[session_id] = now_ms + COOKIE_LIFE_S * 1000

    def save(self) -> None:
        """Keep them beyond this process. Never raises."""

    def _prune(self, now_ms: int) -> None:
        for key, sessions in list(self._sessions.items()):
            left = {id: until_ms for id, until_ms in sessions.items() if until_ms > now_ms}
            if left:
                self._sessions[key] = left
            else:
                del self._sessions[key]
        life_ms = COOKIE_LIFE_S * 1000
        self._floors = {key: floor_ms for key, floor_ms in self._floors.items() if floor_ms + life_ms > now_ms}


class Keys:
    def __init__(
        self, token: str | None, clock: Clock, others: Iterable[KeyRecord] = (), signed_out: SignedOut | None = None
    ) -> None:
        self._clock = clock
        self.challenges = Challenges(clock)
        self._codes: OrderedDict[str, tuple[float, Kind]] = OrderedDict()
        self._signed_out = signed_out or SignedOut()
        self._holders: dict[str, tuple[str, Principal]] = {}
        self._owner: Principal | None = None
        self._signing_key: bytes | None = None
        self.look_again: Callable[[], bool] = lambda: False
        """Whether there are other tokens than a moment ago: one that nobody knows may just have been made."""
        self.replace(token, others)

    def replace(self, token: str | None, others: Iterable[KeyRecord] = ()) -> None:
        """New tokens from now on: what the old ones signed is void. Without the owner's token no cookie or code counts."""
        records = list(others)
        if token is not None:
            records.insert(0, KeyRecord(name="owner", kind="owner", hash=token_hash(token)))
        self._holders = {
            record.hash[:16]: (record.hash, Principal(record.name, record.kind, record.hash[:16])) for record in records
        }
        self._owner = None if token is None else self._holders[records[0].hash[:16]][1]
        signing_key = None if token is None else hmac.digest(token.encode(), b"palaver cookie 3", "sha256")
        if signing_key != self._signing_key:
            # The owner's: a link that was just printed outlives a token that is made for somebody else.
            self._codes.clear()
        self._signing_key = signing_key

    @property
    def owner(self) -> Principal | None:
        """None while the owner's token cannot be read."""
        return self._owner

    def holds(self, principal: Principal) -> bool:
        """Whether it would still be let in: its token is ours with no fewer roles, and its browser is signed in."""
        held = self._holders.get(principal.key)
        if held is None or not ROLES[principal.kind] <= ROLES[held[1].kind]:
            return False
        session = principal.session
        return session is None or (session.signer == self._signer() and self._is_live(principal.key, session))

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

    # -- browser sessions: a cookie, and the page key that goes with it

    def begin_session(self, principal: Principal) -> Principal:
        """The same principal, signed in by a browser from now on."""
        now_ms = self._clock.now_ms()
        expires_ms = now_ms + COOKIE_LIFE_S * 1000
        session = BrowserSession(secrets.token_urlsafe(16), now_ms, expires_ms, self._signer())
        return replace(principal, session=session)

    def renew_session(self, principal: Principal) -> Principal:
        """The same sign-in, with another month. Its page key stays the same."""
        session = _session_of(principal)
        return replace(principal, session=replace(session, expires_ms=self._clock.now_ms() + COOKIE_LIFE_S * 1000))

    def cookie_of(self, principal: Principal) -> str:
        session = _session_of(principal)
        statement = f"{principal.key}.{principal.kind}.{session.begun_ms}.{session.expires_ms}.{session.id}"
        return f"{statement}.{self._mac('cookie', statement)}"

    def page_key_of(self, principal: Principal) -> str:
        """What a page makes its proofs with. Derived, so that nobody keeps it but the page."""
        return self._mac("page key", f"{principal.key}.{_session_of(principal).id}")

    def by_cookie(self, cookies: Iterable[str], proof: Proof | None, request: str) -> Principal | None:
        """Whoever the proof is of, if a cookie says so: which one does not depend on what other ports have set."""
        if proof is None:
            return None
        for cookie in cookies:
            if f".{proof.session}." not in cookie or (principal := self._by_statement(cookie)) is None:
                continue
            if _session_of(principal).id == proof.session and proof.is_made_with(self.page_key_of(principal), request):
                return principal if self.challenges.use_up(proof) else None
        return None

    def _by_statement(self, cookie: str) -> Principal | None:
        statement, _, signature = cookie.rpartition(".")
        if self._signing_key is None or not _is_same(signature, self._mac("cookie", statement)):
            return None
        # Signed by us, so it has these parts.
        key, kind, begun_ms, expires_ms, id = statement.split(".")
        session = BrowserSession(id, int(begun_ms), int(expires_ms), self._signer())
        held = self._holders.get(key)
        principal = _with_kind(held[1], kind) if held else None
        if principal is None or not self._is_live(key, session):
            return None
        return replace(principal, session=session)

    def _is_live(self, key: str, session: BrowserSession) -> bool:
        return self._clock.now_ms() < session.expires_ms and not self._signed_out.holds(key, session)

    def end_session(self, principal: Principal) -> None:
        """Sign out: every cookie of this sign-in is void from now on. Rotating the token voids all of them."""
        self._signed_out.add(principal.key, _session_of(principal).id, self._clock.now_ms())

    def save_signed_out(self) -> None:
        self._signed_out.save()

    def _mac(self, purpose: str, statement: str) -> str:
        assert self._signing_key is not None
        text = f"{purpose}\n{statement}".encode(errors="surrogatepass")
        return urlsafe_b64encode(hmac.digest(self._signing_key, text, "sha256")).rstrip(b"=").decode()

    def _signer(self) -> str:
        return "" if self._signing_key is None else self._mac("signer", "")[:16]

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
        if self._owner is None or self._clock.monotonic_s() >= until_s:
            return None
        return _with_kind(self._owner, kind)


def _session_of(principal: Principal) -> BrowserSession:
    if principal.session is None:
        raise ValueError("this principal came with a token, not with a browser's cookie")
    return principal.session


def _is_same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogatepass"), expected.encode())


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
