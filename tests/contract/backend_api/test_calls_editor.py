"""Tools that the client itself executes: offered to the model, started, and waited for."""

import asyncio
from typing import Any

import pytest

from palaver.approval.policy import Policy, Rule
from palaver.schema.events import RequestOpened, ToolCalled, ToolFinished, ToolStarted
from tests.contract.backend_api.rig import agent, serve, tool_results
from tests.provider import Answer, Call
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import MemoryTurn, allow, drive

WIRE = "openai"
RENAME = {"name": "rename", "description": "Renames a symbol.", "parameters": {"type": "object", "properties": {}}}


def params(*names: str, **more: Any) -> dict[str, Any]:
    return {"ide_tools": [{**RENAME, "name": name} for name in names], **more}


def offered(body: Any) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools", [])]


async def test_editors_tools_are_offered_besides_the_others_and_take_no_name_of_theirs() -> None:
    read = CountingTool("read", reads_only=True)
    async with (
        serve(Answer.of(Call(name="read")), Answer.of("ok")) as service,
        agent(WIRE, service, tools=toolbox(read)) as backend,
    ):
        await drive(backend, MemoryTurn("hi", params=params("rename", "read")))
        assert offered(service.bodies[0]) == ["read", "rename"]
    assert len(read.runs) == 1


async def test_editors_calls_wait_for_their_results_in_any_order() -> None:
    calls = [Call(name="rename", input={"n": n}) for n in (1, 2, 3)]
    turn = MemoryTurn("hi", params=params("rename"))
    async with (
        serve(Answer.of(*calls), Answer.of("ok")) as service,
        agent(WIRE, service) as backend,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(drive(backend, turn))
        await turn.seen(ToolStarted)
        await turn.committed()
        assert turn.state.status == "waiting_ide"
        started = turn.of(ToolStarted)
        assert [one.grant for one in started] == ["ide"] * 3
        for call in reversed(started):
            assert len(service.requests) == 1
            turn.return_result(call.call, f"renamed {call.call}")
    assert turn.of(RequestOpened) == []
    assert tool_results(service.bodies[1]) == [f"renamed {call.call}" for call in turn.of(ToolCalled)]
    assert turn.finished.outcome == "completed"


async def test_editors_call_runs_alone_among_others() -> None:
    shell = CountingTool("shell")
    policy = Policy((Rule("shell", "allow"),))
    turn = MemoryTurn("hi", params=params("rename"))
    async with (
        serve(Answer.of(Call(name="rename"), Call(name="shell"), Call(name="rename")), Answer.of("ok")) as service,
        agent(WIRE, service, tools=toolbox(shell, policy=policy)) as backend,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(drive(backend, turn))
        await turn.seen(ToolStarted)
        assert shell.runs == []
        turn.return_result(turn.of(ToolStarted)[0].call, "done")
        while len(turn.of(ToolStarted)) < 3:
            await turn.committed()
        assert len(shell.runs) == 1
        turn.return_result(turn.of(ToolStarted)[2].call, "done")
    assert turn.finished.outcome == "completed"


async def test_stop_while_the_editor_works_leaves_the_effect_unknown_and_the_rest_undone() -> None:
    turn = MemoryTurn("hi", params=params("rename"))
    shell = CountingTool("shell")
    async with (
        serve(Answer.of(Call(name="rename"), Call(name="shell")), Answer.of("ok")) as service,
        agent(WIRE, service, tools=toolbox(shell)) as backend,
    ):
        running = asyncio.create_task(drive(backend, turn))
        await turn.seen(ToolStarted)
        running.cancel()
        await asyncio.wait({running})
        turn.interrupt()
    assert [result.effect for result in turn.of(ToolFinished)] == ["unknown", "none"]
    assert shell.runs == []


@pytest.mark.parametrize("decision", ["deny_continue", "deny_abort"])
async def test_rule_forbids_an_editors_tool(decision: Any) -> None:
    async with serve(Answer.of(Call(name="rename")), Answer.of("ok")) as service, agent(WIRE, service) as backend:
        policy = [{"tool": "rename", "decision": decision}]
        turn = await drive(backend, MemoryTurn("hi", params=params("rename", policy=policy)))
    assert turn.of(ToolStarted) == []
    assert turn.finished.outcome == ("failed" if decision == "deny_abort" else "completed")


async def test_rule_that_asks_asks_before_an_editors_tool() -> None:
    turn = MemoryTurn("hi", params=params("rename", policy=[{"tool": "*", "decision": "ask"}]), decide=allow)
    async with (
        serve(Answer.of(Call(name="rename")), Answer.of("ok")) as service,
        agent(WIRE, service) as backend,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(drive(backend, turn))
        await turn.seen(ToolStarted)
        (started,), (asked,) = turn.of(ToolStarted), turn.of(RequestOpened)
        assert (started.grant, started.request) == ("ide", asked.request)
        turn.return_result(started.call, "done")
    assert turn.finished.outcome == "completed"


async def test_plan_mode_keeps_the_editors_tools_away() -> None:
    async with serve(Answer.of(Call(name="rename")), Answer.of("ok")) as service, agent(WIRE, service) as backend:
        turn = await drive(backend, MemoryTurn("hi", params=params("rename", mode="plan")))
        assert offered(service.bodies[0]) == []
    assert turn.of(ToolStarted) == []
    assert "Plan mode" in str(turn.of(ToolFinished)[0].error)


async def test_tool_the_editor_took_back_meanwhile_is_unknown() -> None:
    async with serve(Answer.of(Call(name="rename")), Answer.of("ok")) as service, agent(WIRE, service) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert [result.error.code for result in turn.of(ToolFinished) if result.error] == ["unknown_tool"]
