"""A stop before, during and after each call of a batch, and while people are asked: one result each, nothing afterwards."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from palaver.approval.policy import Policy, Rule
from palaver.schema.events import RequestOpened, RequestResolved, ToolFinished, ToolStarted, TurnInterrupted
from palaver.schema.view import ToolBlock
from palaver.tools.base import ToolResult, Workplace
from tests.contract.backend_api.rig import agent, serve, tool_results
from tests.provider import Answer, Call
from tests.provider.tools import AskingTool, CountingTool, toolbox
from tests.provider.turn import DRIVE_S, MemoryTurn, allow, drive

WIRES = ("anthropic", "openai")
CALLS = [Call(name="shell", input={"n": n}) for n in range(3)]
FREE = Policy((Rule("shell", "allow"),))


class Halting:
    """Work that stops for ever in the call it is told to, before or after its effect."""

    def __init__(self, at: int, when: str) -> None:
        self.at, self.when = at, when
        self.effects: list[int] = []
        self.halted = asyncio.Event()

    async def __call__(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        number = int(arguments["n"])
        if number == self.at and self.when == "before":
            await self._halt()
        self.effects.append(number)
        if number == self.at:
            await self._halt()
        return ToolResult(ok=True, output=f"did {number}")

    async def _halt(self) -> None:
        self.halted.set()
        await asyncio.sleep(DRIVE_S)


def statuses(turn: MemoryTurn) -> list[str]:
    return [block.status for message in turn.history for block in message.blocks if isinstance(block, ToolBlock)]


async def next_request_is_well_formed(wire: str, turn: MemoryTurn) -> list[str]:
    """The service refuses a request in which a call lacks its result. What the model is told of the calls."""
    async with serve(Answer.of("ok")) as service, agent(wire, service) as backend:
        again = await drive(backend, MemoryTurn("go on", state=turn.state))
        assert [request.refused for request in service.requests] == [None]
        assert again.finished.outcome == "completed"
        return tool_results(service.bodies[0])


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", [0, 1, 2])
async def test_stop_in_each_call_of_a_batch_settles_all_of_them(wire: str, at: int, when: str) -> None:
    work = Halting(at, when)
    shell = CountingTool("shell", work)
    turn = MemoryTurn("hi")
    async with (
        serve(Answer.of(*CALLS)) as service,
        agent(wire, service, tools=toolbox(shell, policy=FREE)) as backend,
    ):
        running = asyncio.create_task(drive(backend, turn))
        async with asyncio.timeout(DRIVE_S):
            await work.halted.wait()
        running.cancel()
        await asyncio.wait({running})
        turn.interrupt()
    assert work.effects == list(range(at + (when == "after")))
    assert [result.effect for result in turn.of(ToolFinished)] == ["done"] * at + ["unknown"] + ["none"] * (2 - at)
    assert statuses(turn) == ["ok"] * at + ["interrupted"] * (3 - at)
    assert isinstance(turn.events[-1], TurnInterrupted)
    assert len(await next_request_is_well_formed(wire, turn)) == 3


@pytest.mark.parametrize("wire", WIRES)
async def test_stop_between_two_calls_runs_nothing_more(wire: str) -> None:
    """The grant of the second is on its way to the disk when the stop comes."""
    shell = CountingTool("shell")

    class Stopping(MemoryTurn):
        async def committed(self) -> None:
            await super().committed()
            if len(self.of(ToolStarted)) == 2:
                reached.set()
                await asyncio.sleep(DRIVE_S)

    reached = asyncio.Event()
    turn = Stopping("hi")
    async with (
        serve(Answer.of(*CALLS)) as service,
        agent(wire, service, tools=toolbox(shell, policy=FREE)) as backend,
    ):
        running = asyncio.create_task(drive(backend, turn))
        async with asyncio.timeout(DRIVE_S):
            await reached.wait()
        running.cancel()
        await asyncio.wait({running})
        turn.interrupt()
    assert shell.runs == [{"n": 0}]
    # The second may have begun for all the log knows; the third surely did not.
    assert [result.effect for result in turn.of(ToolFinished)] == ["done", "unknown", "none"]


@pytest.mark.parametrize("answered", [0, 1, 2])
async def test_stop_while_requests_are_open_runs_nothing_that_was_not_started(answered: int) -> None:
    work = Halting(0, "before")
    shell = CountingTool("shell", work)
    turn = MemoryTurn("hi")
    calls = (*CALLS, Call(name="ask", input={"question": "Which?"}))
    async with (
        serve(Answer.of(*calls)) as service,
        agent("openai", service, tools=toolbox(shell, AskingTool())) as backend,
    ):
        running = asyncio.create_task(drive(backend, turn))
        requests = await turn.opened(4)
        # From the end: the first call waits still, so that nothing has begun.
        for request in requests[1 : 1 + answered]:
            turn.resolve(allow(request))
        await turn.committed()
        running.cancel()
        await asyncio.wait({running})
        turn.interrupt()
    assert work.effects == []
    assert turn.of(ToolStarted) == []
    assert [result.effect for result in turn.of(ToolFinished)] == ["none"] * 4
    assert not [request for request in turn.state.requests if request.status == "open"]
    cancelled = [event for event in turn.of(RequestResolved) if event.status == "cancelled"]
    assert len(cancelled) == 4 - answered
    assert len(await next_request_is_well_formed("openai", turn)) == 4


async def test_answer_to_a_request_that_a_stop_withdrew_has_no_effect() -> None:
    shell = CountingTool("shell")
    turn = MemoryTurn("hi")
    async with serve(Answer.of(*CALLS)) as service, agent("openai", service, tools=toolbox(shell)) as backend:
        running = asyncio.create_task(drive(backend, turn))
        requests = await turn.opened(3)
        running.cancel()
        await asyncio.wait({running})
        turn.interrupt()
    for request in requests:
        turn.resolve(allow(request))
    assert {request.status for request in turn.state.requests} == {"cancelled"}
    assert shell.runs == []


async def test_restart_in_the_middle_of_a_batch_runs_each_call_at_most_once() -> None:
    """The first was running and is never run again; the others were waiting and stay answerable."""
    work = Halting(0, "after")
    shell = CountingTool("shell", work)
    box = toolbox(shell)
    async with serve(Answer.of(*CALLS), Answer.of("ok")) as service:
        turn = MemoryTurn("hi")
        async with agent("openai", service, tools=box) as backend:
            running = asyncio.create_task(drive(backend, turn))
            first, second, third = await turn.opened(3)
            turn.resolve(allow(first))
            async with asyncio.timeout(DRIVE_S):
                await work.halted.wait()
            running.cancel()
            await asyncio.wait({running})
        state = turn.restart()
        assert [request.status for request in state.requests] == ["answered", "open", "open"]
        turn.resolve(allow(second))
        turn.resolve(RequestResolved(request=third.id, status="answered", verdict="deny"))
        work.at = -1
        async with agent("openai", service, tools=box) as backend:
            again = await drive(backend, MemoryTurn(state=turn.state))
        told = tool_results(service.bodies[1])
    assert work.effects == [0, 1]
    assert again.of(RequestOpened) == []
    assert told[0] == "Interrupted, effect unknown."
    assert told[1] == "did 1"
    assert "declined" in told[2]
