"""The conversation list as it changes, for everybody who looks at it.

One task reads the changed rows a few times a second while anybody follows, and all followers in step share what it
encoded; one that is behind reads for itself until it has caught up. Called by the sockets. Must never miss a change: a
follower's position only moves to what it was given.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from palaver.clock import Clock
from palaver.errors import LogError
from palaver.feed.feed import Feed
from palaver.journal import Journal
from palaver.log.base import EventLog
from palaver.schema.view import Listing

logger = Journal(__name__)

PAUSE_S = 0.1
"""At most ten frames a second: a list that moves faster cannot be read."""
BATCHES_KEPT = 16
ROWS_A_BATCH = 500
LOOK_AGAIN_S = 15.0
"""Also without a wake-up: another node's commits come without one."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Rows that changed between two positions. `reset`: the position was not ours, fetch the list again."""

    after_pos: int
    pos: int
    items: Sequence[Listing]
    reset: bool = False

    def line(self) -> bytes:
        fields = {"type": "listed", "items": self.items, "pos": self.pos, **({"reset": True} if self.reset else {})}
        return msgspec.json.encode(fields) + b"\n"


class Listings:
    def __init__(self, log: EventLog, feed: Feed, clock: Clock) -> None:
        self._log = log
        self._feed = feed
        self._clock = clock
        self._pos = 0
        self._batches: deque[tuple[Listed, bytes]] = deque(maxlen=BATCHES_KEPT)
        self._followers = 0
        self._watching: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()

    async def follow(self, after_pos: int | None) -> AsyncGenerator[bytes, None]:
        """Lines `{"type": "listed", …}` after a position; without one, from now on."""
        async with self._hold_watch():
            now = await self._log.position()
            pos = now if after_pos is None else after_pos
            if pos > now:
                pos = now
                yield Listed(pos, pos, (), reset=True).line()
            while True:
                moved = self._moved
                batch = next((batch for batch in self._batches if batch[0].after_pos == pos), None)
                if batch is not None:
                    pos = batch[0].pos
                    yield batch[1]
                elif pos < self._pos:
                    rows = await self._log.changed(pos, ROWS_A_BATCH)
                    before, pos = pos, rows[-1].pos if rows else self._pos
                    if rows:
                        yield Listed(before, pos, rows).line()
                else:
                    await moved.wait()

    @asynccontextmanager
    async def _hold_watch(self) -> AsyncIterator[None]:
        self._followers += 1
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="watch the conversation list")
        try:
            yield
        finally:
            self._followers -= 1
            if not self._followers and self._watching is not None:
                self._watching.cancel()
                self._watching = None

    async def _watch(self) -> None:
        # Whoever follows from before this reads for himself; nobody wants all rows since the beginning.
        self._move_to(max(self._pos, await self._log.position()))
        while True:
            # Listening before looking: what is committed in between wakes us again.
            woken = asyncio.ensure_future(self._feed.anything())
            try:
                await self._look()
                await asyncio.wait({woken}, timeout=LOOK_AGAIN_S)
            except LogError as failure:
                logger.warning("could not read the changed conversations", reason=failure.message)
            finally:
                woken.cancel()
            await self._clock.sleep(PAUSE_S)

    async def _look(self) -> None:
        while rows := await self._log.changed(self._pos, ROWS_A_BATCH):
            listed = Listed(self._pos, rows[-1].pos, rows)
            self._batches.append((listed, listed.line()))
            self._move_to(listed.pos)

    def _move_to(self, pos: int) -> None:
        self._pos = pos
        self._moved.set()
        self._moved = asyncio.Event()
