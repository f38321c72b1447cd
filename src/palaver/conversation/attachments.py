"""What is too large for an event goes to a blob before anything is decided.

Called by the owner's door on every message that comes in. The reference is the hash of the bytes, so the same message
sent twice is still the same command.
"""

import base64
import binascii
import re

from msgspec.structs import replace

from palaver.errors import CallerError, Invalid, NotFound, TooLarge
from palaver.log.base import Blobs
from palaver.schema.content import Content, ImagePart, ImageUrl, Part, TextPart, as_content
from palaver.schema.view import Block, ImageBlock, Message, TextBlock, ThinkingBlock, ToolBlock

INLINE_TEXT_BYTES = 64 << 10
"""Text up to here stays in its event: an event may hold 256 KiB and the JSON of text can take thrice its bytes."""
HEAD_CHARS = 8_192
PLAIN = "text/plain; charset=utf-8"
MESSAGE_BYTES = 1 << 20
ATTACHMENT_BYTES = 10 << 20
ATTACHMENTS = 10
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,", re.ASCII)
_OWN_URL = re.compile(r"/api/blobs/([0-9a-f]{64})", re.ASCII)


async def with_blobs(content: str | Content, blobs: Blobs) -> Content:
    parts = as_content(content)
    if sum(isinstance(part, ImagePart) for part in parts) > ATTACHMENTS:
        raise TooLarge(f"A message may carry {ATTACHMENTS} attachments.", limit=ATTACHMENTS)
    size = sum(len(part.text.encode()) for part in parts if isinstance(part, TextPart))
    if size > MESSAGE_BYTES:
        raise TooLarge(
            f"A message may hold 1 MiB; this one holds {size:,} bytes. Attach it as a file instead.",
            limit_bytes=MESSAGE_BYTES,
            size_bytes=size,
        )
    return tuple([await _part_with_blob(part, blobs) for part in parts])


async def blocks_with_blobs(message: Message, blobs: Blobs) -> Message:
    """The same for a message from elsewhere. What cannot be brought along is said in its place, never refused."""
    return replace(message, blocks=tuple([await _block_with_blob(block, blobs) for block in message.blocks]))


async def _block_with_blob(block: Block, blobs: Blobs) -> Block:
    match block:
        case TextBlock():
            data = block.text.encode()
            if len(data) <= INLINE_TEXT_BYTES:
                return block
            return replace(block, text=block.text[:HEAD_CHARS], blob=await blobs.put(data, PLAIN))
        case ImageBlock():
            try:
                return ImageBlock(index=block.index, url=await _store(block.url, blobs))
            except CallerError:
                return TextBlock(index=block.index, text="(an image that was not brought along)")
        case ToolBlock():
            return await _tool_with_blob(block, blobs)
        case ThinkingBlock():
            return block


async def _tool_with_blob(tool: ToolBlock, blobs: Blobs) -> ToolBlock:
    if tool.blob is not None and await blobs.get(tool.blob.id) is None:
        tool = replace(tool, blob=None)
    data = tool.output.encode()
    if len(data) <= INLINE_TEXT_BYTES:
        return tool
    kept = f"{tool.output[:HEAD_CHARS]}\n…\n{tool.output[-HEAD_CHARS:]}"
    return replace(tool, output=kept, truncated=True, total_bytes=len(data), blob=await blobs.put(data, PLAIN))


async def _part_with_blob(part: Part, blobs: Blobs) -> Part:
    match part:
        case TextPart():
            data = part.text.encode()
            if part.blob is not None or len(data) <= INLINE_TEXT_BYTES:
                return part
            blob = await blobs.put(data, PLAIN)
            return replace(part, text=part.text[:HEAD_CHARS], blob=blob)
        case ImagePart():
            return ImagePart(image_url=ImageUrl(url=await _store(part.image_url.url, blobs)))


async def _store(url: str, blobs: Blobs) -> str:
    if own := _OWN_URL.fullmatch(url):
        if await blobs.get(own[1]) is None:
            raise NotFound("The image was never uploaded here. Upload it first, then send it.", url=url)
        return url
    match = _DATA_URL.match(url)
    if match is None:
        raise Invalid("An image must be a data URL or one of our own upload URLs; nothing remote is fetched.")
    if match[1] not in IMAGE_TYPES:
        raise Invalid(f"Images may be PNG, JPEG, GIF or WebP, not {match[1]}.")
    try:
        data = base64.b64decode(url[match.end() :], validate=True)
    except binascii.Error:
        raise Invalid("The image's data URL is not valid base64.") from None
    if len(data) > ATTACHMENT_BYTES:
        raise TooLarge("An attachment may hold 10 MiB.", limit_bytes=ATTACHMENT_BYTES)
    return f"/api/blobs/{(await blobs.put(data, match[1])).id}"
