"""The Anthropic Messages format: requests out, streams in.

Used by the loop through the `Provider` seam. Also spoken by other services. Thinking goes back byte for byte with its
signature, because the service checks it.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct

from palaver.backends.api.collect import parse_arguments
from palaver.backends.api.failure import Service
from palaver.backends.api.models import takes_both_samplings, takes_budget, takes_effort, takes_sampling
from palaver.backends.api.provider import (
    Began,
    CitationPiece,
    FinishReason,
    ModelEvent,
    ModelRequest,
    ServerPiece,
    Stopped,
    TextPiece,
    ThinkingPiece,
    ToolPiece,
    UsageSeen,
)
from palaver.backends.api.wire import Format
from palaver.context.prompt import AssistantMessage, Call, Image, Outcome, PromptMessage, Text, Thought, UserMessage
from palaver.schema.base import Usage
from palaver.tools.base import ToolSpec

DEFAULT_URL = "https://api.anthropic.com"
DEFAULT_MODEL = "claude-sonnet-5"
API_VERSION = "2023-06-01"
MAX_TOKENS = 16_000
"""The format demands a bound. Current models may write more; this one fits a long answer with its thinking."""
INTERLEAVED = "interleaved-thinking-2025-05-14"
"""Older models think between their calls only when asked for it so. Said to Anthropic alone: others may refuse the word."""
LEAST_BUDGET_TOKENS = 1_024
"""The smallest thinking budget the service takes."""

BUDGETS: tuple[tuple[str, int], ...] = (("low", 2_048), ("medium", 8_192), ("high", 16_384), ("xhigh", 32_768))
"""How many tokens a word of effort stands for, where a model knows only one of the two."""
MARK = {"cache_control": {"type": "ephemeral"}}
"""What stands before a mark is read from the service's cache in the next step. A request may have four."""
MARKED_TURNS = 2
"""The latest user messages. The one before the last was the last in the step before: that is where the cache is found."""

FINISH_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
}

Json = dict[str, Any]


# -- requests


def own_headers(address: str, key: str) -> dict[str, str]:
    own = {"anthropic-version": API_VERSION}
    if key:
        own["x-api-key"] = key
    if address == DEFAULT_URL:
        own["anthropic-beta"] = INTERLEAVED
    return own


def request_body(request: ModelRequest, host: str = "") -> Json:
    max_tokens = request.max_tokens or MAX_TOKENS
    thinking = _thinking(request)
    if thinking.get("type") == "enabled" and max_tokens <= thinking["budget_tokens"]:
        max_tokens = thinking["budget_tokens"] + MAX_TOKENS
    body: Json = {
        "model": request.model,
        "max_tokens": max_tokens,
        "stream": True,
        "messages": request.written.each(request.messages, _message),
    }
    if request.system:
        body["system"] = [{"type": "text", "text": request.system}]
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    if thinking:
        body["thinking"] = thinking
    else:
        body.update(_sampling(request))
    if effort := _effort(request):
        body["output_config"] = {"effort": effort}
    _mark(body)
    return body


def _mark(body: Json) -> None:
    """Tools and prompt, which stay the same, and the ends of the latest user messages. The same places in every step."""
    # Tools stand before the prompt, so that a mark on the prompt covers both.
    if fixed := body.get("system") or body.get("tools"):
        fixed[-1].update(MARK)
    messages = body["messages"]
    said = [place for place, message in enumerate(messages) if message["role"] == "user"]
    for place in said[-MARKED_TURNS:]:
        *before, last = messages[place]["content"]
        # Anew: what was written is used again, and then stands elsewhere.
        messages[place] = {**messages[place], "content": [*before, {**last, **MARK}]}


