"""What a person said, as Codex takes it: texts and images, and before them what it has not seen.

Used by the turn, for its beginning and for what joins it later. Nothing remote is fetched: an image is in the message or in
our own store, or the model is told that it cannot see it.
"""

from collections.abc import Sequence
from typing import Any

from palaver.backends.base import Turn
from palaver.context.images import blob_of, image_of
from palaver.context.prompt import Image
from palaver.schema.view import ImageBlock, Message, TextBlock

GO_ON = "Go on."
"""For a turn that nobody said anything to begin: a plan was approved, a mission came due."""


async def opening(turn: Turn, record: str) -> list[dict[str, Any]]:
    """The record as a part of its own: what the person says now stands by itself."""
    said = await spoken(turn, _asked(turn)) or [_text(GO_ON)]
    return [_text(record), *said] if record else said


async def spoken(turn: Turn, messages: Sequence[Message]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for message in messages:
        for block in message.blocks:
            match block:
                case TextBlock():
                    if text := await _whole(turn, block):
                        parts.append(_text(text))
                case ImageBlock():
                    parts.append(await _image(turn, block.url))
                case _:
                    pass
    return parts


def _asked(turn: Turn) -> list[Message]:
    own = [message for message in turn.history if message.turn == turn.id and message.role in ("user", "event")]
    active = turn.state.turn
    if own or active is None:
        return own
    return [message for message in turn.history if message.id in active.trigger.messages]


async def _whole(turn: Turn, block: TextBlock) -> str:
    data = await turn.load_blob(block.blob.id) if block.blob else None
    return block.text if data is None else data.decode(errors="replace")


async def _image(turn: Turn, url: str) -> dict[str, Any]:
    blob = blob_of(url)
    image = image_of(url, {blob: await turn.load_blob(blob)} if blob else {})
    if isinstance(image, Image):
        return {"type": "image", "url": f"data:{image.mime};base64,{image.base64}"}
    return _text(image.text)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
