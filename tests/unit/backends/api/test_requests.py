"""The bodies of model requests, in all formats, held to the rules of the services."""

from types import ModuleType
from typing import Any

import msgspec
import pytest

from palaver.backends.api import anthropic, openai, responses
from palaver.backends.api.provider import ModelRequest
from palaver.context.prompt import AssistantMessage, Call, Image, Outcome, Text, Thought, UserMessage, Written
from palaver.tools.base import ToolSpec
from tests.provider.anthropic import AnthropicWire
from tests.provider.openai import OpenAiWire
from tests.provider.responses import ResponsesWire, encrypted_of
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


def test_openai_thoughts_of_a_gateway_go_back_whole() -> None:
    kept = '{"type":"reasoning.text","format":"anthropic","index":0}'
    hidden = '{"type":"reasoning.encrypted","id":"r1","data":"x+/="}'
    parts = (Thought("hm", "s+/=", kept), Thought("", None, hidden), Call("c1", "read", {}))
    body = openai.request_body(request(messages=(LOOP[0], AssistantMessage(parts), UserMessage((Outcome("c1", "x"),)))))
    OpenAiWire().check(body)
    assert body["messages"][2]["reasoning_details"] == [
        {"type": "reasoning.text", "format": "anthropic", "index": 0, "text": "hm", "signature": "s+/="},
        {"type": "reasoning.encrypted", "id": "r1", "data": "x+/="},
    ]
    assert "reasoning_content" not in body["messages"][2]


def test_openai_models_that_reason_get_no_sampling() -> None:
    chosen = {"temperature": 0.3, "top_p": 0.5, "frequency_penalty": 1.0, "presence_penalty": 1.0}
    assert chosen.items() <= openai.request_body(request(**chosen)).items()
    assert not chosen.keys() & openai.request_body(request(model="gpt-5.4", **chosen)).keys()


def test_thoughts_of_an_edited_log_never_break_a_request() -> None:
    for data in ("not json", '{"type":"message","role":"system"}', "[]", "{}"):
        messages = (LOOP[0], AssistantMessage((Thought("", None, data), Text("so"))), UserMessage((Text("more"),)))
        built = responses.request_body(request(messages=messages))
        ResponsesWire().check(msgspec.json.decode(msgspec.json.encode(built)))
        assert [item.get("role") for item in built["input"]] == ["user", "assistant", "user"]
        OpenAiWire().check(openai.request_body(request(messages=messages)))


# -- prompt cache


def marks(body: dict[str, Any]) -> list[str]:
    """Where the marks stand."""
    places = [f"system.{at}" for at, block in enumerate(body.get("system", ())) if "cache_control" in block]
    places += [f"tools.{at}" for at, tool in enumerate(body.get("tools", ())) if "cache_control" in tool]
    for at, message in enumerate(body["messages"]):
        places += [f"{at}.{part}" for part, block in enumerate(message["content"]) if "cache_control" in block]
    return places


def test_anthropic_marks_prompt_and_the_two_latest_user_messages() -> None:
    steps = (*LOOP, AssistantMessage((Call("c2", "read", {}),)), UserMessage((Outcome("c2", "x"), Outcome("c3", "y"))))
    assert marks(anthropic.request_body(request(messages=LOOP[:1]))) == ["system.0", "0.1"]
    assert marks(anthropic.request_body(request())) == ["system.0", "0.1", "2.1"]
    assert marks(anthropic.request_body(request(messages=steps))) == ["system.0", "2.1", "4.1"]
    assert marks(anthropic.request_body(request(system=""))) == ["tools.0", "0.1", "2.1"]


def test_anthropic_step_repeats_the_bytes_before_its_latest_mark() -> None:
    """What was sent before must stand there again, mark aside, or the cache is never found."""

    def bare(body: dict[str, Any], messages: int) -> bytes:
        for block in (block for message in body["messages"] for block in message["content"]):
            block.pop("cache_control", None)
        return msgspec.json.encode([body["system"], body["tools"], body["messages"][:messages]])

    later = (*LOOP, AssistantMessage((Call("c2", "read", {}),)), UserMessage((Outcome("c2", "x"),)))
    assert bare(anthropic.request_body(request()), 3) == bare(anthropic.request_body(request(messages=later)), 3)


# -- what was written before


