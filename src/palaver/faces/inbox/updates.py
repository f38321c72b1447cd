"""That there is something new to read in an inbox: once for each batch of people's messages, never for an agent's own.

Called by the MCP servers for each subscriber; reads the feed like any client. What is missed is not lost: whoever reads
next reads it.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from palaver.faces.inbox.projection import is_by_a_person
from palaver.feed.feed import CaughtUp, Feed, Heartbeat, Snapshot
from palaver.feed.frames import Frame
from palaver.log.base import EventLog
from palaver.schema.events import decode_event

LOOK_AGAIN_S = 15.0
"""Also without a wake-up: another node's commits come without one."""


async def updates(feed: Feed, log: EventLog, conversation: str, listening: asyncio.Event) -> AsyncGenerator[None, None]:
    """One item a batch, from the moment that `listening` is set. Ends only with its reader."""
    after = None if await log.head(conversation) is not None else await _beginning(feed, log, conversation, listening)
    async with aclosing(feed.subscribe(conversation, after)) as items:
        async for item in items:
            match item:
                case CaughtUp():
                    listening.set()
                case Frame():
                    if any(is_by_a_person(decode_event(line)) for line in item.body.splitlines()):
                        yield
                case Snapshot():
                    # Something was passed over; there may have been a person's words in it.
                    yield
                case Heartbeat():
                    pass


async def _beginning(feed: Feed, log: EventLog, conversation: str, listening: asyncio.Event) -> int:
    """Waits until somebody posts to an inbox that has not begun; all of it is new then."""
    while True:
        # Listening before looking: what is committed in between wakes us again.
        woken = asyncio.ensure_future(feed.anything())
        try:
            if await log.head(conversation) is not None:
                return 0
            listening.set()
            await asyncio.wait({woken}, timeout=LOOK_AGAIN_S)
        finally:
            woken.cancel()
