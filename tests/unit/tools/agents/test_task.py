"""The tool `task`: what the model is told of it, what it needs, and what it says of the report."""

from pathlib import Path

import pytest

from palaver.approval.policy import Mode, Policy
from palaver.schema.view import Parent, State
from palaver.tools.agents.task import DEEPEST, TaskTool, is_deepest
from palaver.tools.base import Report, ToolResult
from palaver.tools.shell.sandbox import unsandboxed
from palaver.tools.toolbox import Toolbox, built_in_tools
from tests.unit.tools.workshop import Listener, Workshop

pytestmark = pytest.mark.anyio


def known(folder: str | None) -> list[tuple[str, str]]:
    own = [("gardener", "knows this garden")] if folder == "/garden" else []
    return [("digger", "digs\nand much more"), ("mute", ""), *own]


TOOL = TaskTool(known)


def box() -> Toolbox:
    return Toolbox({tool.spec.name: tool for tool in built_in_tools(unsandboxed(), agents=known)})


async def test_description_names_the_agents_of_the_folder() -> None:
    assert TOOL.spec.description.endswith("Agents:\n- digger: digs\n- mute")
    assert TOOL.within(Path("/garden")).spec.description.endswith("- mute\n- gardener: knows this garden")
    assert "Agents:" not in TaskTool(lambda _: ()).spec.description


async def test_call_passes_the_task_on_and_says_who_did_it(tmp_path: Path) -> None:
    host = Listener(report=Report(ok=True, text="It is dug.", conversation="c-7"))
    shop = Workshop(tmp_path, host)
    named = await shop.run(TOOL, agent="digger", prompt="Dig")
    alike = await shop.run(TOOL, prompt="Dig")
    assert host.tasks == [("digger", "Dig", "call-1"), (None, "Dig", "call-1")]
    assert named == ToolResult(ok=True, output="digger (conversation c-7) reports:\n\nIt is dug.")
    assert alike.output.startswith("The subagent (conversation c-7)")


async def test_task_that_failed_or_was_never_given_is_a_failed_result(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, Listener(report=Report(ok=False, text="No spade.", conversation="c-7")))
    failed = await shop.run(TOOL, agent="digger", prompt="Dig")
    shop = Workshop(tmp_path, Listener(report=Report(ok=False, text="There is no agent “mole”.")))
    refused = await shop.run(TOOL, agent="mole", prompt="Dig")
    assert (failed.ok, failed.error_code) == (False, "task_failed")
    assert failed.error == "digger (conversation c-7) did not finish the task: No spade."
    assert (refused.error_code, refused.error) == ("not_delegated", "There is no agent “mole”.")


@pytest.mark.parametrize("given", [{}, {"prompt": ""}, {"prompt": " \n"}, {"prompt": 3, "agent": []}])
async def test_task_without_words_is_not_given(given: dict[str, object], tmp_path: Path) -> None:
    host = Listener()
    proposed = TOOL.propose(given, tmp_path)
    result = await Workshop(tmp_path, host).run(TOOL, **given)
    assert isinstance(proposed, ToolResult)
    assert not result.ok
    assert host.tasks == []


@pytest.mark.parametrize("mode", ["ask", "accept_edits", "auto", "full"])
async def test_giving_a_task_needs_no_leave_and_runs_beside_others(mode: Mode, tmp_path: Path) -> None:
    proposal = Workshop(tmp_path).propose(TOOL, agent="digger", prompt="Dig a hole\nand fill it")
    assert Policy().verdict(TOOL.spec, proposal, mode).decision == "allow"
    assert proposal.reads_only
    assert proposal.title == "Give digger a task: Dig a hole"


async def test_nobody_is_set_to_work_in_plan_mode(tmp_path: Path) -> None:
    host = Listener()
    result = await Workshop(tmp_path, host, mode="plan").run(TOOL, prompt="Dig")
    assert "task" not in [spec.name for spec in box().specs("plan")]
    assert "task" in [spec.name for spec in box().specs("ask")]
    assert not result.ok
    assert host.tasks == []


async def test_deepest_level_is_not_offered_the_tool() -> None:
    def at(depth: int, kind: str = "subagent") -> State:
        parent = Parent(kind=kind, conversation="c-1", root="c-0", depth=depth)  # type: ignore[arg-type]
        return State(parent=parent)

    assert [is_deepest(state) for state in (State(), at(1), at(DEEPEST - 1), at(DEEPEST))] == [
        False,
        False,
        False,
        True,
    ]
    assert not is_deepest(at(DEEPEST, "branch"))
    assert "task" not in box().delegating(Path("/garden"), deepest=True).tools
    shown = box().delegating(Path("/garden"), deepest=False).tools["task"].spec.description
    assert "gardener" in shown
