"""Texts that outgrew their event: whether one does, and the event with all of it.

An event holds at most the beginning of a long text; the rest is in a blob. Used by faces that tell such a text whole.
"""

from msgspec.structs import replace

from palaver.log.base import Blobs
from palaver.schema.base import BlobRef
from palaver.schema.content import Content, TextPart
from palaver.schema.events import Event, MessageAdded, MessageEdited, TextFinished
from palaver.schema.view import Block, TextBlock


def is_cut(event: Event) -> bool:
    """Whether an event holds only the beginning of a text that is told; all of it is in a blob."""
    match event:
        case TextFinished():
            return event.blob is not None
        case MessageAdded(hidden=False):
            parts = (part.blob for part in event.content if isinstance(part, TextPart))
            blocks = (block.blob for block in event.blocks or () if isinstance(block, TextBlock))
            return any((*parts, *blocks))
        case _:
            return False


async def with_whole_text(event: Event, blobs: Blobs) -> Event:
    """The event as it would be if it could hold all of it. What is no longer stored stays as long as it is."""
    match event:
        case MessageEdited():
            return replace(event, content=await _content(event.content, blobs))
        case TextFinished(blob=BlobRef() as blob):
            return replace(event, text=await _text(blob, blobs) or event.text)
        case MessageAdded() if is_cut(event):
            content = await _content(event.content, blobs)
            blocks = [await with_whole_block(block, blobs) for block in event.blocks or ()]
            return replace(event, content=content, blocks=None if event.blocks is None else tuple(blocks))
        case _:
            return event


async def with_whole_block(block: Block, blobs: Blobs) -> Block:
    if isinstance(block, TextBlock) and block.blob:
        return replace(block, text=await _text(block.blob, blobs) or block.text)
    return block


async def _content(content: Content, blobs: Blobs) -> Content:
    return tuple(
        [
            replace(part, text=await _text(part.blob, blobs) or part.text)
            if isinstance(part, TextPart) and part.blob
            else part
            for part in content
        ]
    )


async def _text(blob: BlobRef, blobs: Blobs) -> str | None:
    found = await blobs.get(blob.id)
    return found[0].decode(errors="replace") if found else None