@pytest.mark.parametrize("format", [anthropic, openai, responses])
def test_body_with_what_was_written_before_is_the_same_as_one_made_anew(format: ModuleType) -> None:
    written = Written()
    later = (*LOOP, AssistantMessage((Call("c2", "read", {}),)), UserMessage((Outcome("c2", "x"),)))
    # As a turn goes: a step, the next one, an answer tried again, a history that was cut, another format in between.
    for messages in (LOOP, later, later, later[:1], later):
        again = format.request_body(request(messages=messages, written=written))
        openai.request_body(request(messages=messages[:1], written=written))
        assert msgspec.json.encode(again) == msgspec.json.encode(format.request_body(request(messages=messages)))


def test_message_is_written_once_until_a_picture_comes() -> None:
    made: list[object] = []

    def write(message: object) -> int:
        made.append(message)
        return len(made)

    written = Written()
    assert written.each(LOOP[1:], write) == [1, 2]
    assert written.each((*LOOP[1:], LOOP[0], LOOP[1]), write) == [1, 2, 3, 4]
    assert written.each((*LOOP[1:], LOOP[0], LOOP[1]), write) == [1, 2, 5, 6]


# -- settings that a model refuses


def test_anthropic_newer_models_get_effort_instead_of_a_budget_and_no_sampling() -> None:
    body = anthropic.request_body(
        request(model="claude-opus-5", thinking_budget_tokens=9000, temperature=0.3, top_p=0.4)
    )
    AnthropicWire().check(body)
    assert body["thinking"]["type"] == "adaptive"
    assert body["output_config"] == {"effort": "high"}
    assert not {"temperature", "top_p"} & body.keys()


def test_anthropic_older_models_get_a_budget_instead_of_effort() -> None:
    body = anthropic.request_body(request(model="claude-sonnet-4-5", reasoning_effort="medium"))
    AnthropicWire().check(body)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 8192}
    assert "output_config" not in body
    assert "thinking" not in anthropic.request_body(request(model="claude-sonnet-4-5", reasoning_effort="none"))


def test_anthropic_temperature_goes_before_top_p_where_only_one_is_taken() -> None:
    body = anthropic.request_body(request(model="claude-sonnet-4-5", temperature=1.5, top_p=0.4))
    AnthropicWire().check(body)
    assert body["temperature"] == 1.0
    assert "top_p" not in body
    assert anthropic.request_body(request(model="claude-sonnet-4-5", top_p=0.4))["top_p"] == 0.4


def test_anthropic_thought_that_was_never_thought_is_left_out() -> None:
    messages = (LOOP[0], AssistantMessage((Thought(""), Text("so"))), UserMessage((Text("more"),)))
    body = anthropic.request_body(request(messages=messages))
    AnthropicWire().check(body)
    assert [block["type"] for block in body["messages"][1]["content"]] == ["text"]


# -- Responses


def test_responses_body_is_what_the_service_takes() -> None:
    item = {"id": "rs_9", "type": "reasoning", "summary": [], "encrypted_content": encrypted_of("rs_9", "")}
    sealed = msgspec.json.encode(item).decode()
    messages = (LOOP[0], AssistantMessage((Thought("", None, sealed), *LOOP[1].parts)), LOOP[2])
    built = responses.request_body(request(messages=messages, model="gpt-5.4", reasoning_effort="low", max_tokens=5))
    body = msgspec.json.decode(msgspec.json.encode(built))
    ResponsesWire().check(body)
    assert [item.get("type", item.get("role")) for item in body["input"]] == [
        "user",
        "reasoning",
        "assistant",
        "function_call",
        "function_call_output",
        "user",
    ]
    assert body["input"][0]["content"][1]["image_url"] == "data:image/png;base64,iVBORw0KGgo="
    assert sealed.encode() in msgspec.json.encode(built)
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert (body["instructions"], body["max_output_tokens"]) == ("Be brief.", 16)


def test_responses_model_that_does_not_reason_gets_sampling_and_no_reasoning() -> None:
    body = responses.request_body(request(model="gpt-4o", temperature=0.3, top_p=0.5, reasoning_effort="low"))
    ResponsesWire().check(body)
    assert (body["temperature"], body["top_p"]) == (0.3, 0.5)
    assert not {"reasoning", "include"} & body.keys()
    assert "temperature" not in responses.request_body(request(model="gpt-5.4", temperature=0.3))
