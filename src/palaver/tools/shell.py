"""The tool `shell`: one command line, run in the project folder by the runner of processes, within the sandbox.

It sees an allow-listed environment and no input; both its streams are shown as they come. It ends at its time limit, and
everything it started ends with it. A command that provably only reads (`commands.py`) says so in its proposal.
"""

import asyncio
import contextlib
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.backends.process import Ended, allowed_environment, spawn
from palaver.errors import AgentError, CallerError, Invalid
from palaver.tools.arguments import decode, failed, parameters_of
from palaver.tools.background import Processes
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.changes import with_changes
from palaver.tools.commands import reading
from palaver.tools.output import Collector
from palaver.tools.paths import Root
from palaver.tools.proposal import fingerprint, shortened, visible
from palaver.tools.repository import QUIET_GIT, reading_git_is_harmless
from palaver.tools.sandbox import Sandbox, unsandboxed

DEFAULT_TIMEOUT_S = 120
"""Long enough for a build or a test run, short enough that a forgotten prompt does not hold a turn for long."""
MAX_TIMEOUT_S = 3600
COMMAND_LIMIT_BYTES = 100_000
"""Linux takes 128 KiB as one argument."""
TITLE_CHARS = 100

# Programs that would wait for a person find out that there is none.
_UNATTENDED = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


class ShellArguments(msgspec.Struct, frozen=True):
    command: Annotated[str, Meta(min_length=1, description="Command line, run by bash (or sh) in the project folder.")]
    timeout_s: (
        Annotated[
            float,
            Meta(
                gt=0,
                le=MAX_TIMEOUT_S,
                description=f"Seconds after which it is stopped: {DEFAULT_TIMEOUT_S} unless given, none in the background.",
            ),
        ]
        | None
    ) = None
    background: Annotated[
        bool, Meta(description="Go on at once while it runs; shell_output reads it, shell_stop ends it.")
    ] = False

    @property
    def limit_s(self) -> float:
        return DEFAULT_TIMEOUT_S if self.timeout_s is None else self.timeout_s


SPEC = ToolSpec(
    name="shell",
    description=(
        "Run a command line in the project folder. No input can be given. What it leaves running is stopped when it"
        " ends: for a server or a long build set background, and you are told when it ends."
    ),
    parameters=parameters_of(ShellArguments),
)


class Shell:
    def __init__(
        self, sandbox: Sandbox | None = None, program: str | None = None, processes: Processes | None = None
    ) -> None:
        self._sandbox = sandbox or unsandboxed()
        self._processes = processes
        self._program = program or ("/bin/bash" if Path("/bin/bash").exists() else "/bin/sh")

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            asked = _decode(arguments)
        except CallerError as error:
            return failed(error)
        shown = visible(asked.command)
        first_line = shown.strip().split("\n", 1)[0]
        verb = "Run in the background" if asked.background else "Run"
        return Proposal(
            title=f"{verb} {first_line[:TITLE_CHARS]}{' …' if shown.strip() != first_line[:TITLE_CHARS] else ''}",
            hash=fingerprint("shell", arguments, root, {}),
            preview=shortened(shown),
            reads_only=not asked.background and only_reads(asked.command, root) and not self._sandbox.exposes(root),
            match=asked.command,
        )

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = _decode(arguments)
        except CallerError as error:
            return failed(error)
        environment = allowed_environment(place.environment, {**_UNATTENDED, **self._sandbox.environment})
        if asked.background:
            return await self._start(asked, place, environment)
        if await asyncio.to_thread(only_reads, asked.command, place.root):
            return await self._run(asked, place, _quiet(environment, place.root))
        return await with_changes(place.root, place.environment, lambda: self._run(asked, place, environment))

    async def _run(self, asked: ShellArguments, place: Workplace, environment: Mapping[str, str]) -> ToolResult:
        collector = Collector(place)
        try:
            ended = await self._collect(asked, place.root, environment, collector)
        except AgentError as error:
            return ToolResult(ok=False, error_code=error.code, error=error.message)
        if ended is None:
            said = await collector.finish()
            error_text = f"It was stopped after {asked.limit_s:g} s. Give a longer timeout_s, or run less at once."
            return said.result(error=error_text, code="timed_out")
        if ended.stopped_count:
            await collector.feed_text(f"\n[{ended.stopped_count} processes left in the background were stopped]\n")
        said = await collector.finish()
        return said.result(error=_how_it_failed(ended), code="exit_code", exit_code=ended.code)

    def _argv(self, asked: ShellArguments, root: Path) -> list[str]:
        return self._sandbox.wrap([self._program, "-c", asked.command], root)

    async def _start(self, asked: ShellArguments, place: Workplace, environment: Mapping[str, str]) -> ToolResult:
        if self._processes is None:
            return failed(Invalid("Nothing can run in the background here. Run it without, with a timeout_s."))
        argv = self._argv(asked, place.root)
        try:
            one = await self._processes.start(asked.command, argv, environment, place, asked.timeout_s)
        except (AgentError, CallerError) as error:
            return ToolResult(ok=False, error_code=error.code, error=error.message)
        said = f"Process {one.id} runs in the background (pid {one.pid}). shell_output reads it, shell_stop ends it."
        return ToolResult(ok=True, output=said)

    async def _collect(
        self, asked: ShellArguments, root: Path, environment: Mapping[str, str], collector: Collector
    ) -> Ended | None:
        """Run it to its end; nothing when the time limit came first."""
        async with spawn(self._argv(asked, root), cwd=root, environment=environment, drain_stderr=False) as child:
            limit = asyncio.timeout(asked.limit_s)
            try:
                async with limit, contextlib.aclosing(child.chunks()) as chunks:
                    async for stream, chunk in chunks:
                        await collector.feed(chunk, stream)
                    return await child.ended()
            except TimeoutError:
                if not limit.expired():
                    raise
                return None


def only_reads(command: str, root: Path) -> bool:
    """Whether a command may run unasked: it only reads, its paths stay beneath the root, and git has nothing to run."""
    found = reading(command)
    if found is None:
        return False
    try:
        for path in found.paths:
            Root(root).locate(path)
    except CallerError:
        return False
    return not found.program.startswith("git ") or reading_git_is_harmless(root)


def _quiet(environment: Mapping[str, str], root: Path) -> dict[str, str]:
    """For a command that runs unasked: git without hooks, and no program from the folder that agents write to."""
    folders = [Path(folder) for folder in environment["PATH"].split(":")]
    outside = [str(folder) for folder in folders if folder.is_absolute() and not folder.is_relative_to(root)]
    return {**environment, **QUIET_GIT, "PATH": ":".join(outside)}


def _decode(arguments: Mapping[str, Any]) -> ShellArguments:
    asked = decode(arguments, ShellArguments)
    if "\0" in asked.command:
        raise Invalid("The command holds a NUL character; no program can be given one.")
    if len(asked.command.encode()) > COMMAND_LIMIT_BYTES:
        raise Invalid(f"The command is longer than {COMMAND_LIMIT_BYTES:,} bytes. Write it to a file and run that.")
    return asked


def _how_it_failed(ended: Ended) -> str | None:
    if ended.code == 0:
        return None
    if ended.code < 0:
        return f"The command was ended by {signal.Signals(-ended.code).name}."
    return f"The command ended with exit code {ended.code}."
