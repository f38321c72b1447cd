"""A conversation in another face's words, live: projected and encoded once a face, whoever reads.

A face gives a `Projector` for each conversation that somebody follows: it is shown every event once, in order, with the
view before and after it, and says what its clients are told. Its readers share what it said, in a ring. One who is too far
behind is told so and begins anew in the way of its face.

Called by the faces; reads the native feed like any client. Must never: project an event twice for two readers, hold one
back, or show what is not committed.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from palaver.core.fold.evolve import evolve
from palaver.errors import PalaverError
from palaver.faces.http.rings import Reader, Ring
from palaver.feed.feed import CaughtUp, Feed, Heartbeat, Snapshot
from palaver.feed.frames import Frame
from palaver.journal import Journal
from palaver.schema.events import Event, decode_event
from palaver.schema.view import State

logger = Journal(__name__)

RING_BYTES = 1 << 20
"""What a reader may be behind before it begins anew: as much as a reader of the native face may be."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of an event, encoded. `about` lets a reader that wants only part of it choose."""

    body: bytes
    about: tuple[str, ...] = ()


class Projector(Protocol):
    """Made for one conversation, from its view at the moment somebody begins to follow it."""

    def project(self, event: Event, before: State, after: State) -> Sequence[Told]:
        """What is told of an event: none, one or several frames, encoded."""
        ...

    def renewed(self, state: State) -> Sequence[Told]:
        """The view was replaced as a whole: the server itself fell behind. What those are told who were not behind; if
        that is nothing, they are behind too."""
        ...


@runtime_checkable
class Gathering(Protocol):
    """A projector that makes one frame of what several events say, if they come together."""

    def gathered(self) -> Sequence[Told]:
        """What it held back of the events it was just shown. Nobody reads anything in between."""
        ...


View = Callable[[str], Awaitable[State]]
"""A conversation's view: with its last messages, or whole, as the face needs it."""
MakeProjector = Callable[[State], Projector]
Whole = Callable[[Event], Awaitable[Event]]
"""An event with what it could not hold itself, for a face that tells texts of any length."""


@dataclass(slots=True)
class _Channel:
    state: State
    projector: Projector
    ring: Ring[Told] = field(default_factory=lambda: Ring[Told](RING_BYTES))
    readers: int = 0

    def renew(self) -> None:
        words = self.projector.renewed(self.state)
        if words:
            self.ring.forget()
            self.ring.say(words)
        else:
            self.ring.start_over()


class Projected:
    """One face's live conversations."""

    def __init__(self, feed: Feed, view: View, make: MakeProjector, whole: Whole | None = None) -> None:
        self._feed = feed
        self._view = view
        self._make = make
        self._whole = whole
        self._channels: dict[str, _Channel] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._pumps: dict[str, asyncio.Task[None]] = {}

    @property
    def kept_bytes(self) -> int:
        """What is kept for readers, all conversations together."""
        return sum(channel.ring.size_bytes for channel in self._channels.values())

    @asynccontextmanager
    async def following(self, conversation: str) -> AsyncIterator["Following"]:
        """The view now, and everything said after it."""
        async with self._opening.setdefault(conversation, asyncio.Lock()):
            channel = self._channels.get(conversation)
            if channel is None or not channel.ring.is_open:
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
        if channel is not None and channel.ring.is_open:
            channel.ring.say(words(channel.projector))
            channel.ring.wake()

    async def _open(self, conversation: str) -> _Channel:
        state = await self._view(conversation)
        channel = _Channel(state, self._make(state))
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
                            # Fetched before any is projected: nobody may read between the events of one frame.
                            for event in await self._events(item):
                                self._project(channel, event)
                            if isinstance(channel.projector, Gathering):
                                channel.ring.say(channel.projector.gathered())
                        case Snapshot():
                            channel.state = await self._view(conversation)
                            channel.renew()
                        case Heartbeat():
                            channel.ring.beat()
                            continue
                        case CaughtUp():
                            continue
                    channel.ring.wake()
        except PalaverError as ended:
            channel.ring.close(ended)

    async def _events(self, frame: Frame) -> list[Event]:
        events = [decode_event(line) for line in frame.body.splitlines()]
        return events if self._whole is None else [await self._whole(event) for event in events]

    def _project(self, channel: _Channel, event: Event) -> None:
        if event.seq <= channel.state.seq:
            return  # A view that took the place of another may be newer than where the feed goes on.
        before, channel.state = channel.state, evolve(channel.state, event)
        try:
            channel.ring.say(channel.projector.project(event, before, channel.state))
        except Exception:
            # One event that a face cannot say must not silence it; the log has it, and the next frames follow.
            logger.exception("an event could not be projected", conversation=event.conversation, seq=event.seq)


class Following(Reader[Told]):
    """One reader. `state` is of the moment it joined or began anew."""

    def __init__(self, channel: _Channel) -> None:
        super().__init__(channel.ring)
        self._channel = channel
        self.state = channel.state

    @property
    def projector(self) -> Projector:
        """The one that all readers share, at this moment."""
        return self._channel.projector

    def begin_anew(self) -> None:
        super().begin_anew()
        self.state = self._channel.state
