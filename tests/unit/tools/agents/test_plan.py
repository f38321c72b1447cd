"""The tool `plan`: a proposal in plan mode, progress in the others."""

from pathlib import Path

import pytest

from palaver.schema.events import PlanUpdated, RequestOpened
from palaver.schema.view import Plan, PlanItem
from palaver.tools.agents.plan import PlanTool
from palaver.tools.base import ToolResult
from tests.unit.tools.workshop import Listener, Workshop

pytestmark = pytest.mark.anyio

PLAN = PlanTool(lambda: "r1")
ITEMS = [{"title": "Read", "description": "all of it"}, {"title": "Write", "status": "pending"}]


async def test_plan_in_plan_mode_is_a_request_and_ends_the_turn(root: Path) -> None:
    host = Listener()
    result = await Workshop(root, host=host, mode="plan").run(PLAN, summary="Do it", items=ITEMS, text="# How")
    assert (result.ok, result.output.startswith("Proposed.")) == (True, True)
    items = (PlanItem(title="Read", description="all of it"), PlanItem(title="Write"))
    plan = Plan(summary="Do it", items=items, status="planned", text="# How")
    assert host.events == [RequestOpened(request="r1", kind="plan", tool="plan", title="Do it", plan=plan)]
    assert host.outcome == ("plan", None)


@pytest.mark.parametrize("mode", ["ask", "accept_edits", "auto", "full"])
async def test_plan_in_another_mode_is_progress_and_goes_on(mode: str, root: Path) -> None:
    host = Listener()
    items = [{"title": "Read", "status": "done"}, {"title": "Write", "status": "in_progress"}]
    result = await Workshop(root, host=host, mode=mode).run(PLAN, summary="Do it", items=items)
    assert (result.ok, result.output) == (True, "Recorded: 1 of 2 items done.")
    (event,) = host.events
    assert isinstance(event, PlanUpdated)
    assert event.plan is not None
    assert (event.plan.status, [item.status for item in event.plan.items]) == ("executing", ["done", "in_progress"])
    assert host.outcome is None


async def test_plan_with_every_item_done_or_skipped_is_completed(root: Path) -> None:
    host = Listener()
    items = [{"title": "Read", "status": "done"}, {"title": "Write", "status": "skipped"}]
    await Workshop(root, host=host).run(PLAN, summary="Do it", items=items)
    (event,) = host.events
    assert isinstance(event, PlanUpdated)
    assert event.plan is not None
    assert event.plan.status == "completed"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"summary": "x", "items": []},
        {"summary": " ", "items": [{"title": "a"}]},
        {"summary": "x", "items": [{"title": " "}]},
        {"summary": "x", "items": [{"title": "a", "status": "finished"}]},
        {"summary": "x", "items": ["a"]},
        {"summary": "x", "items": [{"title": "a"}] * 51},
    ],
)
async def test_plan_that_makes_no_sense_is_a_result_and_nothing_is_recorded(
    arguments: dict[str, object], root: Path
) -> None:
    host = Listener()
    for mode in ("plan", "ask"):
        result = await PLAN.run(arguments, Workshop(root, host=host, mode=mode).place)
        assert (result.ok, result.error_code) == (False, "invalid")
    assert isinstance(PLAN.propose(arguments, root), ToolResult)
    assert (host.events, host.outcome) == ([], None)


def test_plan_needs_no_asking(workshop: Workshop) -> None:
    assert workshop.propose(PLAN, summary="x", items=ITEMS).reads_only
