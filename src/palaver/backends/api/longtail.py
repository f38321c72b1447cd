"""Google and the many other services, through `pydantic_ai.direct`: an extra, because it is large.

Used by the loop through the `Provider` seam, for providers whose kind we do not speak ourselves. The library is imported
aside when a model is first asked: it takes seconds. It neither retries nor runs tools here; what it attaches to thoughts and
calls (signatures, ids) goes back as it came.
"""

import asyncio
import base64
import importlib
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from palaver.backends.api.endpoint import CONNECT_TIMEOUT_S, READ_TIMEOUT_S
from palaver.backends.api.failure import Service
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
from palaver.context.prompt import AssistantMessage, Call, Image, Outcome, Text, Thought, UserMessage
from palaver.errors import AgentError, NotInstalled, ProviderRefused, ProviderUnavailable
from palaver.schema.base import Usage

HOSTS = {
    "google": "generativelanguage.googleapis.com",
    "groq": "api.groq.com",
    "mistral": "api.mistral.ai",
    "cohere": "api.cohere.com",
    "xai": "api.x.ai",
}
"""For people and prices; the library itself knows where to go."""
DEFAULT_MODELS = {"google": "gemini-3.5-flash", "groq": "openai/gpt-oss-120b", "mistral": "mistral-large-latest"}
EXTRA = "Install it with `pip install 'palaver[providers]'` and start the server again."

ATTACHED = ("id", "provider_name", "provider_details")
"""What the library attaches to thoughts and calls, and wants back."""

FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_call": "tool_calls",
    "length": "length",
    "content_filter": "refusal",
}


def longtail_provider(
    kind: str,
    base_url: str | None,
    api_key: str | None,
    model: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    read_timeout_s: float = READ_TIMEOUT_S,
) -> "LongTailProvider":
    return LongTailProvider(kind, base_url, api_key, model, headers or {}, read_timeout_s)


@dataclass(frozen=True, slots=True)
class _Library:
    """The parts of it that are used. Untyped: it need not be there."""

    direct: Any
    errors: Any
    messages: Any
    models: Any
    providers: Any
    tools: Any

    @staticmethod
    def load() -> "_Library":
        names = ("direct", "exceptions", "messages", "models", "providers", "tools")
        try:
            return _Library(*(importlib.import_module(f"pydantic_ai.{name}") for name in names))
        except ImportError as error:
            raise NotInstalled(f"This provider needs the extra [providers], which is not installed. {EXTRA}") from error


