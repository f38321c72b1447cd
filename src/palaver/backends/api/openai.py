"""The OpenAI Chat Completions format: requests out, streams in.

Used by the loop through the `Provider` seam. Spoken by nearly every local and hosted service, each with its own habits: what
is read here is lenient, what is sent is what they all take.
"""

from itertools import chain
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from palaver.backends.api.failure import Service
from palaver.backends.api.models import reasons
from palaver.backends.api.provider import (
    Began,
    ExtraPiece,
    FinishReason,
    ModelEvent,
    ModelRequest,
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

DEFAULT_URL = "https://api.openai.com"
DEFAULT_MODEL = "gpt-5.4"

FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "refusal",
}

TEXT, FIRST_CALL = 0, 1
"""The format has no block indices: text, then the calls by their own index; thoughts count down from -1."""

Json = dict[str, Any]


# -- requests


def own_headers(address: str, key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def request_body(request: ModelRequest, host: str = "") -> Json:
    # OpenAI's own reasoning models take only the new name of the bound, older servers only the old one.
    bound = "max_completion_tokens" if host.endswith(("openai.com", "azure.com")) else "max_tokens"
    told: list[Json] = [{"role": "system", "content": request.system}] if request.system else []
    body: Json = {
        "model": request.model,
        "messages": [*told, *chain.from_iterable(request.written.each(request.messages, _messages))],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    if request.max_tokens is not None:
        body[bound] = request.max_tokens
    body.update(_sampling(request))
    if request.reasoning_effort:
        body["reasoning_effort"] = request.reasoning_effort
    return body


def _sampling(request: ModelRequest) -> Json:
    """Models that reason refuse all of it. A thinking budget is unknown to this format."""
    if reasons(request.model):
        return {}
    names = ("temperature", "top_p", "frequency_penalty", "presence_penalty")
    return {name: value for name in names if (value := getattr(request, name)) is not None}


def _tool(spec: ToolSpec) -> Json:
    function = {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
    return {"type": "function", "function": function}


def _messages(message: PromptMessage) -> list[Json]:
    match message:
        case UserMessage():
            results: list[Json] = [
                {"role": "tool", "tool_call_id": part.call, "content": part.text}
                for part in message.parts
                if isinstance(part, Outcome)
            ]
            said = [_person_part(part) for part in message.parts if not isinstance(part, Outcome)]
            return [*results, {"role": "user", "content": _plain(said)}] if said else results
        case AssistantMessage():
            return [_answer(message)]


def _person_part(part: Text | Image) -> Json:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image():
            return {"type": "image_url", "image_url": {"url": f"data:{part.mime};base64,{part.base64}"}}


def _plain(parts: list[Json]) -> str | list[Json]:
    """One text is a plain string: small servers know nothing else."""
    only = parts[0] if len(parts) == 1 else {}
    return only["text"] if only.get("type") == "text" else parts


def _answer(message: AssistantMessage) -> Json:
    text = "\n\n".join(part.text for part in message.parts if isinstance(part, Text))
    calls = [_call(part) for part in message.parts if isinstance(part, Call)]
    answer: Json = {"role": "assistant", "content": text or None}
    if calls:
        answer["tool_calls"] = calls
        # Services that think aloud want the thoughts that led to a call back, and only those.
        plain = (part.text for part in message.parts if isinstance(part, Thought) and part.data is None)
        if thoughts := "\n".join(plain):
            answer["reasoning_content"] = thoughts
    if details := [detail for part in message.parts if isinstance(part, Thought) and (detail := _detail(part))]:
        answer["reasoning_details"] = details
    return answer


def _detail(thought: Thought) -> Json:
    """A thought as a gateway gave it, for the model behind it to check; empty when it was not given so."""
    try:
        kept: Json = msgspec.json.decode(thought.data or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
    if not kept:
        return {}
    if thought.text:
        kept["summary" if kept.get("type") == "reasoning.summary" else "text"] = thought.text
    return {**kept, "signature": thought.signature} if thought.signature else kept


def _call(call: Call) -> Json:
    arguments = msgspec.json.encode(call.arguments).decode()
    made: Json = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
    return {**made, "extra_content": call.opaque} if call.opaque is not None else made


# -- streams. Flat structs with only what is used: an unknown field costs nothing and breaks nothing.


class _Function(Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


class _CallDelta(Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: Any = None


class _Detail(Struct, frozen=True, omit_defaults=True):
    """A piece of a thought, as gateways pass it on."""

    type: str
    id: str | None = None
    format: str | None = None
    index: int | None = None
    text: str | None = None
    summary: str | None = None
    data: str | None = None
    signature: str | None = None


class _Delta(Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[_Detail] | None = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(Struct, frozen=True):
    delta: Raw = Raw(b"null")
    finish_reason: str | None = None


class _InputDetails(Struct, frozen=True):
    cached_tokens: int | None = None


class _OutputDetails(Struct, frozen=True):
    reasoning_tokens: int | None = None


class _Counts(Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None


class _Chunk(Struct, frozen=True):
    model: str | None = None
    choices: list[_Choice] = []
    usage: _Counts | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Chunk)
_delta_decoder = msgspec.json.Decoder(_Delta | None)
_names_decoder = msgspec.json.Decoder(dict[str, Raw])

_READ = frozenset({*_Delta.__struct_fields__, "role", "server_content_blocks"})
"""Fields of a delta that are read, say nothing, or have a meaning of their own for clients."""
EXTRA_LEVELS = 32
"""How deep a field may be nested to be kept: whatever is saved must be readable again."""
_NOTHING = frozenset({b"null", b'""', b"[]", b"{}"})


class OpenAiReader:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._began = False
        self._thoughts = 0
        self._is_thinking = False
        self.ended = False
        self.stopped = False

    def read(self, data: bytes) -> list[ModelEvent]:
        if data.strip() == b"[DONE]":
            self.ended = True
            return []
        chunk = _decoder.decode(data)
        if chunk.error is not None:
            raise self._failure(chunk.error)
        found: list[ModelEvent] = []
        if not self._began:
            self._began = True
            found.append(Began(chunk.model))
        for choice in chunk.choices[:1]:
            if (delta := _delta_decoder.decode(choice.delta)) is not None:
                self._pieces(delta, found)
                found.extend(_extra(choice.delta))
            if choice.finish_reason:
                self.stopped = True
                word = choice.finish_reason
                found.append(Stopped(FINISH_REASONS.get(word, "other"), word))
        if chunk.usage is not None:
            found.append(_usage(chunk.usage))
        return found

    def _failure(self, error: Any) -> Exception:
        fields = error if isinstance(error, dict) else {"message": str(error)}
        return self._service.failed(str(fields.get("type") or ""), str(fields.get("message") or ""))

    def _pieces(self, delta: _Delta, found: list[ModelEvent]) -> None:
        if delta.reasoning_details:
            found.extend(map(_thinking_of, delta.reasoning_details))
        elif thought := delta.reasoning_content or delta.reasoning:
            # A service that thinks again after it spoke has a new thought.
            self._thoughts += not self._is_thinking
            self._is_thinking = True
            found.append(ThinkingPiece(-self._thoughts, thought))
        if text := delta.content or delta.refusal:
            self._is_thinking = False
            found.append(TextPiece(TEXT, text))
        for at, call in enumerate(delta.tool_calls or ()):
            self._is_thinking = False
            function = call.function or _Function()
            index = FIRST_CALL + (at if call.index is None else call.index)
            found.append(ToolPiece(index, call.id, function.name, function.arguments or "", call.extra_content))


def _extra(delta: Raw) -> list[ModelEvent]:
    named = _names_decoder.decode(delta)
    unknown = {name: raw for name, raw in named.items() if name not in _READ and bytes(raw) not in _NOTHING}
    if not unknown:
        return []
    try:
        values = {name: msgspec.json.decode(raw) for name, raw in unknown.items()}
    except RecursionError:
        return []
    fields = {name: value for name, value in values.items() if _is_shallow(value, EXTRA_LEVELS)}
    return [ExtraPiece(fields)] if fields else []


def _is_shallow(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(one, levels - 1) for one in inner)


def _thinking_of(detail: _Detail) -> ThinkingPiece:
    fixed = replace(detail, text=None, summary=None, signature=None)
    return ThinkingPiece(
        detail.index,
        detail.text or detail.summary or "",
        detail.signature,
        msgspec.json.encode(fixed).decode(),
        detail.id,
        detail.type,
    )


def _usage(counts: _Counts) -> UsageSeen:
    details, spent = counts.prompt_tokens_details, counts.completion_tokens_details
    return UsageSeen(
        Usage(
            input_tokens=counts.prompt_tokens or 0,
            output_tokens=counts.completion_tokens or 0,
            cached_tokens=(details.cached_tokens or 0) if details else 0,
            reasoning_tokens=(spent.reasoning_tokens or 0) if spent else 0,
        )
    )


CHAT_COMPLETIONS = Format(
    name="openai",
    path="/chat/completions",
    default_url=DEFAULT_URL,
    default_model=DEFAULT_MODEL,
    headers=own_headers,
    body=request_body,
    reader=OpenAiReader,
)
