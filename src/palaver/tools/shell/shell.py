"""The tool `shell`: one command line, run in the project folder by the runner of processes, within the sandbox.

It sees an allow-listed environment and no input; both its streams are shown as they come. It ends at its time limit, and
everything it started ends with it. A command that parses to one that only reads (`read_only_commands.py`) is run without
a shell, in a sandbox that can only read, whether a person was asked or not: what holds it depends on nothing that an agent
can change between the judgement and the run.
"""

import asyncio
import contextlib
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.backends.process import Ended, allowed_environment, spawn
from palaver.errors import AgentError, CallerError, Exited, Invalid
from palaver.tools.arguments import decode, failure_of, parameters_of
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.files.changes import ChangeWatcher
from palaver.tools.files.paths import Root
from palaver.tools.files.repository import quiet_environment, reading_git_is_harmless
from palaver.tools.output import Collector
from palaver.tools.proposal import fingerprint, shorten, visible
from palaver.tools.shell.background import Processes
from palaver.tools.shell.read_only_commands import Reading, reading, simple_words
from palaver.tools.shell.sandbox import Sandbox, unsandboxed
from palaver.tools.shell.temporary_folders import TemporaryFolders

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
        self._folders = TemporaryFolders()
        self._changes = ChangeWatcher(self._sandbox, self._folders)
        self._processes = processes
        self._program = program or ("/bin/bash" if Path("/bin/bash").exists() else "/bin/sh")

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            asked = _decode(arguments)
        except CallerError as error:
            return failure_of(error)
        shown = visible(asked.command)
        first_line = shown.strip().split("\n", 1)[0]
        verb = "Run in the background" if asked.background else "Run"
        return Proposal(
            title=f"{verb} {first_line[:TITLE_CHARS]}{' …' if shown.strip() != first_line[:TITLE_CHARS] else ''}",
            hash=fingerprint("shell", arguments, root, {}),
            preview=shorten(shown),
            reads_only=not asked.background and only_reads(asked.command, root, self._sandbox),
            match=asked.command,
        )

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = _decode(arguments)
        except CallerError as error:
            return failure_of(error)
        if asked.background:
            return await self._start(asked, place)
        reader = await asyncio.to_thread(_reader, asked.command, place)
        if reader is not None:
            try:
                argv = self._sandbox.wrap_reading(reader.argv, place.root)
            except CallerError as error:
                return failure_of(error)
            return await self._run(asked, argv, place, reader.environment, reading=True)
        return await self._changes.run(
            place.root, place.environment, place.programs, lambda: self._run_writing(asked, place)
        )

    async def _run_writing(self, asked: ShellArguments, place: Workplace) -> ToolResult:
        try:
            with self._wrapped(asked, place) as (argv, environment):
                return await self._run(asked, argv, place, environment)
        except (AgentError, CallerError) as error:
            return ToolResult(ok=False, error_code=error.code, error=error.message)

    @contextlib.contextmanager
    def _wrapped(self, asked: ShellArguments, place: Workplace) -> Iterator[tuple[list[str], dict[str, str]]]:
        """The command line and its environment, while the temporary folder of the conversation is held."""
        argv = [self._program, "-c", asked.command]
        if self._sandbox.level == "none":
            yield argv, allowed_environment(place.environment, _UNATTENDED)
            return
        with contextlib.ExitStack() as stack:
            try:
                temporary = stack.enter_context(self._folders.use(place.host.conversation if place.host else ""))
                hidden = (*self._sandbox.hidden, self._folders.base())
            except OSError as error:
                raise Exited(
                    f"The command was not run: no temporary folder can be made ({error}). Make room."
                ) from error
            argv = replace(self._sandbox, hidden=hidden).wrap(argv, place.root, temporary)
            yield argv, allowed_environment(place.environment, {**_UNATTENDED, **self._sandbox.environment(temporary)})

    async def _run(
        self,
        asked: ShellArguments,
        argv: Sequence[str],
        place: Workplace,
        environment: Mapping[str, str],
        reading: bool = False,
    ) -> ToolResult:
        collector = Collector(place)
        try:
            ended = await _collect(asked, argv, place.root, environment, collector)
        except AgentError as error:
            return ToolResult(ok=False, error_code=error.code, error=error.message)
        if ended is None:
            said = await collector.finish()
            error_text = f"It was stopped after {asked.limit_s:g} s. Give a longer timeout_s, or run less at once."
            return said.result(error=error_text, code="timed_out")
        # A reading command leaves nothing: what is seen of it is the sandbox itself, on its way out.
        if ended.stopped_count and not reading:
            await collector.feed_text(f"\n[{ended.stopped_count} processes left in the background were stopped]\n")
        said = await collector.finish()
        return said.result(error=_how_it_failed(ended), code="exit_code", exit_code=ended.code)

    async def _start(self, asked: ShellArguments, place: Workplace) -> ToolResult:
        if self._processes is None:
            return failure_of(Invalid("Nothing can run in the background here. Run it without, with a timeout_s."))
        try:
            one = await self._processes.start(asked.command, self._wrapped(asked, place), place, asked.timeout_s)
        except (AgentError, CallerError) as error:
            return ToolResult(ok=False, error_code=error.code, error=error.message)
        said = f"Process {one.id} runs in the background (pid {one.pid}). shell_output reads it, shell_stop ends it."
        return ToolResult(ok=True, output=said)


async def _collect(
    asked: ShellArguments, argv: Sequence[str], root: Path, environment: Mapping[str, str], collector: Collector
) -> Ended | None:
    """Run it to its end; nothing when the time limit came first."""
    async with spawn(argv, cwd=root, environment=environment, drain_stderr=False) as child:
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


@dataclass(frozen=True, slots=True)
class _Reader:
    """A command that only reads, as it is run: a program that lies outside the project, without a shell."""

    argv: list[str]
    environment: dict[str, str]


def _reader(command: str, place: Workplace) -> _Reader | None:
    """None: it is no reading command, or its program lies only where agents write."""
    found, words = reading(command), simple_words(command)
    program = place.programs.find(words[0], place.environment) if found and words else None
    if found is None or words is None or program is None:
        return None
    own = {**_UNATTENDED, "PATH": place.programs.trusted_path(place.environment)}
    if _is_git(found):
        own |= quiet_environment(place.root)
    return _Reader([program, *words[1:]], allowed_environment(place.environment, own))


def only_reads(command: str, root: Path, sandbox: Sandbox) -> bool:
    """Whether a command may run unasked: it only reads, and what it reads lies beneath the root and is not hidden.

    git runs unasked only in a sandbox: what a repository makes it do can change after any look at the repository.
    """
    found = reading(command)
    if found is None or sandbox.exposes(root):
        return False
    try:
        for path in found.paths:
            Root(root).locate(path)
    except CallerError:
        return False
    return not _is_git(found) or (sandbox.level != "none" and reading_git_is_harmless(root))


def _is_git(found: Reading) -> bool:
    return found.program.split(" ")[0] == "git"


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
