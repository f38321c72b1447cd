"""The built-in tools in a turn: plans, questions, ends, patches and background processes, as a model uses them."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from palaver.backends.api.tool_runs import Granted, run_together
from palaver.schema.commands import Answer as Chosen
from palaver.schema.events import (
    FilesChanged,
    PlanUpdated,
    ProcessFinished,
    ProcessStarted,
    RequestOpened,
    RequestResolved,
    ToolFinished,
)
from palaver.schema.view import Outcome, Request
from palaver.tools.base import Proposal, ToolResult, Workplace
from palaver.tools.shell.background import Processes
from palaver.tools.shell.sandbox import unsandboxed
from palaver.tools.toolbox import Toolbox, built_in_tools
from tests.contract.backend_api.rig import agent, serve, tool_results
from tests.provider import Answer, Call
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import DRIVE_S, Decide, MemoryTurn, allow, drive, leave_open

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@pytest.fixture
async def processes() -> AsyncIterator[Processes]:
    numbers = itertools.count(1)
    processes = Processes(lambda: f"p{next(numbers)}")
    yield processes
    async with asyncio.timeout(DRIVE_S):
        await processes.close()


@pytest.fixture
def box(processes: Processes) -> Toolbox:
    numbers = itertools.count(1)
    tools = built_in_tools(unsandboxed(), processes, lambda: f"r{next(numbers)}")
    return Toolbox({tool.spec.name: tool for tool in tools}, environment=ENVIRONMENT)


async def talk(
    box: Toolbox,
    project: Path,
    *answers: Answer,
    mode: str = "ask",
    decide: Decide = leave_open,
) -> tuple[MemoryTurn, list[list[str]]]:
    """One turn, and what the model was told of its calls in each request."""
    async with serve(*answers) as service, agent("openai", service, tools=box) as backend:
        turn = MemoryTurn("hi", project=project, params={"mode": mode}, decide=decide)
        await drive(backend, turn)
        return turn, [tool_results(body) for body in service.bodies]


def plan(*statuses: str) -> Call:
    items = [{"title": f"Step {number}", "status": status} for number, status in enumerate(statuses, 1)]
    return Call(name="plan", input={"summary": "Do it", "items": items})


async def test_plan_in_plan_mode_ends_the_turn_with_its_request_open(box: Toolbox, tmp_path: Path) -> None:
    turn, told = await talk(box, tmp_path, Answer.of("My plan:", plan("pending", "pending")), mode="plan")
    assert (turn.finished.outcome, len(told)) == ("plan", 1)
    (request,) = turn.state.requests
    assert (request.kind, request.status) == ("plan", "open")
    assert request.plan is not None
    assert [item.title for item in request.plan.items] == ["Step 1", "Step 2"]
    assert turn.of(ToolFinished)[0].ok


async def test_plan_in_another_mode_is_shown_and_the_turn_goes_on(box: Toolbox, tmp_path: Path) -> None:
    turn, _ = await talk(box, tmp_path, Answer.of(plan("done", "in_progress")), Answer.of("on it"))
    assert turn.finished.outcome == "completed"
    shown = turn.of(PlanUpdated)[0].plan
    assert shown is not None
    assert [item.status for item in shown.items] == ["done", "in_progress"]
    assert turn.of(RequestOpened) == []


async def test_question_is_asked_once_and_its_answer_is_the_result(box: Toolbox, tmp_path: Path) -> None:
    def answer(request: Request) -> RequestResolved:
        chosen = (Chosen(question_index=0, selected=("Red",)),)
        return RequestResolved(request=request.id, status="answered", answers=chosen)

    colours = [{"label": "Red"}, {"label": "Blue"}]
    asked = Call(name="ask_user", input={"questions": [{"question": "Which colour?", "options": colours}]})
    turn, told = await talk(box, tmp_path, Answer.of(asked), Answer.of("Red it is"), decide=answer)
    assert [request.kind for request in turn.of(RequestOpened)] == ["question"]
    assert told[1] == ['{"answers": [{"question": 1, "chosen": ["Red"]}]}']


async def test_finished_task_ends_the_turn_with_its_summary(box: Toolbox, tmp_path: Path) -> None:
    done = Call(name="finish_task", input={"summary": "All done."})
    turn, told = await talk(box, tmp_path, Answer.of(done))
    assert (turn.finished.outcome, turn.finished.summary, len(told)) == ("task", "All done.", 1)
    assert turn.state.status == "completed"


async def test_yielded_turn_waits_for_what_comes(box: Toolbox, tmp_path: Path) -> None:
    turn, told = await talk(box, tmp_path, Answer.of(Call(name="loop_yield_turn", input={})))
    assert (turn.finished.outcome, len(told)) == ("yielded", 1)


async def test_patch_is_asked_about_with_its_diff_and_its_files_are_recorded(box: Toolbox, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    text = "*** Begin Patch\n*** Update File: a.txt\n-old\n+new\n*** Add File: b.txt\n+more\n*** End Patch"
    call = Call(name="patch", input={"patch": text})
    turn, _ = await talk(box, tmp_path, Answer.of(call), Answer.of("ok"), decide=allow)
    (asked,) = turn.of(RequestOpened)
    assert asked.title == "Patch 2 files: a.txt, b.txt"
    assert "-old\n+new\n" in (asked.preview or "")
    (changed,) = turn.of(FilesChanged)
    assert [(file.path, file.kind) for file in changed.files] == [("a.txt", "modified"), ("b.txt", "created")]
    assert (tmp_path / "a.txt").read_text() == "new\n"


async def test_background_process_lives_on_after_the_turn_and_its_end_is_told(
    box: Toolbox, processes: Processes, tmp_path: Path
) -> None:
    command = "until [ -e go ]; do sleep 0.01; done; echo finished"
    call = Call(name="shell", input={"command": command, "background": True})
    turn, told = await talk(box, tmp_path, Answer.of(call), Answer.of("started"), decide=allow)
    (started,) = turn.of(ProcessStarted)
    assert (started.process, started.command) == ("p1", command)
    assert "Process p1 runs in the background" in told[1][0]
    (process,) = turn.state.processes
    assert (process.running, turn.finished.outcome) == (True, "completed")
    (tmp_path / "go").touch()
    await turn.until(lambda: bool(turn.processes_ended))
    ((ended, exit_code, text),) = turn.processes_ended
    assert (ended, exit_code, text.endswith("finished\n")) == ("p1", 0, True)


async def test_what_a_tool_emits_is_on_its_way_before_the_tool_goes_on(tmp_path: Path) -> None:
    """Else the end of a process that ends at once could be recorded before its start, and so never."""
    went_on = asyncio.Event()

    async def work(_: Mapping[str, Any], place: Workplace) -> ToolResult:
        assert place.host is not None
        await place.host.emit(PlanUpdated(plan=None))
        went_on.set()
        return ToolResult(ok=True)

    tool = CountingTool("emitting", work)
    proposal = tool.propose({}, tmp_path)
    assert isinstance(proposal, Proposal)
    granted = Granted(call="c1", name="emitting", arguments={}, hash=proposal.hash, grant="a test")
    turn = MemoryTurn("hi", project=tmp_path)
    async with asyncio.timeout(DRIVE_S), aclosing(run_together([granted], turn, toolbox(tool), "ask", never)) as events:
        assert isinstance(await anext(events), PlanUpdated)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not went_on.is_set()
        assert isinstance(await anext(events), ToolFinished)
        assert went_on.is_set()


def never(outcome: Outcome, summary: str | None = None) -> None:
    raise AssertionError("nobody ends this turn")


async def test_background_process_is_read_and_stopped_by_the_agent(box: Toolbox, tmp_path: Path) -> None:
    start = Call(name="shell", input={"command": "echo hello; sleep 600", "background": True})
    read = Call(name="shell_output", input={"process": "p1"})
    stop = Call(name="shell_stop", input={"process": "p1"})
    turn, told = await talk(
        box, tmp_path, Answer.of(start), Answer.of(read), Answer.of(stop), Answer.of("done"), decide=allow
    )
    assert "[running" in told[2][1]
    assert turn.of(ProcessFinished)[0].end == "stopped"
    (process,) = turn.state.processes
    assert not process.running
    # Only the start was asked about.
    assert len(turn.of(RequestOpened)) == 1
