"""Proofs of a page key: what a page sends in place of the key, each good for one request of one run of the server.

Checked by `authentication.py`; `web/src/transport/proof.ts` makes them. A page cannot know who answers at its address: after
a stop another program may listen there. So it never sends its key, but a keyed hash over a challenge of this server and the
request. Whoever receives one has nothing for the server that comes after, for another request, or for the same one again.
"""

import hmac
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Self

from palaver.clock import Clock

CHALLENGE_LIFE_S = 300.0
"""A challenge counts for as long again after the next one is there: a page that asks now and then never meets an old one."""
PROOFS_A_CHALLENGE = 20_000
"""Remembered, so that none counts twice. More in five minutes begin a new challenge early."""


@dataclass(frozen=True, slots=True)
class Proof:
    """As text `SESSION.CHALLENGE.ONCE.MAC`: of the browser's session, under a challenge, told apart by `once`."""

    session: str
    challenge: str
    once: str
    mac: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        parts = text.split(".")
        return cls(*parts) if len(parts) == 4 and all(parts) else None

    def is_made_with(self, page_key: str, request: str) -> bool:
        expected = mac_of(page_key, self.challenge, self.once, request)
        return hmac.compare_digest(self.mac.encode(errors="surrogatepass"), expected.encode())


def mac_of(page_key: str, challenge: str, once: str, request: str) -> str:
    """`request`: method, host and target, as `faces/http/gate.py` writes them."""
    text = f"{challenge}\n{once}\n{request}".encode(errors="surrogatepass")
    return urlsafe_b64encode(hmac.digest(page_key.encode(), text, "sha256")).rstrip(b"=").decode()


@dataclass(slots=True)
class _Challenge:
    text: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    used: set[str] = field(default_factory=set[str])


class Challenges:
    """The current challenge and the one before it. Random, so that nobody has a proof before this server runs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._current = _Challenge()
        self._former = _Challenge()
        self._begun_s = clock.monotonic_s()

    @property
    def current(self) -> str:
        self._change()
        return self._current.text

    def use_up(self, proof: Proof) -> bool:
        """Whether it is of a challenge that counts, and counts for the first time."""
        self._change()
        for challenge in (self._current, self._former):
            if proof.challenge == challenge.text and proof.mac not in challenge.used:
                challenge.used.add(proof.mac)
                return True
        return False

    def _change(self) -> None:
        age_s = self._clock.monotonic_s() - self._begun_s
        if age_s < CHALLENGE_LIFE_S and len(self._current.used) < PROOFS_A_CHALLENGE:
            return
        self._former = self._current if age_s < 2 * CHALLENGE_LIFE_S else _Challenge()
        self._current = _Challenge()
        self._begun_s += age_s
