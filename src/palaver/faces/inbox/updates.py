"""That there is something new to read in an inbox: once for each batch of people's messages, never for an agent's own.

Called by the MCP servers for each subscriber; reads the feed like any client. What is missed is not lost: whoever reads
next reads it.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from palaver.faces.inbox.project import is_by_a_person
from palaver.feed.feed import CaughtUp, Feed, Heartbeat, Snapshot
from palaver.feed.frames import Frame
from palaver.schema.events import decode_event


async def updates(feed: Feed, conversation: str, listening: asyncio.Event) -> AsyncGenerator[None, None]:
    """One item a batch, from the moment that `listening` is set. Ends only with its reader."""
    async with aclosing(feed.subscribe(conversation, None)) as items:
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
