"""The context meter: what fills the window, and when that is worth saying again. Pure; used after an answer."""

from collections.abc import Sequence

from msgspec import Struct

from palaver.context.tokens import message_tokens, result_tokens, text_tokens
from palaver.schema.view import ContextMeter, Message, ToolBlock

LEAST_CHANGE_TOKENS = 200
LEAST_CHANGE_SHARE = 0.02
"""Of the window: a meter that moves less does not seem to move."""


class Fixed(Struct, frozen=True):
    """What every request holds beside the conversation, in tokens."""

    system: int = 0
    tools: int = 0
    instructions: int = 0

    @property
    def tokens(self) -> int:
        return self.system + self.tools + self.instructions


def noticeable(known: ContextMeter | None, used_tokens: int, window_tokens: int | None) -> bool:
    if known is None or known.window_tokens != window_tokens or not known.breakdown:
        return True
    least = max(LEAST_CHANGE_TOKENS, int((window_tokens or 0) * LEAST_CHANGE_SHARE))
    return abs(known.used_tokens - used_tokens) >= least


def breakdown_of(shown: Sequence[Message], fixed: Fixed, used_tokens: int) -> dict[str, int]:
    """Tokens by what they are. The parts are estimates; together they come to what was counted."""
    results = knowledge = messages = 0
    for message in shown:
        if message.status == "superseded":
            continue
        recalled = text_tokens(message.knowledge.text) if message.knowledge else 0
        in_results = sum(result_tokens(block) for block in message.blocks if isinstance(block, ToolBlock))
        messages += message_tokens(message) - in_results - recalled
        knowledge += recalled
        results += in_results
    parts = {
        "system": fixed.system,
        "tools": fixed.tools,
        "instructions": fixed.instructions,
        "knowledge": knowledge,
        "messages": messages,
        "tool_results": results,
    }
    estimated = sum(parts.values()) or 1
    scaled = {name: tokens * used_tokens // estimated for name, tokens in parts.items()}
    scaled["messages"] += used_tokens - sum(scaled.values())
    return scaled
