"""What waits for a reader of the socket, looked at once for all readers who are in step. Pure.

Called by the connections.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from palaver.faces.http.rings import Piece
from palaver.faces.projection import Told
from palaver.faces.socket.projection import GAP


@dataclass(frozen=True, slots=True)
class Look:
    last: int
    """The number of the last event that it tells of."""
    has_gap: bool
    has_sender: bool
    """One of the readers may be left out of some of it."""


def look(piece: Piece[Told]) -> Look:
    return piece.once(Look, _look_at)


def _look_at(frames: Sequence[Told]) -> Look:
    last = frames[-1].about
    return Look(
        last=int(last[1] if last[0] == GAP else last[0]),
        has_gap=any(frame.about[0] == GAP for frame in frames),
        has_sender=any(len(frame.about) > 1 for frame in frames),
    )


def but_for(client: str, frames: Sequence[Told]) -> bytes:
    """Nobody is told what it said itself over this very connection."""
    return b"".join([frame.body for frame in frames if client not in frame.about])