class LongTailProvider:
    def __init__(
        self,
        kind: str,
        base_url: str | None,
        api_key: str | None,
        model: str | None,
        headers: Mapping[str, str],
        read_timeout_s: float,
    ) -> None:
        self._kind = kind
        self._base_url = base_url
        self._api_key = api_key
        self._model = model
        self._headers = dict(headers)
        self._read_timeout_s = read_timeout_s
        host = (base_url or HOSTS.get(kind, kind)).split("://", 1)[-1].split("/", 1)[0]
        self._host = host
        self._service = Service(address=host, secrets=(api_key or "", *headers.values()))
        self._library: _Library | None = None
        self._connected: Any = None
        self._client: Any = None
        """Where the library takes one from us."""

    @property
    def identity(self) -> str:
        return f"{self._kind}@{self._host}"

    async def default_model(self) -> str:
        chosen = self._model or DEFAULT_MODELS.get(self._kind)
        if chosen is None:
            raise ProviderRefused(f"Say which model of {self._host} to use: it has no usual one.", status=404)
        return chosen

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        library = await self._load()
        try:
            model = library.models.infer_model(f"{self._kind}:{request.model}", lambda _name: self._connected)
            opened = library.direct.model_request_stream(
                model,
                Translation(library, self._connected).messages(request),
                model_settings=self._settings(request),
                model_request_parameters=library.models.ModelRequestParameters(
                    function_tools=_tools(library, request), allow_text_output=True
                ),
            )
            async with opened as stream:
                yield Began(stream.model_name)
                async for event in _pieces(self._with_timeouts(stream)):
                    yield event
                whole = stream.get()
        except AgentError:
            raise
        except Exception as error:
            raise self._failure(library, error, request.model) from error
        yield _usage(whole.usage)
        if whole.finish_reason is None:
            raise self._service.cut()
        yield Stopped(FINISH_REASONS.get(whole.finish_reason, "other"), str(whole.finish_reason))

    async def close(self) -> None:
        connected, self._connected = self._connected, None
        if connected is not None:
            with suppress(Exception):
                await connected.__aexit__(None, None, None)
        if self._client is not None:
            await self._client.aclose()

    # -- the library

    async def _load(self) -> _Library:
        if self._library is None:
            self._library = await asyncio.to_thread(_Library.load)
        if self._connected is None:
            try:
                made = await asyncio.to_thread(self._connect, self._library)
            except ImportError as error:
                raise NotInstalled(f"The provider {self._kind} needs more than is installed: {error}") from error
            except Exception as error:
                # A border: every service has its own way to say that something is missing.
                raise ProviderRefused(
                    f"The provider {self._kind} cannot be used. {self._service.words(str(error))}", status=401
                ) from error
            self._connected = await made.__aenter__()
        return self._library

    def _connect(self, library: _Library) -> Any:
        kind = library.providers.infer_provider_class(self._kind)
        given: dict[str, Any] = {"api_key": self._api_key, "base_url": self._base_url}
        if self._kind == "google":
            self._client = given["http_client"] = _client(self._read_timeout_s)
        known = inspect.signature(kind.__init__).parameters
        return kind(**{name: value for name, value in given.items() if value is not None and name in known})

    async def _with_timeouts(self, stream: Any) -> AsyncIterator[Any]:
        events = aiter(stream)
        while True:
            try:
                async with asyncio.timeout(self._read_timeout_s):
                    event = await anext(events)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise self._service.silent() from error
            yield event

    def _settings(self, request: ModelRequest) -> dict[str, Any]:
        """Retries are ours alone, each of them an event."""
        names = ("max_tokens", "temperature", "top_p", "frequency_penalty", "presence_penalty")
        settings: dict[str, Any] = {name: value for name in names if (value := getattr(request, name)) is not None}
        settings |= {"max_retries": 0, "timeout": self._read_timeout_s}
        if self._headers:
            settings["extra_headers"] = self._headers
        if self._kind == "google" and request.thinking_budget_tokens is not None:
            budget = {"thinking_budget": request.thinking_budget_tokens, "include_thoughts": True}
            settings["google_thinking_config"] = budget
        elif request.reasoning_effort:
            settings["thinking"] = False if request.reasoning_effort == "none" else request.reasoning_effort
        return settings

    def _failure(self, library: _Library, error: Exception, model: str) -> AgentError:
        errors = library.errors
        if isinstance(error, errors.ModelHTTPError):
            body = error.body if isinstance(error.body, dict) else {"message": str(error.body or "")}
            return self._service.refused(
                error.status_code, msgspec.json.encode(body, enc_hook=str), error.headers or {}, model
            )
        words = self._service.words(str(error))
        if isinstance(error, errors.ContentFilterError):
            return ProviderRefused(f"{self._host} declined this. {words}", reason="content")
        if isinstance(error, errors.UserError):
            return ProviderRefused(f"{self._host} cannot be asked so. {words}")
        if isinstance(error, errors.ModelAPIError):
            return ProviderUnavailable(f"{self._host} could not be reached, or broke off. {words}", unreachable=True)
        return ProviderUnavailable(f"{self._host} failed in the middle of an answer. {words}")


def _client(read_timeout_s: float) -> Any:
    """Google's library names its agent twice (3.1), which strict servers on the way refuse."""
    http: Any = importlib.import_module("httpx2")

    async def name_once(request: Any) -> None:
        request.headers["user-agent"] = request.headers.get("user-agent", "palaver")

    timeout = http.Timeout(read_timeout_s, connect=CONNECT_TIMEOUT_S)
    return http.AsyncClient(timeout=timeout, event_hooks={"request": [name_once]})


# -- requests