def _sampling(request: ModelRequest) -> Json:
    """With thinking on, and by newer models always, any of it is refused. Penalties are unknown to this format."""
    if not takes_sampling(request.model):
        return {}
    if request.temperature is not None and (request.top_p is None or not takes_both_samplings(request.model)):
        return {"temperature": min(request.temperature, 1.0)}
    chosen = {"temperature": request.temperature, "top_p": request.top_p}
    return {name: min(value, 1.0) for name, value in chosen.items() if value is not None}


def _thinking(request: ModelRequest) -> Json:
    if budget_tokens := _budget_tokens(request):
        # With a budget, an answer under way must begin with its thinking. One by another provider has none to show.
        if _lacks_its_thinking(request.messages):
            return {}
        return {"type": "enabled", "budget_tokens": max(budget_tokens, LEAST_BUDGET_TOKENS)}
    if _effort(request):
        # Without the word, newer models keep their thinking from the person.
        return {"type": "adaptive", "display": "summarized"}
    return {}


def _budget_tokens(request: ModelRequest) -> int | None:
    if not takes_budget(request.model):
        return None
    if request.thinking_budget_tokens is None and not takes_effort(request.model):
        return dict(BUDGETS).get(_word(request) or "", BUDGETS[-1][1] if _word(request) else 0)
    return request.thinking_budget_tokens


def _effort(request: ModelRequest) -> str | None:
    if not takes_effort(request.model):
        return None
    if request.thinking_budget_tokens and not takes_budget(request.model) and not _word(request):
        return next((word for word, tokens in BUDGETS if request.thinking_budget_tokens <= tokens), BUDGETS[-1][0])
    return _word(request)


def _word(request: ModelRequest) -> str | None:
    """OpenAI's two smallest words have no counterpart here."""
    match request.reasoning_effort:
        case None | "" | "none":
            return None
        case "minimal":
            return "low"
        case effort:
            return effort


def _lacks_its_thinking(messages: tuple[PromptMessage, ...]) -> bool:
    match messages:
        case (*_, AssistantMessage(parts), UserMessage((Outcome(), *_))):
            return not isinstance(parts[0], Thought)
        case _:
            return False


def _tool(spec: ToolSpec) -> Json:
    return {"name": spec.name, "description": spec.description, "input_schema": dict(spec.parameters)}


def _message(message: PromptMessage) -> Json:
    match message:
        case UserMessage():
            return {"role": "user", "content": [_part(part) for part in message.parts]}
        case AssistantMessage():
            return {"role": "assistant", "content": [_part(part) for part in message.parts if not _is_blank(part)]}


def _is_blank(part: Text | Thought | Call) -> bool:
    """A thought that was begun and never thought."""
    return isinstance(part, Thought) and not (part.text or part.signature or part.data)


def _part(part: Outcome | Text | Image | Thought | Call) -> Json:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image():
            source = {"type": "base64", "media_type": part.mime, "data": part.base64}
            return {"type": "image", "source": source}
        case Outcome():
            result: Json = {"type": "tool_result", "tool_use_id": part.call, "content": part.text}
            return {**result, "is_error": True} if part.failed else result
        case Thought(data=str()):
            return {"type": "redacted_thinking", "data": part.data}
        case Thought():
            return {"type": "thinking", "thinking": part.text, "signature": part.signature or ""}
        case Call():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments}


# -- streams. Flat structs with only what is used: an unknown field or event costs nothing and breaks nothing.


class _Counts(Struct, frozen=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Start(Struct, frozen=True):
    model: str | None = None
    usage: _Counts | None = None


class _Block(Struct, frozen=True):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    input: Any = None


class _Delta(Struct, frozen=True):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    citation: Any = None
    stop_reason: str | None = None


class _Failure(Struct, frozen=True):
    type: str = ""
    message: str = ""


class _Event(Struct, frozen=True):
    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Start | None = None
    usage: _Counts | None = None
    error: _Failure | None = None


_decoder = msgspec.json.Decoder(_Event)


_SHARED = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})
"""Blocks that every loop knows. Any other is the service's own: a tool that it ran itself, and what that found."""


