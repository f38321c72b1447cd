"""Tools whose call is a question: the answer is the result, whenever it comes and whoever gives it."""

import asyncio

import pytest

from palaver.approval.policy import Policy, Rule
from palaver.schema.events import RequestOpened, RequestResolved, ToolFinished, ToolStarted
from palaver.schema.view import Request, Trigger
from tests.contract.backend_api.rig import FIRST, agent, serve, tool_results
from tests.provider import Answer, Call
from tests.provider.tools import AskingTool, CountingTool, toolbox
from tests.provider.turn import MemoryTurn, allow, deny, drive

WIRE = "openai"
WHICH = Call(name="ask", input={"question": "Which?"})


def say(request: Request, text: str = "The blue one") -> RequestResolved:
    return RequestResolved(request=request.id, status="answered", text=text)


def stop(request: Request) -> RequestResolved:
    return RequestResolved(request=request.id, status="answered", verdict="deny", then="stop")


async def test_question_is_opened_for_its_call_and_answered_as_its_result() -> None:
    async with (
        serve(Answer.of(WHICH), Answer.of("Blue then.")) as service,
        agent(WIRE, service, tools=toolbox(AskingTool())) as backend,
    ):
        turn = await drive(backend, MemoryTurn("hi", decide=say))
        told = tool_results(service.bodies[1])
    (asked,), (result,) = turn.of(RequestOpened), turn.of(ToolFinished)
    assert (asked.kind, asked.tool, asked.call, asked.title) == ("question", "ask", result.call, "Which?")
    assert asked.questions[0].question == "Which?"
    assert told == ["Which? The blue one"]
    assert (result.ok, result.effect) == (True, "none")
    assert turn.of(ToolStarted) == []
    assert turn.finished.outcome == "completed"


@pytest.mark.parametrize(
    ("status", "verdict"), [("answered", "deny"), ("expired", "deny"), ("cancelled", None), ("superseded", None)]
)
async def test_question_without_an_answer_is_a_failed_result_and_the_turn_goes_on(status: str, verdict: str) -> None:
    def decide(request: Request) -> RequestResolved:
        return RequestResolved(request=request.id, status=status, verdict=verdict)  # type: ignore[arg-type]

    async with (
        serve(Answer.of(WHICH), Answer.of("Then as I like.")) as service,
        agent(WIRE, service, tools=toolbox(AskingTool())) as backend,
    ):
        turn = await drive(backend, MemoryTurn("hi", decide=decide))
    (result,) = turn.of(ToolFinished)
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("no_answer", f"no answer ({status})")
    assert turn.finished.outcome == "completed"


async def test_question_declined_with_a_stop_ends_the_turn() -> None:
    async with serve(Answer.of(WHICH)) as service, agent(WIRE, service, tools=toolbox(AskingTool())) as backend:
        turn = await drive(backend, MemoryTurn("hi", decide=stop))
    assert turn.finished.outcome == "interrupted"
    assert turn.state.status == "idle"


async def test_question_outlives_a_restart_and_is_not_asked_twice() -> None:
    box = toolbox(AskingTool())
    async with serve(Answer.of(WHICH), Answer.of("Blue then.")) as service:
        turn = MemoryTurn("hi")
        async with agent(WIRE, service, tools=box) as backend:
            running = asyncio.create_task(drive(backend, turn))
            await turn.opened(1)
            running.cancel()
            await asyncio.wait({running})
        (request,) = turn.restart().requests
        assert (request.kind, request.status, request.questions[0].question) == ("question", "open", "Which?")
        turn.resolve(say(request))
        trigger = Trigger(kind="request", request=request.id)
        async with agent(WIRE, service, tools=box) as backend:
            again = await drive(backend, MemoryTurn(state=turn.state, trigger=trigger))
        assert tool_results(service.bodies[1]) == ["Which? The blue one"]
    assert again.of(RequestOpened) == []
    assert again.finished.outcome == "completed"


async def test_question_beside_other_calls_is_answered_in_any_order() -> None:
    shell = CountingTool("shell")
    turn = MemoryTurn("hi")
    async with (
        serve(Answer.of(FIRST, WHICH), Answer.of("ok")) as service,
        agent(WIRE, service, tools=toolbox(AskingTool(), shell)) as backend,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(drive(backend, turn))
        approval, question = await turn.opened(2)
        turn.resolve(say(question))
        await turn.seen(ToolFinished)
        assert shell.runs == []
        turn.resolve(allow(approval))
    assert tool_results(service.bodies[1]) == ["shell done", "Which? The blue one"]


async def test_question_with_bad_arguments_is_not_asked() -> None:
    call = Call(name="ask", input={})
    async with (
        serve(Answer.of(call), Answer.of("ok")) as service,
        agent(WIRE, service, tools=toolbox(AskingTool())) as backend,
    ):
        turn = await drive(backend, MemoryTurn("hi", decide=deny))
    assert turn.of(RequestOpened) == []
    assert [result.error.code for result in turn.of(ToolFinished) if result.error] == ["bad_arguments"]


async def test_question_can_be_forbidden_and_is_allowed_in_plan_mode() -> None:
    forbidden = toolbox(AskingTool(), policy=Policy((Rule("ask", "deny_continue"),)))
    async with serve(Answer.of(WHICH), Answer.of("ok"), Answer.of(WHICH), Answer.of("ok")) as service:
        async with agent(WIRE, service, tools=forbidden) as backend:
            refused = await drive(backend, MemoryTurn("hi", decide=say))
        async with agent(WIRE, service, tools=toolbox(AskingTool())) as backend:
            planned = await drive(backend, MemoryTurn("hi", decide=say, params={"mode": "plan"}))
    assert refused.of(RequestOpened) == []
    assert [result.ok for result in planned.of(ToolFinished)] == [True]
