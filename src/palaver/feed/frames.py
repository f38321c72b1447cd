"""Events on their way out: bytes as the log stored them, cut at a cursor and framed once for everybody.

Called by the feed. The JSON of an event is never made again here; only the framing around it is.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec
from msgspec import Struct

from palaver.log.base import Segment


class _Cursor(Struct):
    """All that framing needs to know of a line."""

    seq: int
    type: str
    first: int = 0


_cursor = msgspec.json.Decoder(_Cursor)


@dataclass(slots=True)
class Frame:
    """Consecutive events as newline-ended JSON lines: a WebSocket frame as it is, an SSE body after one pass."""

    first: int
    last: int
    body: bytes
    _parts: "list[Frame] | None" = field(default=None, repr=False)
    """What it was joined from: their framing is made already, or is made once for all who join them."""
    _sse: bytes | None = field(default=None, repr=False)

    def sse(self) -> bytes:
        if self._sse is None:
            if self._parts is None:
                self._sse = b"".join(_sse_event(line) for line in self.body.splitlines())
            else:
                self._sse = b"".join(part.sse() for part in self._parts)
        return self._sse


def _sse_event(line: bytes) -> bytes:
    return b"id: %d\ndata: %s\n\n" % (_cursor.decode(line).seq, line)


def join_frames(frames: list[Frame]) -> Frame:
    """What waits goes out as one write."""
    if len(frames) == 1:
        return frames[0]
    return Frame(frames[0].first, frames[-1].last, b"".join(frame.body for frame in frames), frames)


def cut(frame: Frame, after: int) -> Frame | None:
    """The part of a frame behind a cursor. None: the cursor lies inside events that were compacted away."""
    if frame.first > after:
        return frame
    kept: list[bytes] = []
    for line in frame.body.splitlines():
        head = _cursor.decode(line)
        if head.seq <= after:
            continue
        if head.type == "log.compacted" and head.first <= after:
            return None
        kept.append(line)
    return Frame(after + 1, frame.last, b"".join(line + b"\n" for line in kept))


def from_segments(segments: Iterable[Segment], after: int) -> Frame | None:
    """Stored segments as one frame behind a cursor; None as in `cut`."""
    frames = [Frame(segment.first, segment.last, segment.body) for segment in segments]
    first = cut(frames[0], after)
    return None if first is None else join_frames([first, *frames[1:]])
