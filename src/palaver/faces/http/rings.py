"""What was said last, kept for all who read it: one ring of encoded frames, and readers that are places in it.

Filled by whatever projects a conversation or the whole log; read by the streams of the faces. The ring is bounded in bytes
and shared: a reader costs a number, so one that stops costs nothing and changes nothing for the others. What waits for
readers in step is cut and joined once for all of them, and never more at once than a write should hold. A reader that the
ring has moved past is told so until it begins anew.

Must never wait for a reader.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from palaver.errors import PalaverError

PIECE_BYTES = 256 << 10
"""What is written at once: all that waits, as a rule; small enough that a stalled reader holds little and a slow one moves."""

EMPTY_BYTES = 256
"""What a frame without a body counts as: it holds a place, and memory."""

R = TypeVar("R")


class Encoded(Protocol):
    """Ready to be written."""

    @property
    def body(self) -> bytes: ...


F = TypeVar("F", bound=Encoded)


@dataclass(frozen=True, slots=True)
class Beat:
    """Nothing was said for a while."""


@dataclass(frozen=True, slots=True)
class Behind:
    """The ring has moved on: the reader missed so many frames, and must begin anew."""

    missed: int


class Piece(Generic[F]):
    """Frames that wait at one place: the same object for every reader who stands there."""

    __slots__ = ("_made", "begin", "body", "end", "frames")

    def __init__(self, begin: int, frames: Sequence[F]) -> None:
        self.begin = begin
        self.end = begin + len(frames)
        self.frames = frames
        self.body = b"".join([frame.body for frame in frames])
        """All of them."""
        self._made: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[Sequence[F]], R]) -> R:
        """What `make` makes of the frames: once for all readers who want the same."""
        try:
            known: R = self._made[key]
        except KeyError:
            known = self._made[key] = make(self.frames)
        return known


class Ring(Generic[F]):
    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._frames: list[F] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._piece: Piece[F] | None = None
        self._over: PalaverError | None = None
        self.begin = 0
        """The place of the oldest frame that is kept: how many were said before it."""
        self.end = 0
        """The place of what is said next."""
        self.size_bytes = 0
        self.beats = 0

    # -- saying

    def say(self, frames: Sequence[F]) -> F | None:
        """The newest of those that had to go, if any. Readers are woken by `wake`: many things said wake them once."""
        self._frames += frames
        self.end += len(frames)
        self.size_bytes += sum([len(frame.body) or EMPTY_BYTES for frame in frames])
        gone = 0
        while self.size_bytes > self._limit_bytes and gone < len(self._frames) - 1:
            self.size_bytes -= len(self._frames[gone].body) or EMPTY_BYTES
            gone += 1
        if not gone:
            return None
        newest = self._frames[gone - 1]
        del self._frames[:gone]
        self.begin += gone
        return newest

    def rewrite(self, change: Callable[[F], F]) -> None:
        """Replaces frames that are kept by others in the same places. What readers have taken stays as it was."""
        self._frames = [change(frame) for frame in self._frames]
        self.size_bytes = sum([len(frame.body) or EMPTY_BYTES for frame in self._frames])
        self._piece = None

    def forget(self) -> None:
        """Nothing that was said counts any more: whoever had not read all of it is behind."""
        self.begin, self._frames, self.size_bytes = self.end, [], 0
        self._piece = None

    def start_over(self) -> None:
        """As `forget`, and whoever had read all of it is behind too."""
        self.forget()
        self.begin = self.end = self.end + 1

    def wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for reader in waiting:
            if not reader.done():
                reader.set_result(None)

    def beat(self) -> None:
        self.beats += 1
        self.wake()

    def close(self, why: PalaverError) -> None:
        """Nothing more will be said. Readers get what there is, then this."""
        self._over = why
        self.wake()

    @property
    def is_open(self) -> bool:
        return self._over is None

    # -- reading

    def news(self) -> "asyncio.Future[None]":
        """Done at the next waking, for one reader alone: whoever is cancelled while he waits cancels his future too."""
        if self._over is not None:
            raise self._over
        reader: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(reader)
        return reader

    def place_after(self, number: int, number_of: Callable[[F], int]) -> int:
        """Behind the last frame whose number is not above this one. Numbers only grow."""
        return self.begin + bisect_right(self._frames, number, key=number_of)

    def piece(self, place: int) -> Piece[F]:
        """What waits at a place that is still kept, up to the size of a write. Who comes a moment later gets the same."""
        known = self._piece
        if known is None or known.begin != place:
            known = self._piece = Piece(place, self._cut(place - self.begin))
        return known

    def _cut(self, first: int) -> Sequence[F]:
        waiting = self._frames[first:]
        size_bytes = 0
        for count, frame in enumerate(waiting):
            size_bytes += len(frame.body)
            if size_bytes > PIECE_BYTES:
                return waiting[: count or 1]
        return waiting


class Reader(Generic[F]):
    def __init__(self, ring: Ring[F], place: int | None = None) -> None:
        """Without a place it reads what is said from now on."""
        self._ring = ring
        self.place = ring.end if place is None else place
        self._beats = ring.beats

    def begin_anew(self) -> None:
        """With what is said next."""
        self.place = self._ring.end

    async def next(self) -> Piece[F] | Beat | Behind:
        """All that waits, or whatever comes first. `Behind` again and again until `begin_anew`."""
        ring = self._ring
        while True:
            if self.place < ring.begin:
                return Behind(ring.end - self.place)
            if self.place < ring.end:
                piece = ring.piece(self.place)
                self.place = piece.end
                return piece
            if self._beats != ring.beats:
                self._beats = ring.beats
                return Beat()
            await ring.news()
