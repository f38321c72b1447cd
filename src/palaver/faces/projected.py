"""A conversation in another face's words, live: projected and encoded once a face, whoever reads.

A face gives a `Projector` for each conversation that somebody follows: it is shown every event once, in order, with the
view before and after it, and says what its clients are told. Its readers share what it said: each is a cursor into a ring
of encoded frames. One who is too far behind is told so and begins anew in the way of its face. So a reader that stops
costs nothing and changes nothing for the others.

Called by the faces; reads the native feed like any client. Must never: project an event twice for two readers, hold one
back, or show what is not committed.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from palaver.core.evolve import evolve
from palaver.errors import PalaverError
from palaver.feed.feed import CaughtUp, Feed, Heartbeat, Snapshot
from palaver.feed.frames import Frame
from palaver.schema.events import Event, decode_event
from palaver.schema.view import State

logger = structlog.get_logger(__name__)

RING_BYTES = 1 << 20
"""What a reader may be behind before it begins anew: as much as a reader of the native face may be."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of an event, encoded. `about` lets a reader that wants only part of it choose."""

    body: bytes
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """What a face says at one moment. `number` counts them in a conversation; `body` is ready to be written."""

    number: int
    body: bytes
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Beat:
    """Nothing was said for a while."""


@dataclass(frozen=True, slots=True)
class Behind:
    """The reader missed something, and must begin anew."""


class Projector(Protocol):
    """Made for one conversation, from its view at the moment somebody begins to follow it."""

    def project(self, event: Event, before: State, after: State, number: int) -> Sequence[Told]:
        """What is told of an event: none, one or several frames, encoded. The first of them is `number + 1`."""
        ...

    def renewed(self, state: State, number: int) -> Sequence[Told]:
        """The view was replaced as a whole (the server itself fell behind); what is told of that."""
        ...


View = Callable[[str], Awaitable[State]]
"""A conversation's view: with its last messages, or whole, as the face needs it."""
MakeProjector = Callable[[State], Projector]


@dataclass(slots=True)
class _Channel:
    state: State
    projector: Projector
    number: int
    """Of the latest frame."""
    frames: deque[Said] = field(default_factory=deque[Said])
    ring_bytes: int = 0
    readers: int = 0
    beats: int = 0
    ended: PalaverError | None = None
    waiting: list[asyncio.Future[None]] = field(default_factory=list[asyncio.Future[None]])

    def say(self, words: Sequence[Told]) -> None:
        for told in words:
            self.number += 1
            self.frames.append(Said(self.number, told.body, told.about))
            self.ring_bytes += len(told.body)
        while self.ring_bytes > RING_BYTES and len(self.frames) > 1:
            self.ring_bytes -= len(self.frames.popleft().body)

    def wake(self) -> None:
        waiting, self.waiting = self.waiting, []
        for reader in waiting:
            if not reader.done():
                reader.set_result(None)

    def after(self, number: int) -> Sequence[Said] | None:
        """What was said after a number; None when that is no longer kept."""
        if number >= self.number:
            return ()
        if not self.frames or self.frames[0].number > number + 1:
            return None
        first = number + 1 - self.frames[0].number
        return [self.frames[place] for place in range(first, len(self.frames))]


class Projected:
    """One face's live conversations."""

    def __init__(self, feed: Feed, view: View, make: MakeProjector, first_number: Callable[[State], int]) -> None:
        """`first_number` of a view is where its numbering stands: never lower for a later view."""
        self._feed = feed
        self._view = view
        self._make = make
        self._first_number = first_number
        self._channels: dict[str, _Channel] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._pumps: dict[str, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def following(self, conversation: str) -> AsyncIterator["Following"]:
        """The view now, and everything said after it."""
        async with self._opening.setdefault(conversation, asyncio.Lock()):
            channel = self._channels.get(conversation)
            if channel is None or channel.ended is not None:
                channel = await self._open(conversation)
            channel.readers += 1
        try:
            yield Following(channel)
        finally:
            channel.readers -= 1
            if not channel.readers and self._channels.get(conversation) is channel:
                del self._channels[conversation]
                self._opening.pop(conversation, None)
                self._pumps.pop(conversation).cancel()

    def tell(self, conversation: str, words: Callable[[Projector], Sequence[Told]]) -> None:
        """What no event says, such as the answer to a command, to whoever follows at this moment."""
        channel = self._channels.get(conversation)
        if channel is not None and channel.ended is None:
            channel.say(words(channel.projector))
            channel.wake()

    async def _open(self, conversation: str) -> _Channel:
        state = await self._view(conversation)
        channel = _Channel(state, self._make(state), self._first_number(state))
        self._channels[conversation] = channel
        self._pumps[conversation] = asyncio.create_task(
            self._pump(conversation, channel), name=f"project {conversation}"
        )
        return channel

    async def _pump(self, conversation: str, channel: _Channel) -> None:
        try:
            async with aclosing(self._feed.subscribe(conversation, channel.state.seq)) as items:
                async for item in items:
                    match item:
                        case Frame():
                            for line in item.body.splitlines():
                                self._project(channel, decode_event(line))
                        case Snapshot():
                            state = await self._view(conversation)
                            channel.state = state
                            channel.number = max(channel.number, self._first_number(state))
                            channel.frames.clear()
                            channel.ring_bytes = 0
                            channel.say(channel.projector.renewed(state, channel.number))
                        case Heartbeat():
                            channel.beats += 1
                        case CaughtUp():
                            continue
                    channel.wake()
        except PalaverError as ended:
            channel.ended = ended
            channel.wake()

    def _project(self, channel: _Channel, event: Event) -> None:
        before, channel.state = channel.state, evolve(channel.state, event)
        try:
            channel.say(channel.projector.project(event, before, channel.state, channel.number))
        except Exception:
            # One event that a face cannot say must not silence it; the log has it, and the next frames follow.
            logger.exception("an event could not be projected", conversation=event.conversation, seq=event.seq)


class Following:
    """One reader. `state` and `number` are of the moment it joined or began anew."""

    def __init__(self, channel: _Channel) -> None:
        self._channel = channel
        self.state = channel.state
        self.number = channel.number

    @property
    def projector(self) -> Projector:
        """The one that all readers share, at this moment."""
        return self._channel.projector

    def begin_anew(self) -> None:
        self.state = self._channel.state
        self.number = self._channel.number

    async def items(self) -> AsyncGenerator[Sequence[Said] | Beat | Behind, None]:
        """What is said from now on: all that waits at once. After `Behind` it goes on from `begin_anew`."""
        channel, beats = self._channel, self._channel.beats
        while True:
            said = channel.after(self.number)
            if said is None:
                self.begin_anew()
                yield Behind()
            elif said:
                self.number = said[-1].number
                yield said
            elif channel.ended is not None:
                raise channel.ended
            else:
                news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                channel.waiting.append(news)
                await news
                if channel.beats != beats:
                    beats = channel.beats
                    if not channel.after(self.number):
                        yield Beat()
