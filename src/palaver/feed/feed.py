"""Who reads what, and how far they are.

The owner of a conversation publishes each commit here; faces subscribe. A subscriber is a cursor, not a buffer: it pulls
what it has not seen from a ring of recent frames that all share, or from the log when the ring has moved on. So a reader
that stops reading costs nothing, changes nothing for the others, and producers never wait for anyone.

Order of joining: register first, then read the log up to its head, then go on from the ring. Whatever is committed in
between is in one of the two, and the cursor drops what is in both.

Must never: hold an event back from one reader for another, or show anything the log has not committed.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from palaver.clock import Clock
from palaver.errors import NotFound
from palaver.feed.frames import Frame, cut, from_segments, join_frames
from palaver.log.base import Reading

RING_BYTES = 256 << 10
"""Recent frames kept a conversation with readers: a few seconds of fast streaming, so that only the slow visit the log."""

BACKLOG_BYTES = 1 << 20
"""How far a live reader may fall behind before one snapshot is kinder than the backlog."""

READ_BYTES = 256 << 10
"""One visit to the log: a write small enough that a slow link sees progress."""

HEARTBEAT_S = 15.0
"""Shorter than the idle time-outs of common proxies (30 to 60 s)."""

Reason = Literal["start", "behind", "future", "compacted", "epoch"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Instead of a hole: the folded view at `seq`. What follows it continues at `seq + 1`."""

    seq: int
    reason: Reason
    state: bytes


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The replay has reached the head; from here on it is live."""

    seq: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    pass


Item = Frame | Snapshot | CaughtUp | Heartbeat

TakeSnapshot = Callable[[str], Awaitable[tuple[int, bytes]]]
"""The folded view of a conversation as JSON, and its seq."""


@dataclass(slots=True)
class _Channel:
    """One conversation's recent frames. Exists only while somebody listens."""

    waiting: list[asyncio.Future[None]] = field(default_factory=list[asyncio.Future[None]])
    """Readers at the head. Bare futures: an event's own bookkeeping would be a tenth of what a delivery costs."""
    frames: deque[Frame] = field(default_factory=deque[Frame])
    ring_bytes: int = 0
    published_bytes: int = 0
    head: int = 0
    readers: int = 0
    joined: Frame | None = None

    def publish(self, frame: Frame) -> None:
        self.frames.append(frame)
        self.head = frame.last
        self.ring_bytes += len(frame.body)
        self.published_bytes += len(frame.body)
        self.joined = None
        while self.ring_bytes > RING_BYTES and len(self.frames) > 1:
            self.ring_bytes -= len(self.frames.popleft().body)
        self.wake()

    def wake(self) -> None:
        waiting, self.waiting = self.waiting, []
        for reader in waiting:
            if not reader.done():
                reader.set_result(None)

    def news(self) -> "asyncio.Future[None]":
        """Done at the next waking, for one reader alone: whoever is cancelled while he waits cancels his future too."""
        reader: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(reader)
        return reader

    def newer_than(self, cursor: int) -> Frame | None:
        """Everything behind a cursor as one frame, or None when the ring does not reach back that far."""
        if not self.frames or self.frames[0].first > cursor + 1 or self.head <= cursor:
            return None
        if self.joined is not None and self.joined.first == cursor + 1:
            return self.joined  # Readers in step share one join.
        waiting = [frame for frame in self.frames if frame.last > cursor]
        first = cut(waiting[0], cursor)
        if first is None:
            return None
        self.joined = join_frames([first, *waiting[1:]])
        return self.joined


class Feed:
    def __init__(self, log: Reading, clock: Clock, take_snapshot: TakeSnapshot) -> None:
        self._log = log
        self._clock = clock
        self._take_snapshot = take_snapshot
        self._channels: dict[str, _Channel] = {}
        self._beats = 0
        self._anything = asyncio.Event()

    def publish(self, conversation: str, first: int, last: int, body: bytes) -> None:
        """Called by the owner, after the commit and in the order of commits."""
        channel = self._channels.get(conversation)
        if channel is not None:
            channel.publish(Frame(first, last, body))
        self._anything.set()
        self._anything.clear()

    async def anything(self) -> None:
        """Returns after the next publish, of whatever conversation: a wake-up for readers of the whole store."""
        await self._anything.wait()

    async def beat(self) -> None:
        """Wakes every reader now and then, so that silence always means trouble. Runs as long as the server."""
        while True:
            await self._clock.sleep(HEARTBEAT_S)
            self._beats += 1
            for channel in self._channels.values():
                channel.wake()

    @property
    def readers(self) -> int:
        return sum(channel.readers for channel in self._channels.values())

    @asynccontextmanager
    async def _channel(self, conversation: str) -> AsyncIterator[_Channel]:
        channel = self._channels.setdefault(conversation, _Channel())
        channel.readers += 1
        try:
            yield channel
        finally:
            channel.readers -= 1
            if not channel.readers:
                self._channels.pop(conversation, None)

    async def subscribe(
        self, conversation: str, after: int | None, *, snapshot_first: bool = False
    ) -> AsyncGenerator[Item, None]:
        """Everything after a cursor, once each and for ever; without a cursor, from now on.

        `snapshot_first` begins with the view instead, for a client that holds nothing yet.
        """
        async with self._channel(conversation) as channel:
            head = await self._log.head(conversation)
            if head is None:
                raise NotFound("No such conversation.", conversation=conversation)
            cursor = head.seq if after is None else after
            if snapshot_first or cursor > head.seq or cursor < 0:
                resync = await self._resync(conversation, "start" if snapshot_first else "future")
                cursor = resync.seq
                yield resync
            reached = max(head.seq, channel.head)
            live = False
            caught_up_bytes = 0
            beats = self._beats
            while True:
                frame = channel.newer_than(cursor)
                if frame is None and max(reached, channel.head) > cursor:
                    if live and channel.published_bytes - caught_up_bytes > BACKLOG_BYTES:
                        resync = await self._resync(conversation, "behind")
                        cursor, caught_up_bytes = resync.seq, channel.published_bytes
                        yield resync
                        continue
                    segments = await self._log.read(conversation, cursor, READ_BYTES)
                    frame = from_segments(segments, cursor) if segments else None
                    if frame is None:
                        resync = await self._resync(conversation, "compacted")
                        cursor = resync.seq
                        yield resync
                        continue
                if frame is not None:
                    cursor = frame.last
                    yield frame
                    if live and cursor >= channel.head:
                        caught_up_bytes = channel.published_bytes
                    continue
                if not live:
                    live = True
                    caught_up_bytes = channel.published_bytes
                    yield CaughtUp(cursor)
                    continue
                await channel.news()
                if beats != self._beats:
                    beats = self._beats
                    if channel.head <= cursor:
                        yield Heartbeat()

    async def _resync(self, conversation: str, reason: Reason) -> Snapshot:
        seq, state = await self._take_snapshot(conversation)
        return Snapshot(seq, reason, state)
