"""The tools `loop_yield_turn` and `finish_task`: an agent ends its own turn.

Both only tell the conversation. Yielding waits for a process or a message; finishing says that the task is done.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.errors import CallerError, Invalid
from palaver.tools.arguments import decode, failure_of, parameters_of
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.proposal import fingerprint


class YieldArguments(msgspec.Struct, frozen=True):
    pass


class FinishArguments(msgspec.Struct, frozen=True):
    summary: Annotated[str, Meta(min_length=1, max_length=20_000, description="What was done, for the person.")]


YIELD = ToolSpec(
    name="loop_yield_turn",
    description="End your turn and wait: for a background process to end, or for the next message.",
    parameters=parameters_of(YieldArguments),
    reads_only=True,
)
FINISH = ToolSpec(
    name="finish_task",
    description="Say that the whole task is done, and end your turn.",
    parameters=parameters_of(FinishArguments),
    reads_only=True,
)


class YieldTurn:
    @property
    def spec(self) -> ToolSpec:
        return YIELD

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        hashed = fingerprint("loop_yield_turn", arguments, root, {})
        return Proposal(title="End the turn and wait", hash=hashed, reads_only=True)

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        if place.host is None:
            return _nowhere()
        place.host.end_turn("yielded")
        return ToolResult(ok=True, output="The turn ends here.")


class FinishTask:
    @property
    def spec(self) -> ToolSpec:
        return FINISH

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            _finish(arguments)
        except CallerError as error:
            return failure_of(error)
        hashed = fingerprint("finish_task", arguments, root, {})
        return Proposal(title="Finish the task", hash=hashed, reads_only=True)

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = _finish(arguments)
        except CallerError as error:
            return failure_of(error)
        if place.host is None:
            return _nowhere()
        place.host.end_turn("task", asked.summary)
        return ToolResult(ok=True, output="The task is recorded as done.")


def _finish(arguments: Mapping[str, Any]) -> FinishArguments:
    asked = decode(arguments, FinishArguments)
    if not asked.summary.strip():
        raise Invalid("The summary must say what was done.")
    return asked


def _nowhere() -> ToolResult:
    return failure_of(Invalid("There is no turn here to end."))
