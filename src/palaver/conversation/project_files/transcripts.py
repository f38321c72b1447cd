"""Conversations whole: every message, every text, for whoever writes them down.

Used by branch, export and the writer of trajectories. Reads the view as it is committed, so a running turn may go on; what
it has open is for the reader to close.
"""

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec.structs import replace

from palaver.errors import LogUnavailable
from palaver.log.base import Blobs, EventLog, StoredMessage
from palaver.schema.view import Block, ImageBlock, Message, State, TextBlock

TRIES = 5
"""A history may be rewritten while it is read; nobody rewrites one five times in a moment."""

_OWN_URL = re.compile(r"/api/blobs/([0-9a-f]{64})", re.ASCII)


async def whole(log: EventLog, conversation: str, view: Callable[[], Awaitable[State]]) -> State:
    """The view with all its messages. Raises LogUnavailable when it changes faster than it can be read."""
    for _ in range(TRIES):
        state = await view()
        if not state.offset:
            return state
        first = state.messages[0].seq if state.messages else state.seq + 1
        stored = await log.messages_before(conversation, first, state.offset)
        # A long history takes a while to read, and others are served on the loop.
        earlier = await asyncio.to_thread(_decode, stored)
        if len(earlier) == state.offset:
            return replace(state, messages=(*earlier, *state.messages), offset=0)
    raise LogUnavailable("This conversation is being rewritten; try again in a moment.", conversation=conversation)


def _decode(stored: Sequence[StoredMessage]) -> list[Message]:
    decoder = msgspec.json.Decoder(Message)
    return [decoder.decode(one.body) for one in stored]


async def with_whole_texts(message: Message, blobs: Blobs) -> Message:
    """Texts that outgrew their event, fetched. What is no longer stored stays as long as it is."""
    if not any(isinstance(block, TextBlock) and block.blob for block in message.blocks):
        return message
    return replace(message, blocks=tuple([await _whole_text(block, blobs) for block in message.blocks]))


async def _whole_text(block: Block, blobs: Blobs) -> Block:
    if not isinstance(block, TextBlock) or block.blob is None:
        return block
    found = await blobs.get(block.blob.id)
    return block if found is None else replace(block, text=found[0].decode(errors="replace"), blob=None)


class Images:
    """Pictures as part of the text, until there are too many."""

    def __init__(self, blobs: Blobs, limit_bytes: int) -> None:
        self._blobs = blobs
        self._left_bytes = limit_bytes

    async def inline(self, message: Message) -> Message:
        if not any(isinstance(block, ImageBlock) for block in message.blocks):
            return message
        return replace(message, blocks=tuple([await self._inline_block(block) for block in message.blocks]))

    async def _inline_block(self, block: Block) -> Block:
        own = _OWN_URL.fullmatch(block.url) if isinstance(block, ImageBlock) else None
        found = await self._blobs.get(own[1]) if own else None
        if found is None or len(found[0]) > self._left_bytes:
            return block
        data, mime = found
        self._left_bytes -= len(data)
        url = f"data:{mime.partition(';')[0]};base64,{base64.b64encode(data).decode()}"
        return ImageBlock(index=block.index, url=url)
