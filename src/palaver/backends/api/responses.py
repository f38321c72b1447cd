"""The OpenAI Responses format: requests out, streams in.

Used by the loop through the `Provider` seam. Nothing is kept at the service: each request carries the whole conversation,
and reasoning goes back as the very bytes that came, because the service reads what is encrypted in them.
"""

from itertools import chain
from typing import Any

import msgspec
from msgspec import Raw, Struct

from palaver.backends.api.failure import Service
from palaver.backends.api.models import bare, reasons, takes_sampling
from palaver.backends.api.openai import DEFAULT_MODEL, DEFAULT_URL, own_headers
from palaver.backends.api.provider import (
    Began,
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

LEAST_OUTPUT_TOKENS = 16
"""The smallest bound the service takes."""
INCOMPLETE: dict[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "refusal"}
PARTS = 1_000
"""More parts than one item has: an item's place and a part's make one index."""

Json = dict[str, Any]


# -- requests


def request_body(request: ModelRequest, host: str = "") -> Json:
    body: Json = {
        "model": request.model,
        "input": list(chain.from_iterable(request.written.each(request.messages, _items))),
        "stream": True,
        "store": False,
    }
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    if request.max_tokens is not None:
        body["max_output_tokens"] = max(request.max_tokens, LEAST_OUTPUT_TOKENS)
    if _thinks(request):
        effort = {"effort": request.reasoning_effort} if request.reasoning_effort else {}
        body["reasoning"] = {**effort, "summary": "auto"}
        body["include"] = ["reasoning.encrypted_content"]
    elif takes_sampling(request.model):
        chosen = {"temperature": request.temperature, "top_p": request.top_p}
        body.update({name: value for name, value in chosen.items() if value is not None})
    return body


def _thinks(request: ModelRequest) -> bool:
    """OpenAI's own by their names; any other model when the person says how hard. The rest refuse the very word."""
    if bare(request.model).startswith(("gpt-3", "gpt-4", "chatgpt")):
        return False
    return reasons(request.model) or bool(request.reasoning_effort)


def _tool(spec: ToolSpec) -> Json:
    # Strict schemas forbid optional arguments, which most tools have.
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.parameters),
        "strict": False,
    }


def _items(message: PromptMessage) -> list[Any]:
    match message:
        case UserMessage():
            results: list[Any] = [
                {"type": "function_call_output", "call_id": part.call, "output": part.text}
                for part in message.parts
                if isinstance(part, Outcome)
            ]
            said = [_person_part(part) for part in message.parts if not isinstance(part, Outcome)]
            return [*results, {"role": "user", "content": said}] if said else results
        case AssistantMessage():
            return [item for part in message.parts if (item := _answer_part(part)) is not None]


def _person_part(part: Text | Image) -> Json:
    match part:
        case Text():
            return {"type": "input_text", "text": part.text}
        case Image():
            url = f"data:{part.mime};base64,{part.base64}"
            return {"type": "input_image", "image_url": url, "detail": "auto"}


