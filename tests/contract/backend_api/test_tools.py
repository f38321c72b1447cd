"""Tools of the built-in loop: each call has one result, whatever becomes of it."""

import asyncio
from collections.abc import Mapping
from typing import Any

from palaver.approval.policy import Policy, Rule
from palaver.backends.api.loop import Conduct
from palaver.schema.events import (
    FilesChanged,
    RequestOpened,
    ToolCalled,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)
from palaver.schema.view import FileChange
from palaver.tools.base import ToolResult, Workplace
from tests.contract.backend_api.rig import FIRST, agent, kinds, serve, told, tool_results
from tests.provider import (
    Answer,
    Call,
)
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import DRIVE_S, MemoryTurn, allow, drive


async def test_allowed_tool_runs_once_and_its_result_goes_back(wire: str) -> None:
    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        await place.output("one\n", "stdout")
        await place.output("two\n", "stderr")
        change = FileChange(path="a.txt", kind="created", additions=1)
        return ToolResult(ok=True, output="one\ntwo\n", exit_code=0, total_lines=2, changes=(change,))

    read = CountingTool("read", work, reads_only=True)
    script = (Answer.of("Looking.", Call(name="read", input={"path": "a"})), Answer.of("Seen."))
    async with serve(*script) as service, agent(wire, service, tools=toolbox(read)) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        bodies = service.bodies
    assert read.runs == [{"path": "a"}]
    assert tool_results(bodies[1]) == ["one\ntwo\n"]
    assert [delta.text for delta in turn.of(ToolOutputDelta)] == ["one\n", "two\n"]
    assert turn.of(FilesChanged)[0].files[0].path == "a.txt"
    result = turn.of(ToolFinished)[0]
    assert (result.ok, result.exit_code, result.total_lines, result.effect) == (True, 0, 2, "done")
    assert turn.of(ToolStarted)[0].grant == "reads_only"
    assert turn.finished.outcome == "completed"
    assert turn.finished.usage.output_tokens == 10


async def test_calls_have_our_ids_and_keep_the_providers(wire: str) -> None:
    read = CountingTool("read", reads_only=True)
    script = (Answer.of(Call(name="read", id="call_theirs")), Answer.of("ok"))
    async with serve(*script) as service, agent(wire, service, tools=toolbox(read)) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        body = service.bodies[1]
    called = turn.of(ToolCalled)[0]
    assert called.call != "call_theirs"
    assert called.provider["id"] == "call_theirs"
    assert turn.of(ToolFinished)[0].call == called.call
    assert "call_theirs" in str(told(body))


async def test_call_ids_the_provider_reuses_stay_unique_in_a_request(wire: str) -> None:
    """The service answers 400 to a request that uses an id twice."""
    read = CountingTool("read", reads_only=True)
    again = Call(name="read", id="call_1")
    script = (Answer.of(again), Answer.of(again), Answer.of(again), Answer.of("ok"))
    async with serve(*script) as service, agent(wire, service, tools=toolbox(read)) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        assert [request.refused for request in service.requests] == [None] * 4
    assert turn.error is None
    assert len(read.runs) == 3


async def test_grant_is_committed_before_the_tool_runs(wire: str) -> None:
    on_disk: list[int] = []

    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        on_disk.append(turn.waited_for_seq)
        return ToolResult(ok=True)

    shell = CountingTool("shell", work)
    script = (Answer.of(FIRST), Answer.of("ok"))
    turn = MemoryTurn("hi", decide=allow)
    async with serve(*script) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        await drive(backend, turn)
    assert turn.of(ToolStarted)[0].seq <= on_disk[0]


async def test_unknown_tool_and_bad_arguments_fail_at_once(wire: str) -> None:
    shell = CountingTool("shell", required=("command",))
    calls = (
        Call(name="sheell", input={}),
        Call(name="shell", input={}),
        Call(name="shell", raw='{"command": "l'),
        Call(name="shell", raw='["ls"]'),
    )
    script = (Answer.of(*calls), Answer.of("I see."))
    async with serve(*script) as service, agent(wire, service, tools=toolbox(shell)) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        told = tool_results(service.bodies[1])
    assert turn.error is None
    assert shell.runs == []
    codes = [result.error.code for result in turn.of(ToolFinished) if result.error]
    assert codes == ["unknown_tool", "bad_arguments", "bad_arguments", "bad_arguments"]
    assert "sheell" in told[0]
    assert "command" in told[1]
    assert '{"command": "l' in told[2]
    assert turn.of(RequestOpened) == []


