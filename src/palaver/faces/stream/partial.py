"""An answer while it is being written, as the raw stream events of the Claude SDK: pure.

`message_start`, then for each block `content_block_start`, its deltas and `content_block_stop`, then `message_delta` and
`message_stop`: the inner `event` of a `stream_event` message. Derived from the event and the view before it alone, so that
a live reader and one that comes back are told the same. A log whose fragments were compacted gives each block in one delta.
"""

from typing import Any

import msgspec

from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    CitationAdded,
    Event,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolInputDelta,
)
from palaver.schema.view import Block, Message, State, TextBlock, ThinkingBlock, ToolBlock

Json = dict[str, Any]

STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
"""Why an answer ended, in the SDK's words; what has none there is told as it is."""


def stop_reason(event: AnswerFinished) -> str:
    return STOP_REASONS.get(event.finish_reason, event.finish_reason)


def stream_events(event: Event, before: State) -> list[Json]:
    """What one event of the log adds to the stream of its answer; `before` is the view before it."""
    match event:
        case AnswerStarted():
            return [*_close_open_blocks(_find(before, event.replaces), "message_stop"), _message_start(event, before)]
        case TextDelta():
            return _grow(event, before, _text(), _text_delta(event.text))
        case ThinkingDelta():
            return _grow(event, before, _thinking(), _thinking_delta(event.text))
        case CitationAdded():
            return _grow(event, before, _text(), None)
        case ToolInputDelta():
            return _grow(event, before, _tool_use(event), _input_delta(event.text))
        case TextFinished():
            rest = _rest(event.text, _block(event, before))
            return _finish(event, before, _text(), _text_delta(rest) if rest else None)
        case ThinkingFinished():
            rest = _rest(event.text, _block(event, before))
            signed = {"type": "signature_delta", "signature": event.signature} if event.signature else None
            return _finish(event, before, _thinking(), _thinking_delta(rest) if rest else None, signed)
        case ToolCalled():
            block = _block(event, before)
            streamed = isinstance(block, ToolBlock) and block.input_text
            whole = None if streamed else _input_delta(msgspec.json.encode(event.input, enc_hook=str).decode())
            return _finish(event, before, _tool_use(event), whole)
        case AnswerFinished():
            message = _find(before, event.message)
            if message is None or message.status != "streaming":
                return []
            return [*_close_open_blocks(message), _message_delta(event), {"type": "message_stop"}]
        case _:
            return []


# -- a message


def _message_start(event: AnswerStarted, before: State) -> Json:
    message: Json = {
        "id": event.message,
        "type": "message",
        "role": "assistant",
        "model": event.model or (before.turn.model if before.turn else None),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    return {"type": "message_start", "message": message}


def _message_delta(event: AnswerFinished) -> Json:
    usage = {"output_tokens": event.usage.output_tokens if event.usage else 0}
    return {
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(event), "stop_sequence": None},
        "usage": usage,
    }


def _close_open_blocks(message: Message | None, *last: str) -> list[Json]:
    """The ends of what a message that is still written has open."""
    if message is None or message.status != "streaming":
        return []
    stops = [_stop(block.index) for block in message.blocks if _is_open(block)]
    return [*stops, *({"type": name} for name in last)]


def _find(state: State, message: str | None) -> Message | None:
    return next((known for known in reversed(state.messages) if known.id == message), None)


# -- its blocks


_OfBlock = TextDelta | ThinkingDelta | ToolInputDelta | TextFinished | ThinkingFinished | ToolCalled | CitationAdded

_KINDS: dict[str, type[Block]] = {"text": TextBlock, "thinking": ThinkingBlock, "tool_use": ToolBlock}


def _grow(event: _OfBlock, before: State, content: Json, delta: Json | None) -> list[Json]:
    """A fragment of a block; where the view does not grow, nothing is told either."""
    if not _is_written(event, before):
        return []
    block = _block(event, before)
    if block is not None and not (_is_open(block) and isinstance(block, _KINDS[content["type"]])):
        return []
    began = [] if block is not None else [_start(event.block, content)]
    return [*began, *([_delta(event.block, delta)] if delta else [])]


def _finish(event: _OfBlock, before: State, content: Json, *deltas: Json | None) -> list[Json]:
    if not _is_written(event, before):
        return []
    block = _block(event, before)
    if block is not None and not _is_open(block):
        return []
    if block is not None and not isinstance(block, _KINDS[content["type"]]):
        return [_stop(event.block)]
    began = [] if block is not None else [_start(event.block, content)]
    return [*began, *(_delta(event.block, one) for one in deltas if one), _stop(event.block)]


def _is_written(event: _OfBlock, before: State) -> bool:
    message = _find(before, event.message)
    return message is not None and message.status == "streaming"


def _block(event: _OfBlock, before: State) -> Block | None:
    message = _find(before, event.message)
    return next((block for block in message.blocks if block.index == event.block), None) if message else None


def _is_open(block: Block) -> bool:
    match block:
        case TextBlock() | ThinkingBlock():
            return block.status == "streaming"
        case ToolBlock():
            return block.status == "input"
        case _:
            return False


def _rest(text: str, block: Block | None) -> str:
    """What was not streamed of a finished text."""
    streamed = block.text if isinstance(block, TextBlock | ThinkingBlock) else ""
    return text[len(streamed) :] if text.startswith(streamed) else ""


def _start(index: int, content: Json) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": content}


def _delta(index: int, delta: Json) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _stop(index: int) -> Json:
    return {"type": "content_block_stop", "index": index}


def _text() -> Json:
    return {"type": "text", "text": ""}


def _text_delta(text: str) -> Json:
    return {"type": "text_delta", "text": text}


def _thinking() -> Json:
    return {"type": "thinking", "thinking": "", "signature": ""}


def _thinking_delta(text: str) -> Json:
    return {"type": "thinking_delta", "thinking": text}


def _tool_use(event: ToolInputDelta | ToolCalled) -> Json:
    return {"type": "tool_use", "id": event.call, "name": event.name, "input": {}}


def _input_delta(text: str) -> Json:
    return {"type": "input_json_delta", "partial_json": text}
