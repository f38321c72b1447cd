"""How things stand with the server, as plain data: `following` tells it, the connection line and the composer show it."""

from dataclasses import dataclass
from typing import Literal

ConnectionKind = Literal[
    "connecting", "open", "reconnecting", "catching_up", "caught_up", "version_mismatch", "signed_out", "gone"
]
"""`caught_up` is `open` with something to say once; `gone`: the conversation was deleted or never was."""


@dataclass(frozen=True, slots=True)
class Connection:
    kind: ConnectionKind = "connecting"
    retry_at_ms: int | None = None
    """When the next attempt is made, by the wall clock."""
    heard_at_ms: int | None = None
    """When the server last said anything."""
    seq: int = 0
    """The last event that was seen."""
    events: int = 0
    """How many are or were caught up with."""
    reason: str = ""

    @property
    def is_open(self) -> bool:
        return self.kind in ("open", "catching_up", "caught_up", "version_mismatch")
