"""The tool `plan`: proposes a plan in plan mode, and keeps one up to date in the others.

In plan mode its call opens a request that outlives the turn, and ends the turn: the answer begins the next. In the other
modes it records how far the agent has come. It changes nothing but what people are shown, so it never needs asking.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from palaver.errors import CallerError, Invalid
from palaver.schema.events import PlanUpdated, RequestOpened
from palaver.schema.view import Plan, PlanItem
from palaver.tools.arguments import decode, failure_of, parameters_of
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.proposal import fingerprint, visible

ITEMS_LIMIT = 50
"""A longer plan is nobody's plan."""
TITLE_CHARS = 200
TEXT_CHARS = 50_000
"""Fits an event several times over."""


class ItemArguments(msgspec.Struct, frozen=True):
    title: Annotated[str, Meta(min_length=1, max_length=TITLE_CHARS, description="The step, in a few words.")]
    description: Annotated[str, Meta(max_length=2000)] | None = None
    status: Literal["pending", "in_progress", "done", "skipped"] = "pending"


class PlanArguments(msgspec.Struct, frozen=True):
    summary: Annotated[
        str, Meta(min_length=1, max_length=2000, description="What will be reached, in a sentence or two.")
    ]
    items: Annotated[
        tuple[ItemArguments, ...],
        Meta(min_length=1, max_length=ITEMS_LIMIT, description="Every step in order, each time the whole list."),
    ]
    text: Annotated[str, Meta(max_length=TEXT_CHARS, description="The plan at length, in Markdown.")] | None = None


SPEC = ToolSpec(
    name="plan",
    description=(
        "In plan mode: propose your plan to the person; your turn ends and the answer comes as the next message."
        " In other modes: show how far you are; call it with all items whenever one begins, is done or is skipped."
    ),
    parameters=parameters_of(PlanArguments),
    reads_only=True,
)


class PlanTool:
    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            asked = _decode(arguments)
        except CallerError as error:
            return failure_of(error)
        title = visible(f"Plan: {asked.summary[:TITLE_CHARS]}")
        return Proposal(title=title, hash=fingerprint("plan", arguments, root, {}), reads_only=True)

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = _decode(arguments)
        except CallerError as error:
            return failure_of(error)
        if place.host is None:
            return failure_of(Invalid("There is no conversation here to show a plan in."))
        items = tuple(
            PlanItem(title=item.title, description=item.description, status=item.status) for item in asked.items
        )
        plan = Plan(summary=asked.summary, items=items, text=asked.text)
        if place.mode == "plan":
            # Without its call: that has its result now, and the request lives on without it.
            opened = RequestOpened(request=self._new_id(), kind="plan", tool="plan", title=asked.summary, plan=plan)
            await place.host.emit(opened)
            place.host.end_turn("plan")
            return ToolResult(ok=True, output="Proposed. The turn ends here; the person's answer comes as a message.")
        over = all(item.status in ("done", "skipped") for item in items)
        await place.host.emit(
            PlanUpdated(plan=msgspec.structs.replace(plan, status="completed" if over else "executing"))
        )
        done = sum(item.status == "done" for item in items)
        return ToolResult(ok=True, output=f"Recorded: {done} of {len(items)} items done.")


def _decode(arguments: Mapping[str, Any]) -> PlanArguments:
    asked = decode(arguments, PlanArguments)
    if not asked.summary.strip() or not all(item.title.strip() for item in asked.items):
        raise Invalid("The summary and every item's title must say something.")
    return asked
