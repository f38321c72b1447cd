"""What we send, held to the types of the makers' own client packages: every field known, every value of its kind."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import msgspec
import pytest
from pydantic import TypeAdapter, ValidationError

from palaver.backends.api import anthropic, openai, responses
from palaver.backends.api.provider import ModelRequest
from palaver.context.prompt import AssistantMessage, Call, Image, Outcome, PromptMessage, Text, Thought, UserMessage
from palaver.tools.base import ToolSpec
from tests.provider.anthropic import AnthropicWire
from tests.provider.openai import OpenAiWire
from tests.provider.responses import ResponsesWire, encrypted_of
from tests.provider.script import signature_of
from tests.provider.wire import Wire

# The official packages warn of what they mean to drop.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

Json = dict[str, Any]
Build = Callable[[ModelRequest], Json]

SPEC = ToolSpec(
    name="read",
    description="Reads.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


def signed(text: str) -> Thought:
    return Thought(text, signature_of(text))


def sealed(text: str) -> Thought:
    summary = [{"type": "summary_text", "text": text}] if text else []
    item = {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": encrypted_of("rs_1", text)}
    return Thought(text, None, msgspec.json.encode(item).decode())


def plain(text: str) -> Thought:
    return Thought(text)


def histories(thought: Callable[[str], Thought]) -> dict[str, tuple[PromptMessage, ...]]:
    said = UserMessage((Text("look"),))
    looped = (
        said,
        AssistantMessage((thought("hm"), Text("so"), Call("c1", "read", {"path": "a"}), Call("c2", "read", {}))),
        UserMessage((Outcome("c1", "nothing there", failed=True), Outcome("c2", "text"), Text("and now?"))),
    )
    return {
        "a word": (said,),
        "an image": (UserMessage((Text("what is it?"), Image("image/png", "iVBORw0KGgo="))),),
        "talk": (
            said,
            AssistantMessage((Text("yes\n\n[interrupted]"),)),
            UserMessage((Text("more"), Text("and more"))),
        ),
        "calls": looped,
        "thinking between calls": (
            *looped,
            AssistantMessage(
                (thought("first"), Call("c3", "read", {"ü": [1, None, {}]}), thought("then"), Text("done"))
            ),
            UserMessage((Outcome("c3", "ok"),)),
        ),
    }


SETTINGS: dict[str, Json] = {
    "none": {},
    "sampling": {
        "temperature": 0.3,
        "top_p": 0.9,
        "frequency_penalty": 1.0,
        "presence_penalty": -1.0,
        "max_tokens": 10,
    },
    "budget": {"thinking_budget_tokens": 2000, "temperature": 0.3},
    "effort": {"reasoning_effort": "high", "max_tokens": 4000},
    "least effort": {"reasoning_effort": "minimal"},
}
MODELS = {
    "anthropic": ("house", "claude-sonnet-4-5", "claude-sonnet-4-6", "claude-opus-5"),
    "openai": ("house", "gpt-4o", "gpt-5.4"),
    "responses": ("house", "gpt-4o", "gpt-5.4"),
}
FORMATS: dict[str, tuple[Build, Wire, Callable[[str], Thought]]] = {
    "anthropic": (anthropic.request_body, AnthropicWire(), signed),
    "openai": (openai.request_body, OpenAiWire(), plain),
    "responses": (responses.request_body, ResponsesWire(), sealed),
}


@cache
def official(format: str) -> TypeAdapter[Any]:
    """Imported here: the packages are large, and most runs of tests need none of them."""
    match format:
        case "anthropic":
            from anthropic.types.message_create_params import MessageCreateParamsStreaming

            return TypeAdapter(MessageCreateParamsStreaming)
        case "openai":
            from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

            return TypeAdapter(CompletionCreateParamsStreaming)
        case _:
            from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

            return TypeAdapter(ResponseCreateParamsStreaming)


def validated(format: str, body: Json) -> Any:
    """What the official types make of a body. They check their lists only when these are read."""
    return _read(official(format).validate_python(body))


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _read(part) for name, part in value.items()}
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return value
    return [_read(part) for part in value]


def bodies(format: str) -> Iterable[tuple[str, Json]]:
    build, _, thought = FORMATS[format]
    for history, messages in histories(thought).items():
        for setting, fields in SETTINGS.items():
            for model in MODELS[format]:
                for system, tools in (("Be brief.", (SPEC,)), ("", ())):
                    request = ModelRequest(model=model, system=system, messages=messages, tools=tools, **fields)
                    body = msgspec.json.decode(msgspec.json.encode(build(request)))
                    yield f"{history}, {setting}, {model}, {'with' if tools else 'without'} tools", body


@pytest.mark.parametrize("format", FORMATS)
def test_every_body_is_what_the_official_types_know(format: str) -> None:
    for name, body in bodies(format):
        for message in body.get("messages", ()):
            # Not OpenAI's: a field of those servers that stream their reasoning.
            message.pop("reasoning_content", None)
        if format == "anthropic" and "opus-5" not in body["model"]:
            # Dropped with the models that refuse them (2.8); older models, and other servers, still take them.
            body.pop("temperature", None)
            body.pop("top_p", None)
        assert validated(format, body) == body, name


@pytest.mark.parametrize("format", FORMATS)
def test_every_body_is_what_the_scripted_service_takes(format: str) -> None:
    wire = FORMATS[format][1]
    for name, body in bodies(format):
        try:
            wire.check(body)
        except Exception as refusal:
            raise AssertionError(name) from refusal


def test_official_types_notice_what_is_wrong() -> None:
    """The rig itself."""
    right: Json = {"model": "m", "max_tokens": 1, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    assert validated("anthropic", right) == right
    assert validated("anthropic", {**right, "unheard_of": 1}) != {**right, "unheard_of": 1}
    with pytest.raises(ValidationError):
        validated("anthropic", {**right, "messages": [{"role": "nobody", "content": "hi"}]})
    with pytest.raises(ValidationError):
        validated("openai", {"model": "m", "stream": True, "messages": [{"role": "tool", "content": "no call"}]})
