"""The tools `shell_output` and `shell_stop`: what a background process has said, and its end.

They work on the processes that `shell` started in the background for the same conversation (`background.py`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.errors import CallerError
from palaver.tools.arguments import decode, failure_of, parameters_of
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.output import Collector
from palaver.tools.proposal import fingerprint, visible
from palaver.tools.shell.background import Processes


class OutputArguments(msgspec.Struct, frozen=True):
    process: Annotated[str, Meta(min_length=1, description="The id that shell gave for it.")]
    offset: Annotated[int, Meta(ge=0, description="Bytes to leave out at the beginning: what was read before.")] = 0


class StopArguments(msgspec.Struct, frozen=True):
    process: Annotated[str, Meta(min_length=1, description="The id that shell gave for it.")]


OUTPUT = ToolSpec(
    name="shell_output",
    description="Read what a background process has said so far. A note at the end says how it is and how to read on.",
    parameters=parameters_of(OutputArguments),
    reads_only=True,
)
STOP = ToolSpec(
    name="shell_stop",
    description="Stop a background process and everything it started.",
    parameters=parameters_of(StopArguments),
    # It only undoes what was allowed before; to ask for it would keep unwanted processes alive.
    reads_only=True,
)


class ShellOutput:
    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    @property
    def spec(self) -> ToolSpec:
        return OUTPUT

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        return _proposal("shell_output", "Read the output of process", arguments, root, OutputArguments)

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = decode(arguments, OutputArguments)
            one = self._processes.of(asked.process, _conversation(place))
        except CallerError as error:
            return failure_of(error)
        collector = Collector(place, live=False)
        # At one moment: what is said and where it ends belong together.
        status, total_bytes, said = one.status, one.kept.total_bytes, one.kept.after(asked.offset)
        await collector.feed_text(said)
        go_on = "" if one.over else f"; read on with offset={total_bytes}"
        await collector.feed_text(f"\n[{status}, {total_bytes:,} bytes in all{go_on}]\n")
        return (await collector.finish()).result()


class ShellStop:
    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    @property
    def spec(self) -> ToolSpec:
        return STOP

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        return _proposal("shell_stop", "Stop process", arguments, root, StopArguments)

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = decode(arguments, StopArguments)
            one = self._processes.of(asked.process, _conversation(place))
        except CallerError as error:
            return failure_of(error)
        if not await self._processes.stop_and_tell(one, place.host):
            return ToolResult(ok=True, output=f"Process {one.id} was over before: {one.status}.")
        return ToolResult(ok=True, output=f"Process {one.id} was stopped, with everything it had started.")


def _conversation(place: Workplace) -> str:
    return place.host.conversation if place.host else ""


def _proposal(
    tool: str, verb: str, arguments: Mapping[str, Any], root: Path, kind: type[OutputArguments] | type[StopArguments]
) -> Proposal | ToolResult:
    try:
        asked = decode(arguments, kind)
    except CallerError as error:
        return failure_of(error)
    return Proposal(
        title=visible(f"{verb} {asked.process}"),
        hash=fingerprint(tool, arguments, root, {}),
        reads_only=True,
        match=asked.process,
    )
