"""The built-in agent over a scripted service, in all wire formats."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from palaver.backends.api.anthropic import MESSAGES
from palaver.backends.api.loop import ApiBackend, Conduct
from palaver.backends.api.openai import CHAT_COMPLETIONS
from palaver.backends.api.responses import RESPONSES
from palaver.backends.api.route import only
from palaver.backends.api.wire import Format, WireProvider
from palaver.schema.events import ContextMeasured, KnownEvent
from palaver.schema.view import TextBlock
from palaver.tools.toolbox import Toolbox
from tests.provider import (
    Answer,
    Call,
    ScriptedProvider,
    scripted_provider,
)
from tests.provider.server import WIRES as FORMATS
from tests.provider.tools import toolbox
from tests.provider.turn import MemoryTurn

WIRES: dict[str, Format] = {"anthropic": MESSAGES, "openai": CHAT_COMPLETIONS, "responses": RESPONSES}
PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions", "responses": "/v1/responses"}


@asynccontextmanager
async def agent(
    wire: str,
    service: ScriptedProvider,
    *,
    tools: Toolbox | None = None,
    read_timeout_s: float = 20.0,
    key: str | None = "key",
    conduct: Conduct | None = None,
) -> AsyncIterator[ApiBackend]:
    provider = WireProvider(WIRES[wire], service.url, key, read_timeout_s=read_timeout_s)
    backend = ApiBackend(only(provider), tools or toolbox(), conduct or Conduct(chance=lambda: 1.0))
    try:
        yield backend
    finally:
        await backend.close()


Serve = Callable[..., AbstractAsyncContextManager[ScriptedProvider]]
serve: Serve = scripted_provider

FIRST = Call(name="shell", input={"command": "ls"})


def text_of(turn: MemoryTurn) -> str:
    blocks = [block for message in turn.history for block in message.blocks]
    return "".join(block.text for block in blocks if isinstance(block, TextBlock) and block.status == "done")


def tool_results(body: Mapping[str, Any]) -> list[str]:
    """What the model was told of its calls, in any format."""
    if "input" in body:
        return [item["output"] for item in body["input"] if item.get("type") == "function_call_output"]
    found: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            found.append(message["content"])
        elif isinstance(message["content"], list):
            found += [part["content"] for part in message["content"] if part["type"] == "tool_result"]
    return found


def told(body: Mapping[str, Any]) -> list[Any]:
    """The conversation as the model was shown it, in any format."""
    return list(body["input"] if "input" in body else body["messages"])


def kinds(events: list[KnownEvent]) -> list[str]:
    """Without the context meter, which follows every answer."""
    return [type(event).__name__ for event in events if not isinstance(event, ContextMeasured)]


def body_size(wire: str, answer: Answer) -> int:
    """The bytes of an answer on the wire, for tests that cut it."""
    body: dict[str, Any] = {"model": "m", "stream_options": {"include_usage": True}}
    return sum(len(frame) for frame in FORMATS[PATHS[wire]].frames(answer, body, 1) if isinstance(frame, bytes))