@dataclass(frozen=True, slots=True)
class Translation:
    """Our messages as the library's."""

    library: _Library
    connected: Any

    def messages(self, request: ModelRequest) -> list[Any]:
        made = self.library.messages
        names: dict[str, str] = {}
        found: list[Any] = []
        for message in request.messages:
            match message:
                case UserMessage():
                    found.append(
                        made.ModelRequest(parts=self._person_parts(message, names), instructions=request.system or None)
                    )
                case AssistantMessage():
                    names |= {part.id: part.name for part in message.parts if isinstance(part, Call)}
                    found.append(
                        made.ModelResponse(
                            parts=[self._answer_part(part) for part in message.parts],
                            provider_name=self.connected.name,
                            provider_url=self.connected.base_url,
                            canonical_system=self.connected.canonical_system,
                            model_name=request.model,
                        )
                    )
        return found

    def _person_parts(self, message: UserMessage, names: Mapping[str, str]) -> list[Any]:
        made = self.library.messages
        parts: list[Any] = [
            made.ToolReturnPart(
                tool_name=names.get(part.call, "unnamed"),
                content=part.text,
                tool_call_id=part.call,
                outcome="failed" if part.failed else "success",
            )
            for part in message.parts
            if isinstance(part, Outcome)
        ]
        said = [self._content(part) for part in message.parts if not isinstance(part, Outcome)]
        return [*parts, made.UserPromptPart(content=said)] if said else parts

    def _content(self, part: Text | Image) -> Any:
        match part:
            case Text():
                return part.text
            case Image():
                return self.library.messages.BinaryContent(data=base64.b64decode(part.base64), media_type=part.mime)

    def _answer_part(self, part: Thought | Text | Call) -> Any:
        made = self.library.messages
        match part:
            case Text():
                return made.TextPart(content=part.text)
            case Thought():
                return made.ThinkingPart(content=part.text, signature=part.signature, **_attach(part.data))
            case Call():
                kept = _attach(part.opaque)
                return made.ToolCallPart(tool_name=part.name, args=part.arguments, tool_call_id=part.id, **kept)


def _tools(library: _Library, request: ModelRequest) -> list[Any]:
    return [
        library.tools.ToolDefinition(
            name=spec.name, description=spec.description, parameters_json_schema=dict(spec.parameters)
        )
        for spec in request.tools
    ]


# -- streams


async def _pieces(events: AsyncIterator[Any]) -> AsyncIterator[ModelEvent]:
    argued: set[int] = set()
    async for event in events:
        match event.event_kind:
            case "part_start":
                for piece in _start_part(event.index, event.part, argued):
                    yield piece
            case "part_delta":
                for piece in _grow_part(event.index, event.delta, argued):
                    yield piece
            case "part_end":
                for piece in _end_part(event.index, event.part, argued):
                    yield piece
            case _:
                pass


def _start_part(index: int, part: Any, argued: set[int]) -> list[ModelEvent]:
    match part.part_kind:
        case "text":
            return [TextPiece(index, part.content)] if part.content else []
        case "thinking":
            return [ThinkingPiece(index, part.content)]
        case "tool-call":
            arguments = part.args if isinstance(part.args, str) else ""
            if arguments:
                argued.add(index)
            return [ToolPiece(index, part.tool_call_id, part.tool_name, arguments)]
        case _:
            return []


def _grow_part(index: int, delta: Any, argued: set[int]) -> list[ModelEvent]:
    match delta.part_delta_kind:
        case "text":
            return [TextPiece(index, delta.content_delta)] if delta.content_delta else []
        case "thinking":
            return [ThinkingPiece(index, delta.content_delta)] if delta.content_delta else []
        case "tool_call" if isinstance(delta.args_delta, str):
            argued.add(index)
            return [ToolPiece(index, arguments=delta.args_delta)]
        case _:
            return []


def _end_part(index: int, part: Any, argued: set[int]) -> list[ModelEvent]:
    """Only now what is attached to it is whole."""
    match part.part_kind:
        case "thinking":
            return [ThinkingPiece(index, "", part.signature, msgspec.json.encode(_own_fields(part)).decode())]
        case "tool-call":
            arguments = "" if index in argued or not part.args else part.args_as_json_str()
            return [ToolPiece(index, arguments=arguments, opaque=_own_fields(part) or None)]
        case _:
            return []


def _own_fields(part: Any) -> dict[str, Any]:
    return {name: value for name in ATTACHED if (value := getattr(part, name, None)) is not None}


def _attach(kept: Any) -> dict[str, Any]:
    """The same on its way back. A log may have been edited or imported: anything else is left out."""
    if isinstance(kept, str):
        try:
            kept = msgspec.json.decode(kept)
        except msgspec.DecodeError:
            return {}
    return {name: kept[name] for name in ATTACHED if name in kept} if isinstance(kept, dict) else {}


def _usage(usage: Any) -> UsageSeen:
    return UsageSeen(
        Usage(
            input_tokens=usage.input_tokens or 0,
            output_tokens=usage.output_tokens or 0,
            cached_tokens=usage.cache_read_tokens or 0,
            reasoning_tokens=usage.output_reasoning_tokens or 0,
        ),
        usage.cache_write_tokens or 0,
    )
