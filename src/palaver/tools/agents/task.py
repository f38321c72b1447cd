"""The tool `task`: an agent gives a piece of work to another, which does it in a conversation of its own and reports.

The conversation behind the call does it all (`Host.delegate`). The call itself changes nothing, so it needs no leave and runs
together with its neighbours: whatever the other agent wants to do, it asks for itself. Cancelling the call stops it.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.errors import CallerError, Invalid
from palaver.schema.view import State
from palaver.tools.arguments import decode, failure_of, parameters_of
from palaver.tools.base import Proposal, Report, ToolResult, ToolSpec, Workplace
from palaver.tools.proposal import fingerprint, shorten, visible

NAME = "task"
DEEPEST = 4
"""Levels of subagents beneath a conversation: a task that needs more is not understood, only passed on."""
PROMPT_CHARS = 40_000
"""It is part of an event, which may hold 256 KiB, and a character up to six bytes of JSON."""
TITLE_CHARS = 100

Known = Callable[[str | None], Sequence[tuple[str, str]]]
"""The agents there are in a folder at the moment: what each is called, and what it is for."""


class TaskArguments(msgspec.Struct, frozen=True):
    prompt: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=PROMPT_CHARS,
            description="The whole task. The agent sees nothing of this conversation, so say all that it must know, "
            "and what it shall report.",
        ),
    ]
    agent: Annotated[str | None, Meta(description="Who shall do it. Left out: one like you.")] = None


def depth_of(state: State) -> int:
    """How many conversations stand above this one. A branch of a subagent's is a person's, and stands at the top."""
    return state.parent.depth if state.parent and state.parent.kind == "subagent" else 0


def is_deepest(state: State) -> bool:
    """Nobody beneath this conversation could be given a task."""
    return depth_of(state) >= DEEPEST


class TaskTool:
    def __init__(self, agents: Known, folder: str | None = None) -> None:
        """`agents` is asked each time: agents come and go while a server runs."""
        self._agents = agents
        self._folder = folder

    def within(self, folder: Path) -> "TaskTool":
        """The same tool, which tells of the agents of that folder too."""
        return TaskTool(self._agents, str(folder))

    @property
    def spec(self) -> ToolSpec:
        known = self._agents(self._folder)
        lines = "".join(f"\n- {name}: {_line(about)}" if about else f"\n- {name}" for name, about in known)
        listed = f"\nAgents:{lines}" if lines else ""
        # Not `reads_only`: in plan mode nobody is sent to work.
        return ToolSpec(NAME, f"{DESCRIPTION}{listed}", PARAMETERS)

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            asked = _parse(arguments)
        except CallerError as error:
            return failure_of(error)
        who = asked.agent or "a subagent"
        return Proposal(
            title=visible(f"Give {who} a task: {_line(asked.prompt)}"),
            hash=fingerprint(NAME, arguments, root, {}),
            preview=shorten(visible(asked.prompt)),
            # It only passes words on. So it asks nobody, and several run at once.
            reads_only=True,
            match=asked.agent or "",
        )

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = _parse(arguments)
        except CallerError as error:
            return failure_of(error)
        if place.mode == "plan":
            return failure_of(Invalid("In plan mode nobody is given a task; make it a step of the plan."))
        if place.host is None:
            return failure_of(Invalid("There are no other agents here."))
        return _result_of(asked, await place.host.delegate(asked.agent, asked.prompt, place.call))


PARAMETERS = parameters_of(TaskArguments)
DESCRIPTION = (
    "Give a task to a subagent and wait for its report. It works in a conversation of its own, in the same folder, and "
    "knows only what you tell it. For work that can be described in a few sentences and whose details you need not "
    "see: looking through many files, a change of its own, a second opinion. Several calls in one answer run at the "
    "same time; then let each work on other files."
)


def _result_of(asked: TaskArguments, report: Report) -> ToolResult:
    if report.conversation is None:
        return ToolResult(ok=False, error_code="not_delegated", error=report.text)
    who = f"{asked.agent or 'The subagent'} (conversation {report.conversation})"
    if report.ok:
        return ToolResult(ok=True, output=f"{who} reports:\n\n{report.text}")
    return ToolResult(ok=False, error_code="task_failed", error=f"{who} did not finish the task: {report.text}")


def _parse(arguments: Mapping[str, Any]) -> TaskArguments:
    asked = decode(arguments, TaskArguments)
    if not asked.prompt.strip():
        raise Invalid("The prompt must say what is to be done.")
    return asked


def _line(text: str) -> str:
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first if len(first) <= TITLE_CHARS else f"{first[: TITLE_CHARS - 1]}…"