def _answer_part(part: Thought | Text | Call) -> Json | Raw | None:
    match part:
        case Text():
            return {"role": "assistant", "content": part.text}
        case Call():
            arguments = msgspec.json.encode(part.arguments).decode()
            return {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": arguments}
        case Thought(data=str() as data) if _is_reasoning(data):
            return Raw(data.encode())
        case Thought():
            return None  # Its encrypted half never came; the words alone mean nothing to the service.


def _is_reasoning(data: str) -> bool:
    """A log may have been edited or imported: only what is whole goes into a request as it stands."""
    try:
        return _item_decoder.decode(data).type == "reasoning"
    except msgspec.DecodeError:
        return False


# -- streams. Flat structs with only what is used: an unknown field or event costs nothing and breaks nothing.


class _InputDetails(Struct, frozen=True):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(Struct, frozen=True):
    reasoning_tokens: int | None = None


class _Counts(Struct, frozen=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Failure(Struct, frozen=True):
    code: str | None = None
    type: str | None = None
    message: str | None = None


class _Incomplete(Struct, frozen=True):
    reason: str | None = None


class _Response(Struct, frozen=True):
    model: str | None = None
    usage: _Counts | None = None
    error: _Failure | None = None
    incomplete_details: _Incomplete | None = None


class _Item(Struct, frozen=True):
    type: str = ""
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    encrypted_content: str | None = None


class _Event(Struct, frozen=True):
    type: str = ""
    output_index: int = 0
    content_index: int = 0
    summary_index: int = 0
    delta: Any = None
    item: Raw = Raw(b"null")
    response: _Response | None = None
    code: str | None = None
    message: str | None = None
    error: _Failure | None = None


_decoder = msgspec.json.Decoder(_Event)
_item_decoder = msgspec.json.Decoder(_Item)


class ResponsesReader:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._parts: dict[int, int] = {}
        """The part of its summary that each thought is in."""
        self._argued: set[int] = set()
        """Calls whose arguments came in fragments."""
        self.ended = False
        self.stopped = False

    def read(self, data: bytes) -> list[ModelEvent]:
        event = _decoder.decode(data)
        at = event.output_index
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                return [TextPiece(at * PARTS + event.content_index, str(event.delta or ""))]
            case "response.reasoning_summary_text.delta":
                return [self._thinking_piece(at, event.summary_index, str(event.delta or ""))]
            case "response.reasoning_text.delta":
                return [self._thinking_piece(at, event.content_index, str(event.delta or ""))]
            case "response.function_call_arguments.delta":
                self._argued.add(at)
                return [ToolPiece(at * PARTS, arguments=str(event.delta or ""))]
            case "response.output_item.added":
                return self._add_item(at, _item_decoder.decode(event.item))
            case "response.output_item.done":
                return self._finish_item(at, event.item)
            case "response.created":
                return [Began(event.response.model if event.response else None)]
            case "response.completed" | "response.incomplete":
                return self._end_response(event.response or _Response())
            case "response.failed" | "error":
                raise self._failure(event)
            case _:
                return []

    def _thinking_piece(self, at: int, part: int, text: str) -> ThinkingPiece:
        """Summaries come in parts; each is a paragraph."""
        latest = self._parts.setdefault(at, part)
        self._parts[at] = part
        return ThinkingPiece(at * PARTS, text if part == latest else f"\n\n{text}")

    def _add_item(self, at: int, item: _Item) -> list[ModelEvent]:
        if item.type == "function_call":
            return [ToolPiece(at * PARTS, item.call_id, item.name)]
        return []

    def _finish_item(self, at: int, raw: Raw) -> list[ModelEvent]:
        item = _item_decoder.decode(raw)
        if item.type == "function_call" and at not in self._argued and item.arguments:
            # Some services send all the arguments at once and no fragments.
            return [ToolPiece(at * PARTS, item.call_id, item.name, item.arguments)]
        if item.type == "reasoning" and item.encrypted_content:
            return [ThinkingPiece(at * PARTS, "", None, bytes(raw).decode())]
        return []

    def _end_response(self, response: _Response) -> list[ModelEvent]:
        self.ended = self.stopped = True
        found: list[ModelEvent] = [_usage(response.usage)] if response.usage else []
        word = response.incomplete_details.reason if response.incomplete_details else None
        found.append(Stopped(INCOMPLETE.get(word, "other"), word) if word else Stopped("stop", "completed"))
        return found

    def _failure(self, event: _Event) -> Exception:
        failure = event.error or (event.response.error if event.response else None) or _Failure()
        code = failure.code or failure.type or event.code or ""
        return self._service.failed(code, failure.message or event.message or "")


def _usage(counts: _Counts) -> UsageSeen:
    details, spent = counts.input_tokens_details or _InputDetails(), counts.output_tokens_details or _OutputDetails()
    usage = Usage(
        input_tokens=counts.input_tokens or 0,
        output_tokens=counts.output_tokens or 0,
        cached_tokens=details.cached_tokens or 0,
        reasoning_tokens=spent.reasoning_tokens or 0,
    )
    return UsageSeen(usage, details.cache_write_tokens or 0)


RESPONSES = Format(
    name="openai-responses",
    path="/responses",
    default_url=DEFAULT_URL,
    default_model=DEFAULT_MODEL,
    headers=own_headers,
    body=request_body,
    reader=ResponsesReader,
)
