"""Which calls of a batch run at once, and what a running call may ask of its conversation."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from palaver.approval.policy import Policy
from palaver.backends.api.tool_runs import OUTBOX_EVENTS
from palaver.schema.events import FilesChanged, PlanUpdated, ToolFinished
from palaver.schema.view import FileChange, Plan
from palaver.tools.base import Passage, ToolResult, Workplace
from palaver.tools.toolbox import Toolbox
from tests.contract.backend_api.rig import agent, serve, tool_results
from tests.provider import Answer, Call
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import DRIVE_S, MemoryTurn, drive

WIRE = "openai"
EDITS = {"mode": "accept_edits"}


def writes(*paths: str, name: str = "edit") -> list[Call]:
    return [Call(name=name, input={"path": path}) for path in paths]


async def most_at_once(tool: CountingTool, calls: list[Call], *others: CountingTool) -> MemoryTurn:
    async with (
        serve(Answer.of(*calls), Answer.of("ok")) as service,
        agent(WIRE, service, tools=toolbox(tool, *others)) as backend,
    ):
        return await drive(backend, MemoryTurn("hi", params=EDITS))


async def pause(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
    for _ in range(5):
        await asyncio.sleep(0)
    return ToolResult(ok=True)


async def test_writers_of_different_files_run_together() -> None:
    meeting = asyncio.Barrier(3)

    async def meet(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        async with asyncio.timeout(DRIVE_S):
            await meeting.wait()
        return ToolResult(ok=True)

    edit = CountingTool("edit", meet, edits_only=True, writes=True)
    turn = await most_at_once(edit, writes("a", "b", "c/d"))
    assert edit.most_at_once == 3
    assert [result.ok for result in turn.of(ToolFinished)] == [True] * 3


@pytest.mark.parametrize("paths", [("a", "a"), ("a/b", "a"), ("a", "a/b"), ("./a", "a")])
async def test_writers_of_one_path_never_run_together(paths: tuple[str, str]) -> None:
    edit = CountingTool("edit", pause, edits_only=True, writes=True)
    turn = await most_at_once(edit, writes(*paths))
    assert edit.most_at_once == 1
    assert edit.runs == [{"path": path} for path in paths]
    assert len(turn.of(ToolFinished)) == 2


async def test_calls_that_could_do_anything_run_alone() -> None:
    edit = CountingTool("edit", pause, edits_only=True)
    await most_at_once(edit, writes("a", "b"))
    assert edit.most_at_once == 1


async def test_readers_and_writers_keep_their_order() -> None:
    order: list[str] = []

    async def note(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        await pause(arguments, place)
        order.append(str(arguments["path"]))
        return ToolResult(ok=True)

    edit = CountingTool("edit", note, edits_only=True, writes=True)
    read = CountingTool("read", note, reads_only=True)
    calls = [*writes("1"), *writes("2", name="read"), *writes("3"), *writes("4", name="read")]
    await most_at_once(edit, calls, read)
    assert order == ["1", "2", "3", "4"]


async def test_results_come_as_they_are_and_the_model_sees_its_own_order() -> None:
    first_done = asyncio.Event()

    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        if arguments["path"] == "slow":
            await first_done.wait()
        else:
            first_done.set()
        return ToolResult(ok=True, output=str(arguments["path"]))

    read = CountingTool("read", work, reads_only=True)
    async with (
        serve(Answer.of(*writes("slow", "quick", name="read")), Answer.of("ok")) as service,
        agent(WIRE, service, tools=toolbox(read)) as backend,
    ):
        turn = await drive(backend, MemoryTurn("hi"))
        assert tool_results(service.bodies[1]) == ["slow", "quick"]
    assert [result.output for result in turn.of(ToolFinished)] == ["quick", "slow"]


# -- the host


def host_of(place: Workplace) -> Any:
    assert place.host is not None
    return place.host


async def test_tool_records_events_searches_and_knows_its_call() -> None:
    seen: list[Any] = []

    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        host = host_of(place)
        await host.emit(PlanUpdated(plan=Plan(summary="a plan")))
        seen.extend([host.conversation, place.call, place.mode, await host.search("garden", 5)])
        return ToolResult(ok=True, changes=(FileChange(path="a", kind="created"),))

    turn = MemoryTurn("hi", params={"mode": "plan"})
    turn.passages = [Passage(conversation="c", title="t", text="x", seq=1, ts=1)]
    async with (
        serve(Answer.of(Call(name="read")), Answer.of("ok")) as service,
        agent(WIRE, service, tools=toolbox(CountingTool("read", work, reads_only=True))) as backend,
    ):
        await drive(backend, turn)
    call = turn.of(ToolFinished)[0].call
    assert seen == ["conversation", call, "plan", turn.passages]
    assert turn.of(PlanUpdated)[0].plan == Plan(summary="a plan")
    assert turn.of(FilesChanged)[0].call == call


async def test_tool_ends_the_turn_once_every_call_has_its_result() -> None:
    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        host_of(place).end_turn("task", "All done.")
        return ToolResult(ok=True)

    done, read = CountingTool("done", work, reads_only=True), CountingTool("read", reads_only=True)
    async with (
        serve(Answer.of(Call(name="done"), Call(name="read"))) as service,
        agent(WIRE, service, tools=toolbox(done, read)) as backend,
    ):
        turn = await drive(backend, MemoryTurn("hi"))
        assert len(service.requests) == 1
    assert len(turn.of(ToolFinished)) == 2
    assert (turn.finished.outcome, turn.finished.summary) == ("task", "All done.")
    assert turn.state.status == "completed"


async def test_end_of_a_process_is_told_without_the_servers_secrets() -> None:
    hosts: list[Any] = []

    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        hosts.append(host_of(place))
        return ToolResult(ok=True)

    tools = {"read": CountingTool("read", work, reads_only=True)}
    box = Toolbox(tools=tools, policy=Policy(), environment={"SERVICE_TOKEN": "correct-horse-battery"})
    turn = MemoryTurn("hi")
    async with (
        serve(Answer.of(Call(name="read")), Answer.of("ok")) as service,
        agent(WIRE, service, tools=box) as backend,
    ):
        await drive(backend, turn)
        # Long after the turn: it is told, and what is no part of any turn is not recorded.
        await hosts[0].process_ended("p1", 3, "said correct-horse-battery")
        hosts[0].end_turn("task")
        before = len(turn.events)
        async with asyncio.timeout(DRIVE_S):
            for _ in range(OUTBOX_EVENTS + 1):
                await hosts[0].emit(PlanUpdated(plan=Plan(summary="late")))
        assert len(turn.events) == before
    assert turn.processes_ended == [("p1", 3, "said [redacted SERVICE_TOKEN]")]
