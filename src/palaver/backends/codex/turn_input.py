"""What a turn says to Codex, as the input items of its protocol: the record that it has not seen, texts, images.

Used by the turn, for its beginning and for what joins it later. Whose words a text holds is decided by `briefing`.
"""

from collections.abc import Sequence
from typing import Any

from palaver.backends.base import Turn
from palaver.backends.turn_input import GO_ON, Words, words_of
from palaver.schema.view import Message


async def opening(turn: Turn, record: str) -> list[dict[str, Any]]:
    """The record as an item of its own: what the person says now stands by itself."""
    words = await words_of(turn, _trigger_messages(turn))
    return _items((words if words.text or words.images else Words(GO_ON)).after(record))


async def input_items(turn: Turn, messages: Sequence[Message]) -> list[dict[str, Any]]:
    return _items(await words_of(turn, messages))


def _items(words: Words) -> list[dict[str, Any]]:
    texts = [{"type": "text", "text": text} for text in (words.record, words.text) if text]
    return texts + [{"type": "image", "url": f"data:{image.mime};base64,{image.base64}"} for image in words.images]


def _trigger_messages(turn: Turn) -> list[Message]:
    own = [message for message in turn.history if message.turn == turn.id and message.role in ("user", "event")]
    active = turn.state.turn
    if own or active is None:
        return own
    return [message for message in turn.history if message.id in active.trigger.messages]
