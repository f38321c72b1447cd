"""The bodies of model requests, in both formats, held to the rules of the services."""

from typing import Any

from palaver.backends.api import anthropic, openai
from palaver.backends.api.provider import ModelRequest
from palaver.context.prompt import AssistantMessage, Call, Image, Outcome, Text, Thought, UserMessage
from palaver.tools.base import ToolSpec
from tests.provider.anthropic import AnthropicWire
from tests.provider.openai import OpenAiWire
from tests.provider.script import signature_of

SPEC = ToolSpec(name="read", description="Reads.", parameters={"type": "object", "properties": {}})
LOOP = (
    UserMessage((Text("look"), Image("image/png", "iVBORw0KGgo="))),
    AssistantMessage((Thought("hm", signature_of("hm")), Text("so"), Call("c1", "read", {"path": "a"}))),
    UserMessage((Outcome("c1", "nothing there", failed=True), Text("and now?"))),
)


def request(**fields: Any) -> ModelRequest:
    return ModelRequest(**{"model": "m", "system": "Be brief.", "messages": LOOP, "tools": (SPEC,), **fields})


def test_anthropic_body_is_what_the_service_takes() -> None:
    body = anthropic.request_body(request(thinking_budget_tokens=2000, temperature=0.3))
    AnthropicWire().check(body)
    assert body["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "nothing there", "is_error": True},
        {"type": "text", "text": "and now?", "cache_control": {"type": "ephemeral"}},
    ]
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert "temperature" not in body


def test_anthropic_bound_leaves_room_for_the_thinking_budget() -> None:
    body = anthropic.request_body(request(thinking_budget_tokens=20_000, max_tokens=1000))
    AnthropicWire().check(body)
    assert body["max_tokens"] > 20_000


def test_anthropic_effort_makes_thinking_adaptive() -> None:
    body = anthropic.request_body(request(reasoning_effort="high"))
    AnthropicWire().check(body)
    assert body["thinking"]["type"] == "adaptive"
    assert body["output_config"] == {"effort": "high"}
    assert "thinking" not in anthropic.request_body(request(reasoning_effort="none"))


def test_anthropic_thinking_is_off_when_the_answer_under_way_has_none() -> None:
    without = (LOOP[0], AssistantMessage((Call("c1", "read", {}),)), UserMessage((Outcome("c1", "x"),)))
    body = anthropic.request_body(request(messages=without, thinking_budget_tokens=2000))
    AnthropicWire().check(body)
    assert "thinking" not in body
    after = (*without, AssistantMessage((Text("done"),)), UserMessage((Text("more"),)))
    assert "thinking" in anthropic.request_body(request(messages=after, thinking_budget_tokens=2000))


def test_openai_body_is_what_the_service_takes() -> None:
    body = openai.request_body(request(temperature=0.3, max_tokens=100, reasoning_effort="low"))
    OpenAiWire().check(body)
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool", "user"]
    assert body["messages"][1]["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="
    assert body["messages"][2]["reasoning_content"] == "hm"
    assert body["messages"][4]["content"] == "and now?"
    assert body["max_tokens"] == 100


def test_openai_thoughts_go_back_only_with_the_call_they_led_to() -> None:
    spoken = (LOOP[0], AssistantMessage((Thought("hm"), Text("so"))), UserMessage((Text("more"),)))
    assert "reasoning_content" not in str(openai.request_body(request(messages=spoken)))


def test_openai_opaque_data_of_a_call_goes_back() -> None:
    called = (LOOP[0], AssistantMessage((Call("c1", "read", {}, {"google": 1}),)), UserMessage((Outcome("c1", "x"),)))
    body = openai.request_body(request(messages=called))
    OpenAiWire().check(body)
    assert body["messages"][2]["tool_calls"][0]["extra_content"] == {"google": 1}
    assert body["messages"][2]["content"] is None
