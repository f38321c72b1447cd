"""Thinking on its way through the log and back: the same bytes, in the same order, to the same service alone."""

from typing import Any

import msgspec
import pytest

from palaver.schema.events import ThinkingFinished, TurnFinished
from palaver.schema.view import ThinkingBlock, ToolBlock
from tests.contract.backend_api.rig import agent, serve
from tests.provider import Answer, Block, Call, Redacted, ScriptedProvider, Think
from tests.provider.anthropic import AnthropicWire
from tests.provider.responses import ResponsesWire
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import MemoryTurn, drive

Json = dict[str, Any]

ODD = 'First "ünïcode" — \u2028 and \\u0041\nthen a tool.\t😀'
INTERLEAVED: tuple[Block, ...] = (
    Think(text=ODD, signature="scripted-a+/=="),
    Redacted(data="scripted-c2VjcmV0+/=="),
    Call(name="read", input={"path": "a"}),
    Think(text="And the other file.", signature="scripted-b+/=="),
    Call(name="read", input={"path": "b"}),
)


def issued(wire: str, answer: Answer, number: int) -> list[Json]:
    """The thinking that the service said, as it says it without a stream."""
    if wire == "anthropic":
        content = AnthropicWire().whole(answer, {"model": "m"}, number)["content"]
        return [block for block in content if "thinking" in block["type"]]
    output = ResponsesWire().whole(answer, {"model": "m"}, number)["output"]
    return [item for item in output if item["type"] == "reasoning"]


def returned(body: Json) -> list[Json]:
    """The thinking that was sent back."""
    if "input" in body:
        return [item for item in body["input"] if item.get("type") == "reasoning"]
    blocks = [block for message in body["messages"] for block in message["content"]]
    return [block for block in blocks if "thinking" in block["type"]]


def encoded(blocks: list[Json]) -> list[bytes]:
    return [msgspec.json.encode(block) for block in blocks]


def settings(wire: str) -> Json:
    return {"thinking_budget": 2048} if wire == "anthropic" else {"reasoning_effort": "low"}


async def think_in_a_loop(wire: str, service: ScriptedProvider) -> MemoryTurn:
    read = CountingTool("read", reads_only=True)
    async with agent(wire, service, tools=toolbox(read)) as backend:
        return await drive(backend, MemoryTurn("hi", params=settings(wire)))


@pytest.mark.parametrize("wire", ["anthropic", "responses"])
@pytest.mark.parametrize("chunk_chars", [1, 7, 1000])
async def test_thinking_between_calls_goes_back_byte_for_byte_in_every_later_step(wire: str, chunk_chars: int) -> None:
    first = Answer(blocks=INTERLEAVED, chunk_chars=chunk_chars)
    second = Answer(blocks=(Think(text="One more."), Call(name="read", input={"path": "c"})), chunk_chars=chunk_chars)
    async with serve(first, second, Answer.of("Finished.")) as service:
        turn = await think_in_a_loop(wire, service)
        bodies = service.bodies
    assert turn.error is None
    assert turn.finished.outcome == "completed"
    assert encoded(returned(bodies[1])) == encoded(issued(wire, first, 1))
    assert encoded(returned(bodies[2])) == encoded([*issued(wire, first, 1), *issued(wire, second, 2)])


@pytest.mark.parametrize("wire", ["anthropic", "responses"])
async def test_thoughts_and_calls_keep_their_places_in_the_log(wire: str) -> None:
    async with serve(Answer(blocks=INTERLEAVED), Answer.of("Finished.")) as service:
        turn = await think_in_a_loop(wire, service)
    blocks = [block for block in turn.history[1].blocks if isinstance(block, ThinkingBlock | ToolBlock)]
    places = [
        "redacted" if isinstance(block, ThinkingBlock) and block.redacted else block.__class__ for block in blocks
    ]
    assert places == [ThinkingBlock, "redacted", ToolBlock, ThinkingBlock, ToolBlock]
    assert turn.of(ThinkingFinished)[0].text == ODD


async def test_openai_thoughts_that_led_to_a_call_go_back() -> None:
    async with serve(Answer.of(Think(text=ODD), Call(name="read")), Answer.of("ok")) as service:
        await think_in_a_loop("openai", service)
        body = service.bodies[1]
    said = next(message for message in body["messages"] if message["role"] == "assistant")
    assert said["reasoning_content"] == ODD
    assert body["reasoning_effort"] == "low"


@pytest.mark.parametrize("lost", ["changed", "left out"])
async def test_service_refuses_thinking_that_was_tampered_with(lost: str) -> None:
    """The rig itself: what the tests above hold to would be noticed."""
    async with serve(Answer(blocks=INTERLEAVED), Answer.of("over"), Answer.of("never")) as service:
        turn = await think_in_a_loop("anthropic", service)
        assert turn.of(TurnFinished)
        body = service.bodies[1]
        content = body["messages"][1]["content"]
        if lost == "changed":
            content[0]["thinking"] += " "
        else:
            del content[3]
        with pytest.raises(Exception, match="cannot be modified"):
            AnthropicWire().check_kept(body, service.issued)
