"""Answers and boundaries: what the model says reaches the log whole, and messages join between steps."""

import asyncio
from collections.abc import Mapping
from typing import Any

from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    TextDelta,
    TextFinished,
    ToolCalled,
    TurnFinished,
    TurnStatus,
)
from palaver.schema.records import AgentRecord
from palaver.tools.base import ToolResult, Workplace
from tests.contract.backend_api.rig import FIRST, WIRES, agent, kinds, serve, text_of, told
from tests.provider import (
    Answer,
    Call,
    Gate,
    Say,
    Think,
)
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import MemoryTurn, drive


async def test_turn_streams_text_and_finishes_with_usage(wire: str) -> None:
    answer = Answer(blocks=(Say(text="Hello there, person."),), chunk_chars=5, cached_tokens=4)
    async with serve(answer) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    finished = turn.of(AnswerFinished)[0]
    assert "".join(delta.text for delta in turn.of(TextDelta)) == "Hello there, person."
    assert turn.of(TextFinished)[0].text == "Hello there, person."
    assert (finished.finish_reason, finished.model) == ("stop", "scripted-1")
    assert finished.usage is not None
    assert (finished.usage.input_tokens, finished.usage.cached_tokens, finished.usage.output_tokens) == (10, 4, 5)
    assert (turn.finished.outcome, turn.finished.usage) == ("completed", finished.usage)
    assert turn.state.status == "idle"
    assert turn.of(TurnStatus)[0].status == "working"


async def test_request_carries_prompt_settings_and_tools(wire: str) -> None:
    shell = CountingTool("shell")
    record = AgentRecord(id="a", name="A", model="agents-own", system_prompt="Be brief.", params={"temperature": 0.5})
    turn = MemoryTurn("hi", agent=record, params={"max_tokens": 321, "model": "chosen"})
    async with serve(Answer.of("ok")) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        await drive(backend, turn)
        body = service.bodies[0]
    bound = "max_output_tokens" if wire == "responses" else "max_tokens"
    assert (body["model"], body[bound], body["temperature"]) == ("chosen", 321, 0.5)
    match wire:
        case "anthropic":
            system = body["system"][0]["text"]
        case "responses":
            system = body["instructions"]
        case _:
            system = body["messages"][0]["content"]
    assert system.startswith("Be brief.")
    assert "/nowhere" in system
    assert "2025-10-09" in system
    tool = body["tools"][0]
    assert (tool["function"] if wire == "openai" else tool)["name"] == "shell"


async def test_model_defaults_to_the_first_the_service_lists(wire: str) -> None:
    answers = (Answer.of("ok"), Answer.of("ok"))
    async with serve(*answers, models=("text-embedding-3", "local-7b")) as service, agent(wire, service) as backend:
        await drive(backend, MemoryTurn("hi"))
        await drive(backend, MemoryTurn("hi", agent=AgentRecord(id="a", name="A", model="agents-own")))
        assert [body["model"] for body in service.bodies] == ["local-7b", "agents-own"]


async def test_thinking_of_one_provider_never_reaches_another() -> None:
    shell = CountingTool("shell", reads_only=True)
    box = toolbox(shell)
    first = Answer.of(Think(text="secret thought", signature="scripted-1"), FIRST)
    async with serve(first, Answer.of("over")) as service, agent("anthropic", service, tools=box) as backend:
        turn = await drive(backend, MemoryTurn("hi", params={"thinking_budget": 1024}))
    for wire in WIRES:
        async with serve(Answer.of("ok")) as service, agent(wire, service, tools=box) as backend:
            again = await drive(backend, MemoryTurn("more", state=turn.state, params={"thinking_budget": 1024}))
            assert again.error is None
            assert "secret thought" not in str(service.bodies[0])
            assert "scripted-1" not in str(told(service.bodies[0]))


async def test_thinking_is_left_off_for_a_tool_loop_that_has_none_to_show() -> None:
    """Begun with one service, gone on with another: a budget would be refused."""
    shell = CountingTool("shell", reads_only=True)
    begun = MemoryTurn("hi")
    begun.accept(AnswerStarted(message="m"))
    begun.accept(ToolCalled(message="m", block=0, call="c", name="shell", input={}))
    begun.accept(AnswerFinished(message="m", finish_reason="tool_calls"))
    async with serve(Answer.of("ok")) as service, agent("anthropic", service, tools=toolbox(shell)) as backend:
        turn = await drive(backend, begun)
        assert turn.error is None
        assert "thinking" not in service.bodies[0]


async def test_length_ends_the_turn_and_says_so(wire: str) -> None:
    async with serve(Answer.of("Once upon", stop="length")) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert turn.of(AnswerFinished)[0].finish_reason == "length"
    assert turn.finished.outcome == "limited"
    assert turn.finished.error is not None
    assert "max_tokens" in turn.finished.error.message


async def test_refusal_ends_the_turn_and_says_so(wire: str) -> None:
    async with serve(Answer.of("I", stop="refusal")) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert (turn.of(AnswerFinished)[0].finish_reason, turn.finished.outcome) == ("refusal", "failed")


async def test_empty_answer_completes_the_turn(wire: str) -> None:
    async with serve(Answer.of()) as service, agent(wire, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert kinds(turn.events) == ["AnswerStarted", "AnswerFinished", "TurnFinished"]


async def test_message_at_a_boundary_joins_before_the_next_model_call(wire: str) -> None:
    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        turn.deliver("also this")
        return ToolResult(ok=True)

    turn = MemoryTurn("hi")
    script = (Answer.of(Call(name="read")), Answer.of("both done"))
    box = toolbox(CountingTool("read", work, reads_only=True))
    async with serve(*script) as service, agent(wire, service, tools=box) as backend:
        await drive(backend, turn)
        assert "also this" in str(told(service.bodies[1])[-1])
        assert len(service.requests) == 2


async def test_message_that_comes_during_the_last_answer_gets_its_own(wire: str) -> None:
    turn = MemoryTurn("hi")
    script = (Answer.of("half", Gate(name="g"), " and whole"), Answer.of("more"))
    async with serve(*script) as service, agent(wire, service) as backend, asyncio.TaskGroup() as tasks:
        tasks.create_task(drive(backend, turn))
        await service.gates.reached("g")
        turn.deliver("one more thing")
        service.gates.open("g")
    assert text_of(turn) == "hihalf and wholeone more thingmore"
    assert len(turn.of(TurnFinished)) == 1
