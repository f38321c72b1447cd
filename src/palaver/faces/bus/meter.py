"""How full a conversation's context is, as the bus tells it: pure."""

from collections.abc import Sequence

from palaver.core.state import message_count
from palaver.faces.bus.frames import Json, Told
from palaver.schema.base import Usage
from palaver.schema.events import AnswerFinished, ContextMeasured
from palaver.schema.view import Block, State, TextBlock


def tell_context(event: ContextMeasured, after: State) -> Told:
    counted = None if event.estimated else Usage(input_tokens=event.used_tokens)
    base = meter(after, event.stage or "prepared", event.used_tokens, counted)
    data: Json = dict(base.data or {})
    data["message_count"] = event.message_count or data["message_count"]
    data["char_count"] = event.char_count or data["char_count"]
    return Told("run", "context_usage", data=data, id=base.id)


def tell_usage(event: AnswerFinished, after: State) -> list[Told]:
    if event.usage is None:
        return []
    known = after.context.used_tokens if after.context else event.usage.input_tokens
    return [meter(after, "answered", known, event.usage)]


def meter(after: State, stage: str, tokens: int, counted: Usage | None = None) -> Told:
    data: Json = {
        "agent_id": after.turn.agent if after.turn else after.agent,
        "stage": stage,
        "message_count": message_count(after),
        "char_count": sum(len(texts(message.blocks)) for message in after.messages),
        "estimated_tokens": tokens,
        "compressed": bool(after.compressions),
        "summary_count": sum(known.stage == "summarize" for known in after.compressions),
    }
    if after.context is not None and after.context.window_tokens is not None:
        data["token_limit"] = after.context.window_tokens
    if counted is not None:
        data["actual_prompt_tokens"] = counted.input_tokens
        if counted.output_tokens:
            data["actual_completion_tokens"] = counted.output_tokens
    return Told("run", "context_usage", data=data, id=f"context-{after.conversation}")


def texts(blocks: Sequence[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
