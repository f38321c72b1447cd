"""Watch loop over the conversation list: tells a writer of files beside projects which rows changed, and when to write.

Used by `trajectories.py` and `session_lists.py`, each a task of the server. It runs beside the turns and holds none up; a
store that cannot be read for a moment only delays it. What a changed row means and what is written is its user's affair.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from palaver.clock import Clock
from palaver.errors import LogError
from palaver.feed.feed import Feed
from palaver.journal import Journal
from palaver.log.base import EventLog
from palaver.schema.view import Listing
from palaver.tasks import running

logger = Journal(__name__)

PAUSE_S = 0.5
"""Between two looks at the list: a file that is half a second old is new to whoever reads it."""
LOOK_AGAIN_S = 15.0
"""Also without a wake-up: another node's commits come without one."""
ROWS_A_LOOK = 500
LOOK_BACK_EVENTS = 2_000
"""At start: what changed just before a crash may not have been written down."""
END_S = 5.0
"""For what is left to write when the server ends."""


class ListWatch:
    def __init__(self, log: EventLog, feed: Feed, clock: Clock, files: str, note: Callable[[Listing], None]) -> None:
        """`files`: what is written, in the plural. `note` is told of each row that changed."""
        self._log = log
        self._feed = feed
        self._clock = clock
        self._files = files
        self._note = note
        self._pos = 0
        self._complaints: set[tuple[str, str]] = set()

    @asynccontextmanager
    async def running(
        self, write: Callable[[], Awaitable[bool]], catch_up: Callable[[], Awaitable[None]]
    ) -> AsyncIterator[None]:
        """Entered before the conversations run and left after they rest, so that their last changes are written too.

        `write` answers whether something waits for its time. `catch_up` writes all there is, at the end.
        """
        self._pos = max(0, await self._log.position() - LOOK_BACK_EVENTS)
        try:
            async with running(self._watch(write), f"write {self._files}"):
                yield
        finally:
            with suppress(TimeoutError, LogError):
                async with asyncio.timeout(END_S):
                    await catch_up()

    async def look(self) -> None:
        """Note every row that changed since the last look."""
        while rows := await self._log.changed(self._pos, ROWS_A_LOOK):
            for row in rows:
                self._note(row)
            self._pos = rows[-1].pos

    def complain(self, project: str, failure: Exception) -> None:
        """A folder that cannot be written is said once in the log."""
        if (key := (project, type(failure).__name__)) not in self._complaints:
            self._complaints.add(key)
            logger.warning(f"no {self._files} in this project", project=project, reason=str(failure))

    async def _watch(self, write: Callable[[], Awaitable[bool]]) -> None:
        while True:
            # Listening before looking: what is committed in between wakes us again.
            async with running(self._feed.anything(), "something is committed") as woken:
                try:
                    await self.look()
                    if not await write():
                        await asyncio.wait({woken}, timeout=LOOK_AGAIN_S)
                except LogError as failure:
                    logger.warning(f"could not read what changed, {self._files} wait", reason=failure.message)
            await self._clock.sleep(PAUSE_S)
