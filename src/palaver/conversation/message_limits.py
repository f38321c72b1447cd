"""A message from elsewhere, cut to what one event may hold.

Called for imports, whose programs put no bound on one answer: a dozen files read at once, a whole file written by one call.
The longest outputs go to blobs first; arguments have no such place, and what is left out of them is said where it stood.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from palaver.conversation.attachments import PLAIN
from palaver.log.base import Blobs
from palaver.schema.view import Block, Message, ThinkingBlock, ToolBlock

MESSAGE_BYTES = 200 << 10
"""An event may hold 256 KiB, and has an envelope."""
SHORT_CHARS = 2_000
"""Of each end of a long output, when all of them together are too much: a screen."""
WORDS_CHARS = 8_000
"""Of a text within arguments, or of a thought: enough to know it by."""


async def fit(message: Message, blobs: Blobs) -> Message:
    """In its own size when that fits."""
    if _size(message) <= MESSAGE_BYTES:
        return message
    shorter = replace(message, blocks=tuple([await _shorter(block, blobs) for block in message.blocks]))
    if _size(shorter) <= MESSAGE_BYTES:
        return shorter
    return replace(shorter, blocks=tuple(_shortest(block) for block in shorter.blocks))


def _size(message: Message) -> int:
    return len(msgspec.json.encode(message.blocks))


async def _shorter(block: Block, blobs: Blobs) -> Block:
    if not isinstance(block, ToolBlock) or len(block.output) <= 2 * SHORT_CHARS:
        return block
    kept = f"{block.output[:SHORT_CHARS]}\n…\n{block.output[-SHORT_CHARS:]}"
    if block.blob is not None:
        return replace(block, output=kept, truncated=True)
    data = block.output.encode()
    return replace(block, output=kept, truncated=True, total_bytes=len(data), blob=await blobs.put(data, PLAIN))


def _shortest(block: Block) -> Block:
    match block:
        case ToolBlock():
            return replace(block, input=_cut(block.input))
        case ThinkingBlock() if len(block.text) > WORDS_CHARS:
            # Signed as a whole: what is cut must not be shown to the provider as its own.
            return replace(block, text=_cut(block.text), signature=None, provider=None)
        case _:
            return block  # A long text is a blob already.


def _cut(value: Any) -> Any:
    match value:
        case str() if len(value) > WORDS_CHARS:
            return f"{value[:WORDS_CHARS]}\n(… {len(value) - WORDS_CHARS:,} characters left out)"
        case dict():
            return {name: _cut(inner) for name, inner in value.items()}
        case list():
            return [_cut(inner) for inner in value]
        case _:
            return value
