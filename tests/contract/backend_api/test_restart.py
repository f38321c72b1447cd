"""After a restart: what was open is taken up, what was running is never run again."""

import asyncio

import pytest

from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    RequestOpened,
    ToolCalled,
    ToolFinished,
    ToolStarted,
)
from palaver.schema.view import ToolBlock, Trigger
from palaver.tools.toolbox import Toolbox
from tests.contract.backend_api.rig import FIRST, agent, serve, tool_results
from tests.provider import (
    Answer,
    Call,
    ScriptedProvider,
)
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import MemoryTurn, allow, deny, drive


async def stopped_while_asking(wire: str, service: ScriptedProvider, box: Toolbox) -> MemoryTurn:
    turn = MemoryTurn("hi")
    async with agent(wire, service, tools=box) as backend:
        running = asyncio.create_task(drive(backend, turn))
        await turn.opened(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    return turn


@pytest.mark.parametrize("verdict", ["allow", "deny"])
async def test_request_answered_after_a_restart_is_honoured(wire: str, verdict: str) -> None:
    shell = CountingTool("shell")
    box = toolbox(shell)
    async with serve(Answer.of("I look.", FIRST), Answer.of("There.")) as service:
        turn = await stopped_while_asking(wire, service, box)
        state = turn.restart()
        assert state.status == "waiting_user_input"
        request = state.requests[0]
        turn.resolve(allow(request) if verdict == "allow" else deny(request))
        trigger = Trigger(kind="request", request=request.id)
        async with agent(wire, service, tools=box) as backend:
            again = await drive(backend, MemoryTurn(state=turn.state, trigger=trigger))
        assert [known.refused for known in service.requests] == [None, None]
    assert len(shell.runs) == (1 if verdict == "allow" else 0)
    assert again.of(RequestOpened) == []
    assert len(again.of(ToolFinished)) == 1
    assert again.finished.outcome == "completed"
    tools = [block for message in again.history for block in message.blocks if isinstance(block, ToolBlock)]
    assert [tool.status for tool in tools] == ["ok" if verdict == "allow" else "denied"]


async def test_request_still_open_after_a_restart_is_waited_for_under_its_id(wire: str) -> None:
    """Of two waiting calls one was answered; the turn that goes on waits for the other."""
    shell = CountingTool("shell")
    box = toolbox(shell)
    calls = (FIRST, Call(name="shell", input={"command": "pwd"}))
    async with serve(Answer.of(*calls), Answer.of("There.")) as service:
        turn = await stopped_while_asking(wire, service, box)
        state = turn.restart()
        first, second = state.requests
        turn.resolve(allow(first))
        resumed = MemoryTurn(state=turn.state, trigger=Trigger(kind="request", request=first.id))
        async with agent(wire, service, tools=box) as backend, asyncio.TaskGroup() as tasks:
            tasks.create_task(drive(backend, resumed))
            (waiting,) = await resumed.opened(1)
            assert waiting.id == second.id
            resumed.resolve(allow(second))
    assert shell.runs == [{"command": "ls"}, {"command": "pwd"}]
    assert resumed.of(RequestOpened) == []
    assert resumed.finished.outcome == "completed"


async def test_yes_given_before_a_restart_is_void_when_the_world_changed(wire: str) -> None:
    shell = CountingTool("shell")
    box = toolbox(shell)
    async with serve(Answer.of(FIRST), Answer.of("There.")) as service:
        turn = await stopped_while_asking(wire, service, box)
        state = turn.restart()
        turn.resolve(allow(state.requests[0]))
        shell.world = "another"
        async with agent(wire, service, tools=box) as backend:
            again = await drive(backend, MemoryTurn(state=turn.state, decide=deny))
    assert shell.runs == []
    assert len(again.of(RequestOpened)) == 1


@pytest.mark.parametrize("settled", [True, False])
async def test_call_that_was_running_when_the_server_died_never_runs_again(wire: str, settled: bool) -> None:
    shell = CountingTool("shell")
    begun = MemoryTurn("hi")
    begun.accept(AnswerStarted(message="m"))
    begun.accept(ToolCalled(message="m", block=0, call="c", name="shell", input={"command": "ls"}))
    begun.accept(AnswerFinished(message="m", finish_reason="tool_calls"))
    begun.accept(ToolStarted(call="c", grant="rule"))
    await begun.committed()
    async with serve(Answer.of("ok")) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        state = begun.restart() if settled else begun.state
        again = await drive(backend, MemoryTurn("go on", state=state, decide=allow))
        told = tool_results(service.bodies[0])
    assert shell.runs == []
    assert told == ["Interrupted, effect unknown."]
    assert again.error is None