async def test_failing_and_crashing_tools_are_results(wire: str) -> None:
    async def fails(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        return ToolResult(ok=False, output="no such file", error="exit 1", exit_code=1)

    async def crashes(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        raise RuntimeError("boom")

    async def cancels_itself(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        raise asyncio.CancelledError

    works = {"fails": fails, "crashes": crashes, "cancels": cancels_itself}
    box = toolbox(*(CountingTool(name, work, reads_only=True) for name, work in works.items()))
    script = (Answer.of(*(Call(name=name) for name in works)), Answer.of("ok"))
    async with serve(*script) as service, agent(wire, service, tools=box) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        told = tool_results(service.bodies[1])
    assert turn.error is None
    assert told[0] == "exit 1\nno such file"
    assert "boom" in told[1]
    assert "effect is unknown" in told[2]
    assert [result.ok for result in turn.of(ToolFinished)] == [False] * 3


async def test_results_too_long_for_an_event_are_cut_and_kept_whole(wire: str) -> None:
    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        return ToolResult(ok=True, output="x" * 300_000)

    script = (Answer.of(Call(name="read")), Answer.of("ok"))
    box = toolbox(CountingTool("read", work, reads_only=True))
    async with serve(*script) as service, agent(wire, service, tools=box) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    result = turn.of(ToolFinished)[0]
    assert result.truncated
    assert len(result.output) < 70_000
    assert result.blob is not None
    assert turn.blobs[result.blob.id] == b"x" * 300_000


async def test_reading_tools_run_together_and_others_in_order(wire: str) -> None:
    together = asyncio.Barrier(3)
    order: list[str] = []

    async def meet(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        async with asyncio.timeout(DRIVE_S):
            await together.wait()
        order.append("read")
        return ToolResult(ok=True)

    async def act(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        order.append(str(arguments["n"]))
        await asyncio.sleep(0)
        return ToolResult(ok=True)

    read, act_tool = CountingTool("read", meet, reads_only=True), CountingTool("act", act)
    box = toolbox(read, act_tool, policy=Policy(rules=(Rule(tool="act", decision="allow"),)))
    reads = [Call(name="read", input={"n": n}) for n in range(3)]
    calls = (*reads, Call(name="act", input={"n": 1}), Call(name="act", input={"n": 2}))
    async with serve(Answer.of(*calls), Answer.of("ok")) as service, agent(wire, service, tools=box) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
    assert read.most_at_once == 3
    assert act_tool.most_at_once == 1
    assert order == ["read", "read", "read", "1", "2"]
    names = kinds(turn.events)
    assert names.index("ToolStarted") > len(names) - names[::-1].index("ToolCalled") - 1


async def test_call_whose_world_the_one_before_changed_still_runs(wire: str) -> None:
    async def work(arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        edit.world += "x"
        return ToolResult(ok=True)

    edit = CountingTool("edit", work, edits_only=True)
    calls = (Call(name="edit", input={"n": 1}), Call(name="edit", input={"n": 2}))
    async with (
        serve(Answer.of(*calls), Answer.of("ok")) as service,
        agent(wire, service, tools=toolbox(edit)) as backend,
    ):
        turn = await drive(backend, MemoryTurn("hi", params={"mode": "accept_edits"}))
    assert edit.runs == [{"n": 1}, {"n": 2}]
    assert [result.ok for result in turn.of(ToolFinished)] == [True, True]
    assert {started.grant for started in turn.of(ToolStarted)} == {"mode:accept_edits"}


async def test_tool_with_a_name_no_service_takes_is_left_out(wire: str) -> None:
    box = toolbox(CountingTool("notes.search"), CountingTool("shell"))
    async with serve(Answer.of("ok")) as service, agent(wire, service, tools=box) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        assert len(service.bodies[0]["tools"]) == 1
    assert turn.error is None


async def test_step_limit_ends_the_turn_as_limited(wire: str) -> None:
    read = CountingTool("read", reads_only=True)
    endless = Answer(blocks=(Call(name="read"),), repeat=True)
    conduct = Conduct(step_limit=3)
    async with serve(endless) as service, agent(wire, service, tools=toolbox(read), conduct=conduct) as backend:
        turn = await drive(backend, MemoryTurn("hi"))
        assert len(service.requests) == 3
    assert turn.finished.outcome == "limited"
    assert turn.finished.error is not None
    assert turn.finished.error.code == "limit_reached"
    assert len(read.runs) == 3
