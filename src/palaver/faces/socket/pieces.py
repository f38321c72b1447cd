"""What waits for a reader as one piece, made once for all readers who are in step.

Called by the connections. Readers of a session wake one after the other and want the same frames; joining them anew for
each would cost more than writing them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from palaver.faces.projected import Said, Told
from palaver.faces.socket.project import GAP


def but_for(client: str, frames: Sequence[Said] | Sequence[Told]) -> bytes:
    """Nobody is told what it said itself over this very connection."""
    return b"".join([frame.body for frame in frames if client not in frame.about])


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    frames: Sequence[Said]
    body: bytes
    last: int
    """The number of the last event that it tells of."""
    has_gap: bool
    has_sender: bool
    """One of the readers may be left out of some of it."""

    def but_for(self, client: str) -> bytes:
        return but_for(client, self.frames) if self.has_sender else self.body


class InStep:
    def __init__(self) -> None:
        self._latest: Piece | None = None

    def piece(self, frames: Sequence[Said]) -> Piece:
        known = self._latest
        if known is None or known.frames[0] is not frames[0] or known.frames[-1] is not frames[-1]:
            known = self._latest = _made(frames)
        return known


def _made(frames: Sequence[Said]) -> Piece:
    last = frames[-1].about
    return Piece(
        frames=frames,
        body=b"".join([frame.body for frame in frames]),
        last=int(last[1] if last[0] == GAP else last[0]),
        has_gap=any(frame.about[0] == GAP for frame in frames),
        has_sender=any(len(frame.about) > 1 for frame in frames),
    )
