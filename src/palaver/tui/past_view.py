"""A conversation as it was: the fold of its log up to any event."""

import asyncio
from contextlib import aclosing

import msgspec
from msgspec import Struct

from palaver.client.client import Client
from palaver.core.fold.evolve import fold
from palaver.errors import Gone
from palaver.schema.events import Event, decode_event
from palaver.schema.view import State

READ_S = 30.0
"""A long log is read in a second or two."""


class _Snapshot(Struct, tag_field="type", tag="snapshot"):
    seq: int
    state: State


async def state_at(client: Client, conversation: str, seq: int) -> State:
    """Raises Gone when that moment lies in what was compacted away."""
    events: list[Event] = []
    start = State()
    async with asyncio.timeout(READ_S), aclosing(client.lines(conversation, 0)) as lines:
        async for line in lines:
            if b'"type":"snapshot"' in line.data[:32]:
                start, events = msgspec.json.decode(line.data, type=_Snapshot).state, []
            else:
                events.append(decode_event(line.data))
            if line.seq >= seq:
                break
    if start.seq > seq:
        raise Gone("This moment is not kept any more: the log was compacted. Choose a later one.")
    return fold(start, [event for event in events if event.seq <= seq])
