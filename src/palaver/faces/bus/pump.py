"""The bus itself: one reading of the whole log, in the order of its commits, for everybody who listens.

A task runs while anybody does. It keeps the view of each conversation that it meets, tells each event once and keeps what
it told in a ring, counted in bytes; a reader is a place in that ring and a choice of what concerns him. So a reader that
stops costs nothing and changes nothing for the others: when the ring has moved on he is told once to look again, and goes
on live. When nobody listens the ring stays, so that one who comes back soon is given exactly what he missed.

Called by the route of the bus; reads log and feed. Must never: tell an event twice or out of order, one that is not
committed, or, to one who comes back, what was removed meanwhile.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from operator import attrgetter

import msgspec

from palaver.clock import Clock
from palaver.errors import LogError
from palaver.faces.bus.frames import (
    FRAMES,
    Frame,
    Source,
    beside,
    number_frames,
    number_of,
    position_of,
    redact,
    resync,
)
from palaver.faces.bus.projection import project, project_fragment
from palaver.faces.bus.views import View, names_of, view_at
from palaver.faces.http.rings import Beat, Behind, Piece, Reader, Ring
from palaver.faces.http.sse import BEHIND_COMMENT, HEARTBEAT_COMMENT
from palaver.feed.feed import HEARTBEAT_S, Feed
from palaver.journal import Journal
from palaver.log.base import EventLog, Line, Segment
from palaver.log.base import number_lines as numbered_lines
from palaver.schema.events import (
    AgentOverridden,
    ConversationDeleted,
    Event,
    LogCompacted,
    MessageAdded,
    MessageRemoved,
    MessageTruncated,
    MissionCleared,
    MissionSet,
    MissionTriggered,
    QueueRemoved,
    TextDelta,
    ThinkingDelta,
    TurnStarted,
    UnknownEvent,
    decode_event,
)
from palaver.schema.view import State
from palaver.tasks import running

logger = Journal(__name__)

RING_BYTES = 4 << 20
"""What a reader may be behind: some minutes of several busy agents."""
READ_BYTES = 256 << 10
REACH = 20_000
"""Events behind the head from which the ring is made anew for a cursor; beyond it a resync is kinder."""
VIEWS = 256
"""Conversations whose view is kept; one that speaks again after so many others is read anew."""
GAPS = 10_000
"""Remembered stretches of dropped fragments: more than the ring ever spans."""
AGAIN_S = 1.0
"""After a failure of the log."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a reader wants to hear of. Names of a folder: as it was given, and where that leads."""

    session: str | None = None
    projects: frozenset[str] = frozenset()

    def takes(self, frame: Frame) -> bool:
        if frame.is_beside:
            return True
        if self.session is not None and frame.session != self.session:
            return False
        return not self.projects or not self.projects.isdisjoint(frame.projects)

    def of(self, frames: Sequence[Frame]) -> bytes:
        return b"".join([frame.body for frame in frames if self.takes(frame)])


EVERYTHING = Choice()


