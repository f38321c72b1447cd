"""News of all sessions for every socket: made, changed, cleared, deleted.

One task reads what was committed while anybody listens, and picks the few lines that are such news; all sockets share the
frames. Called by the connections. Must never hold a listener's place for ever: one that is far behind is told that it
missed some.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from palaver.clock import Clock
from palaver.errors import LogError
from palaver.faces.socket.memory import Memory
from palaver.faces.socket.projection import encode_frame, project
from palaver.feed.feed import Feed
from palaver.journal import Journal
from palaver.log.base import EventLog, lines_of
from palaver.schema.events import UnknownEvent, decode_event
from palaver.tasks import running

logger = Journal(__name__)

PAUSE_S = 0.1
"""At most ten looks a second: a list that moves faster cannot be read."""
LOOK_AGAIN_S = 15.0
"""Also without a wake-up: another node's commits come without one."""
KEPT = 1_000
"""News a slow socket may be behind."""
NEWS = tuple(
    b'{"type":"%s"' % kind for kind in (b"conversation.created", b"conversation.updated", b"conversation.deleted")
)
CLEARED = b'{"type":"message.truncated"'


@dataclass(frozen=True, slots=True)
class News:
    number: int
    conversation: str
    sequence: int
    line: bytes


class Bulletin:
    def __init__(self, log: EventLog, feed: Feed, clock: Clock) -> None:
        self._log = log
        self._feed = feed
        self._clock = clock
        self._news: deque[News] = deque(maxlen=KEPT)
        self._number = 0
        self._listeners = 0
        self._watching: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[AsyncGenerator[News | None, None]]:
        """What happens from the moment this is entered. None: some was missed."""
        async with self._hold_watch():
            yield self._after(self._number)

    async def _after(self, seen: int) -> AsyncGenerator[News | None, None]:
        while True:
            moved = self._moved
            waiting = [news for news in self._news if news.number > seen]
            if waiting and waiting[0].number > seen + 1:
                yield None
            for news in waiting:
                yield news
            seen = waiting[-1].number if waiting else seen
            if seen == self._number:
                await moved.wait()

    @asynccontextmanager
    async def _hold_watch(self) -> AsyncIterator[None]:
        self._listeners += 1
        if self._watching is None:
            # Where it begins is settled before anybody goes on: what is made next is news.
            position = await self._log.position()
            if self._watching is None:
                self._watching = asyncio.create_task(self._watch(position), name="watch the sessions")
        try:
            yield
        finally:
            self._listeners -= 1
            if not self._listeners and self._watching is not None:
                self._watching.cancel()
                self._watching = None

    async def _watch(self, position: int) -> None:
        while True:
            # Listening before looking: what is committed in between wakes us again.
            async with running(self._feed.anything(), "something is committed") as woken:
                try:
                    position = await self._look(position)
                    await asyncio.wait({woken}, timeout=LOOK_AGAIN_S)
                except LogError as failure:
                    logger.warning("could not read the news of sessions", reason=failure.message)
            await self._clock.sleep(PAUSE_S)

    async def _look(self, position: int) -> int:
        while pieces := await self._log.read_all(position):
            for conversation, segment in pieces:
                for line in lines_of(segment):
                    if line.startswith(NEWS) or line.startswith(CLEARED):
                        self._tell(conversation, line)
            last = pieces[-1][1]
            position = last.pos + last.last - last.first
        return position

    def _tell(self, conversation: str, line: bytes) -> None:
        event = decode_event(line)
        if isinstance(event, UnknownEvent):
            return
        for frame in project(event, Memory()):
            self._number += 1
            self._news.append(News(self._number, conversation, event.seq, encode_frame(frame)))
        self._moved.set()
        self._moved = asyncio.Event()