@dataclass(slots=True)
class _Own:
    block: dict[str, Any]
    arguments: list[str] = field(default_factory=list[str])

    def whole(self) -> dict[str, Any]:
        arguments = "".join(self.arguments)
        return {**self.block, "input": parse_arguments(arguments)} if arguments else self.block


class AnthropicReader:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._usage = _Counts()
        self._own: dict[int, _Own] = {}
        self.ended = False
        self.stopped = False

    def read(self, data: bytes) -> list[ModelEvent]:
        event = _decoder.decode(data)
        match event.type:
            case "content_block_delta":
                if event.delta is None:
                    return []
                if (own := self._own.get(event.index)) is not None:
                    own.arguments.append(event.delta.partial_json)
                    return []
                return _delta(event.index, event.delta)
            case "content_block_start":
                block = event.content_block
                if block is not None and block.type and block.type not in _SHARED:
                    self._own[event.index] = _Own(msgspec.json.decode(data)["content_block"])
                return [] if block is None else _start_block(event.index, block)
            case "content_block_stop":
                own = self._own.pop(event.index, None)
                return [] if own is None else [ServerPiece(own.whole())]
            case "message_start":
                start = event.message or _Start()
                return [Began(start.model), *self._count(start.usage)]
            case "message_delta":
                found: list[ModelEvent] = [*self._count(event.usage)]
                if event.delta is not None and event.delta.stop_reason:
                    self.stopped = True
                    word = event.delta.stop_reason
                    found.append(Stopped(FINISH_REASONS.get(word, "other"), word))
                return found
            case "message_stop":
                self.ended = True
                return []
            case "error":
                failure = event.error or _Failure()
                raise self._service.failed(failure.type, failure.message)
            case _:
                return []

    def _count(self, counts: _Counts | None) -> list[UsageSeen]:
        """Later counts replace earlier ones field by field; the service leaves out what did not change."""
        if counts is None:
            return []
        old = self._usage
        self._usage = new = _Counts(
            *(
                getattr(old, name) if (value := getattr(counts, name)) is None else value
                for name in _Counts.__struct_fields__
            )
        )
        cached = new.cache_read_input_tokens or 0
        fresh = (new.input_tokens or 0) + (new.cache_creation_input_tokens or 0)
        usage = Usage(input_tokens=fresh + cached, cached_tokens=cached, output_tokens=new.output_tokens or 0)
        return [UsageSeen(usage, new.cache_creation_input_tokens or 0)]


def _start_block(index: int, block: _Block) -> list[ModelEvent]:
    match block.type:
        case "text":
            return [TextPiece(index, block.text)] if block.text else []
        case "thinking":
            return [ThinkingPiece(index, block.thinking, block.signature or None)]
        case "redacted_thinking":
            return [ThinkingPiece(index, "", None, block.data, kind="redacted")]
        case "tool_use":
            # Some services send all the arguments here and no fragments.
            arguments = msgspec.json.encode(block.input).decode() if block.input else ""
            return [ToolPiece(index, block.id, block.name, arguments)]
        case _:
            return []


def _delta(index: int, delta: _Delta) -> list[ModelEvent]:
    match delta.type:
        case "text_delta":
            return [TextPiece(index, delta.text)]
        case "thinking_delta":
            return [ThinkingPiece(index, delta.thinking)]
        case "input_json_delta":
            return [ToolPiece(index, arguments=delta.partial_json)]
        case "signature_delta":
            return [ThinkingPiece(index, "", delta.signature)]
        case "citations_delta" if delta.citation:
            return [CitationPiece(index, delta.citation)]
        case _:
            return []


MESSAGES = Format(
    name="anthropic",
    path="/messages",
    default_url=DEFAULT_URL,
    default_model=DEFAULT_MODEL,
    headers=own_headers,
    body=request_body,
    reader=AnthropicReader,
)