class Bus:
    def __init__(self, log: EventLog, feed: Feed, clock: Clock) -> None:
        self._log = log
        self._feed = feed
        self._clock = clock
        self._views: OrderedDict[str, View] = OrderedDict()
        self._ring = Ring[Frame](RING_BYTES)
        self._floor: int | None = None
        """The ring holds everything after this number. None: nothing was read yet."""
        self._pos = 0
        """Everything up to it was told."""
        self._last = 0
        """The last number that was told, or passed over."""
        self._passing: dict[str, int] = {}
        """Conversations whose dropped fragments are being passed over, and the position before those."""
        self._gaps: list[tuple[int, int]] = []
        """Positions among dropped fragments: after the first, up to the second."""
        self._readers = 0
        self._starting = asyncio.Lock()
        self._running: asyncio.Task[None] | None = None
        self.choosing = asyncio.Lock()
        """Held by a message that looks for its session (`chat.py`)."""

    @property
    def readers(self) -> int:
        return self._readers

    @property
    def kept_bytes(self) -> int:
        """What is kept for readers."""
        return self._ring.size_bytes

    # -- reading the bus

    async def follow(self, after: int | None, choice: Choice = EVERYTHING) -> AsyncGenerator[bytes, None]:
        """What is told after a number, for ever; without one, from now on. All that waits comes at once.

        The first item says that it listens: nothing that happens from then on is missed.
        """
        async with self._listening(after):
            # Nothing that was committed before he came: the ring may be a moment behind the log.
            head = await self._log.position()
            now = self._last if self._pos >= head else number_of(head + 1) - 1
            cursor = now if after is None else after
            yield b": listening\n\n"
            if after is not None and (missed := self._resync_for(cursor, head)) is not None:
                cursor = self._last
                yield missed
            reader = Reader(self._ring, self._ring.place_after(cursor, attrgetter("seq")))
            while True:
                item = await reader.next()
                match item:
                    case Beat():
                        yield HEARTBEAT_COMMENT
                    case Behind():
                        # Waits until the reader takes something: what it looks at when it is told holds all of this.
                        yield BEHIND_COMMENT
                        lagged = self._pos - position_of(cursor)
                        cursor = self._last
                        reader.begin_anew()
                        yield resync(cursor, self._clock.now_ms(), "lagged", lagged)
                    case _:
                        if chosen := _choose(item, cursor, choice):
                            yield chosen
                        cursor = max(cursor, item.frames[-1].seq)

    def _resync_for(self, cursor: int, head: int) -> bytes | None:
        """A resync for a cursor that is older than the ring, or of a store that this is not."""
        if cursor < (self._floor or 0):
            lagged = self._pos - max(0, position_of(cursor))
            return resync(self._last, self._clock.now_ms(), "too_old", lagged)
        if any(before < position_of(cursor) <= last for before, last in self._gaps):
            return resync(self._last, self._clock.now_ms(), "compacted", self._pos - position_of(cursor))
        if position_of(cursor) > head:
            return resync(self._last, self._clock.now_ms(), "unknown_cursor", 0)
        return None

    def changed(self) -> None:
        """Tell whoever listens of a change that no event of the log is about. Its number is one that the last event left."""
        if self._readers and self._running is not None:
            seq = min(self._last + 1, number_of(self._pos + 1) - 1)
            self._keep([beside(seq, self._clock.now_ms())], self._pos)
            self._ring.wake()

    # -- reading the log

    @asynccontextmanager
    async def _listening(self, after: int | None) -> AsyncIterator[None]:
        self._readers += 1
        try:
            async with self._starting:
                if self._running is None or self._running.done():
                    await self._start(after)
                    self._running = asyncio.create_task(self._run(), name="bus")
            yield
        finally:
            self._readers -= 1
            if not self._readers and self._running is not None:
                self._running.cancel()
                self._running = None

    async def _start(self, after: int | None) -> None:
        """Go on where the ring ends, or begin where somebody was; what lies too far back begins at the head."""
        head = await self._log.position()
        if self._floor is None or head - self._pos > REACH:
            # One less: he may have been cut off between two frames of an event.
            wanted = head if after is None else max(0, position_of(after) - 1)
            self._begin_at(wanted if 0 <= head - wanted <= REACH else head)
        while self._pos < head and await self._look():
            pass

    def _begin_at(self, position: int) -> None:
        self._ring.start_over()
        self._pos = position
        # Its own frames were told before, if at all.
        self._last = self._floor = number_of(position, FRAMES)
        self._views.clear()
        self._passing.clear()
        self._gaps = []

    async def _run(self) -> None:
        async with running(self._beat(), "beat of the bus"):
            while True:
                # Listening before looking: what is committed in between wakes us again.
                async with running(self._feed.anything(), "wake the bus") as woken:
                    await asyncio.sleep(0)
                    try:
                        while await self._look():
                            pass
                        await woken
                    except LogError as failure:
                        logger.warning("the bus waits: the log cannot be read", reason=failure.message)
                        await self._clock.sleep(AGAIN_S)
                    except Exception:
                        # A fault of ours: whoever listens must not wait for ever for a task that is gone.
                        logger.exception("the bus stumbled")
                        await self._clock.sleep(AGAIN_S)

    async def _beat(self) -> None:
        while True:
            await self._clock.sleep(HEARTBEAT_S)
            self._ring.beat()

    async def _look(self) -> bool:
        """Tell what was committed since; whether there is more."""
        found = await self._log.read_all(self._pos, READ_BYTES)
        for conversation, segment in found:
            await self._tell(conversation, segment)
        self._ring.wake()
        return bool(found) and self._pos < await self._log.position()

    async def _tell(self, conversation: str, segment: Segment) -> None:
        lines = numbered_lines(segment)
        events = [_decode(line) for line in lines]
        # A message and the turn that it begins are of one commit: who answers it is known with it.
        agents = {event.turn: event.agent for event in events if isinstance(event, TurnStarted)}
        for line, event in zip(lines, events, strict=True):
            position = segment.pos + line.seq - segment.first
            if isinstance(event, LogCompacted):
                self._pass_over(conversation, event, position)
                continue
            frames = await self._frames(conversation, event, position, agents)
            self._skip(conversation, position)
            # Both in one breath: whoever ends us here must not have an event told twice.
            self._keep(frames, position)

    def _pass_over(self, conversation: str, compacted: LogCompacted, position: int) -> None:
        """Fragments of what is finished are gone: the whole of it follows, or the rest of what was told of it here."""
        view = self._views.get(conversation)
        self._passing.setdefault(conversation, view.position if view else -1)
        if view is not None and view.seq + 1 >= compacted.first:
            view.folded(compacted)
        self._keep([], position)

    def _skip(self, conversation: str, position: int) -> None:
        """Whoever stood among them was told some, and nobody knows which: his cursor is none of ours any more."""
        before = self._passing.pop(conversation, None)
        if before is not None:
            self._gaps = [*self._gaps[-GAPS:], (before, position - 1)]

    async def _frames(
        self, conversation: str, event: Event, position: int, agents: Mapping[str | None, str]
    ) -> list[Frame]:
        if isinstance(event, MissionSet | MissionCleared | MissionTriggered | AgentOverridden):
            return self._of_project(conversation, event, position)
        view = await self._view(conversation, event.seq - 1)
        view.position = position
        if isinstance(event, TextDelta | ThinkingDelta) and view.grows(event):
            told = project_fragment(event)
            return number_frames(told, Source(position, event.id, event.ts, conversation, view.agent, view.projects))
        before = view.state
        after = view.folded(event)
        self._erase(conversation, event, before)
        if after.project != before.project:
            view.projects = await names_of(after.project)
        answers = agents.get(event.turn) if isinstance(event, MessageAdded) else None
        try:
            told = project(event, before, after, answers)
        except Exception:
            # One event that cannot be told must not silence the bus; the log has it.
            logger.exception("an event could not be told", conversation=conversation, seq=event.seq)
            return []
        turn = after.turn or before.turn
        agent = turn.agent if turn else answers or after.agent
        return number_frames(told, Source(position, event.id, event.ts, conversation, agent, view.projects))

    def _of_project(
        self, stream: str, event: MissionSet | MissionCleared | MissionTriggered | AgentOverridden, position: int
    ) -> list[Frame]:
        folder = (event.project,) if event.project else ()
        return number_frames(project(event, State(), State()), Source(position, event.id, event.ts, None, None, folder))

    def _erase(self, conversation: str, event: Event, before: State) -> None:
        """What is removed from a conversation is gone from a replay too: nobody is told its words any more."""
        removed: frozenset[str] | None = None
        match event:
            case MessageRemoved(message=message):
                removed = frozenset({message})
            case QueueRemoved(reason="cancelled", item=item):
                removed = frozenset({item})
            case MessageTruncated(index=index) if index >= before.offset:
                removed = frozenset(message.id for message in before.messages[index - before.offset :])
            case MessageTruncated():
                # Which of the earlier messages go is not at hand: whoever has not heard everything begins anew.
                self._ring.forget()
                self._floor = self._last
                return
            case ConversationDeleted():
                pass
            case _:
                return

        def without(frame: Frame) -> Frame:
            if frame.session != conversation or not frame.messages:
                return frame
            is_gone = removed is None or not removed.isdisjoint(frame.messages)
            return redact(frame) if is_gone else frame

        self._ring.rewrite(without)

    def _keep(self, frames: list[Frame], position: int) -> None:
        if (gone := self._ring.say(frames)) is not None:
            self._floor = gone.seq
        self._pos = position
        self._last = max(self._last, frames[-1].seq if frames else number_of(position))

    # -- views

    async def _view(self, conversation: str, seq: int) -> View:
        view = self._views.get(conversation)
        if view is None or view.seq != seq:
            # A gap would be one of fragments that were compacted meanwhile: the view is read as it was.
            state = await view_at(self._log, conversation, seq)
            view = View(state, await names_of(state.project))
            self._views[conversation] = view
            while len(self._views) > VIEWS:
                self._views.popitem(last=False)
        self._views.move_to_end(conversation)
        return view


def _choose(piece: Piece[Frame], cursor: int, choice: Choice) -> bytes:
    if piece.frames[0].seq <= cursor:
        return choice.of([frame for frame in piece.frames if frame.seq > cursor or frame.is_beside])
    return piece.body if choice is EVERYTHING else piece.once(choice, choice.of)


def _decode(line: Line) -> Event:
    try:
        return decode_event(line.body)
    except msgspec.DecodeError:
        # Damaged: `palaver verify` says so. One bad line must not keep the others from being told.
        return UnknownEvent(seq=line.seq)
