"""The tool seam: what a tool is, what it is given, what it gives back.

Called by the API loop, which records the grant before `run` and the result after it. A tool never raises for a failure of
its own: a failed tool is a result that the model can act on. It must never outlive its turn: cancelling `run` ends all
that it started, children of children included.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from palaver.backends.program_lookup import ProgramLookup
from palaver.schema.base import BlobRef
from palaver.schema.events import KnownEvent, RequestOpened, RequestResolved
from palaver.schema.view import FileChange, Outcome

Stream = Literal["stdout", "stderr"]

Output = Callable[[str, Stream], Awaitable[None]]
"""Where a tool's live output goes, as it comes."""

Spill = Callable[[bytes, str], Awaitable[BlobRef]]
"""Where output too long to show inline goes, whole."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it. `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    reads_only: bool = False
    """Runs without asking in mode `ask`, and together with other such calls."""
    edits_only: bool = False
    """Changes files beneath the root and nothing else: runs without asking in mode `accept_edits`."""
    outside: bool = False
    """What it does happens where no sandbox holds it (an address, a server of tools): mode `auto` asks too."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of an earlier conversation that fits a search."""

    conversation: str
    title: str
    text: str
    seq: int
    ts: int


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a task that was given to a subagent."""

    ok: bool
    text: str
    conversation: str | None = None


@dataclass(frozen=True, slots=True)
class Letter:
    """A message from one agent to another."""

    agent: str
    content: str
    conversation: str = "latest-or-create"
    """`latest`, `create`, `latest-or-create`, or the id of one."""
    wait: bool = True
    """For the answer; else it comes back in a turn of its own."""
    timeout_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of it so far."""

    status: Literal["complete", "timeout", "queued", "started", "failed", "cancelled"]
    response: str = ""
    conversation: str | None = None
    duration_ms: int | None = None
    tool_call_count: int | None = None


class Host(Protocol):
    """What a tool may ask of the conversation it runs in, beyond giving its result."""

    @property
    def conversation(self) -> str: ...

    async def emit(self, event: KnownEvent) -> None:
        """Record an event of this turn: a plan's progress, a process that was started."""
        ...

    async def search(self, query: str, limit: int) -> Sequence[Passage]:
        """Earlier conversations of the same project, the best first."""
        ...

    def end_turn(self, outcome: Outcome, summary: str | None = None) -> None:
        """Once this call has its result, the turn is over."""
        ...

    async def process_ended(self, process: str, exit_code: int | None, text: str) -> None:
        """A background process ended by itself. May be called long after the turn; `text` is for the agent."""
        ...

    async def delegate(self, agent: str | None, prompt: str, call: str) -> Report:
        """A subagent does a task and reports. Cancelled: it is stopped, with all that works for it."""
        ...

    async def write_to(self, letter: Letter, call: str) -> Reply:
        """A message to another agent, in a conversation of its own."""
        ...


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where a call runs."""

    root: Path
    output: Output
    spill: Spill
    programs: ProgramLookup
    """Where programs that are named are found: outside every folder that agents work in."""
    host: Host | None = None
    """Absent where there is no conversation (a tool tried by itself)."""
    call: str = ""
    mode: str = "ask"
    """The conversation's mode: a plan is proposed in plan mode, and kept up to date in the others."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """The server's own. Children get the allow-listed part of it; its secret values are struck from all output."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    ok: bool
    output: str = ""
    error_code: str = "tool_error"
    error: str | None = None
    truncated: bool = False
    blob: BlobRef | None = None
    total_lines: int | None = None
    total_bytes: int | None = None
    exit_code: int | None = None
    changes: tuple[FileChange, ...] = ()
    """What became of files, for `files.changed`."""
    changes_left_out: int = 0
    """How many more files changed than are listed."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a call would do, bound by a hash to exactly that. Computed before asking and again before running."""

    title: str
    """One line: "Edit src/x.py", "Run pytest -q"."""
    hash: str
    """Of tool, arguments, working folder and the contents of the files it would change."""
    preview: str | None = None
    """A diff, or the command with control and bidi characters made visible."""
    risk: str | None = None
    reads_only: bool = False
    writes: tuple[str, ...] | None = None
    """The files it changes and nothing else: such calls run together when they share none. None: it could be anything."""
    match: str | None = None
    """What rules and standing grants look at: the exact command, or the path beneath the root."""
    commands: tuple[str, ...] = ()
    """The command lines that it hands to a shell, whichever tool it is of."""
    texts: tuple[str, ...] = ()
    """Of a tool that is not ours: every text that it is given, whatever it does with it."""
    paths: tuple[str, ...] = ()
    """Every name of the files it is about: as given, from the project, absolute, and with links resolved."""
    covers: str | None = None
    """What a lasting yes to `match` covers, in words, where that is more than this very call."""


class Tool(Protocol):
    @property
    def spec(self) -> ToolSpec: ...

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        """What this call would do, or at once the failed result of arguments that make no sense."""
        ...

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult: ...


class Asking(Protocol):
    """A tool whose call is itself a request to a person. Nothing runs: the answer is the result.

    So a question outlives a restart like an approval does, and is never asked twice.
    """

    @property
    def spec(self) -> ToolSpec: ...

    def ask(self, arguments: Mapping[str, Any]) -> RequestOpened | ToolResult:
        """The request, without its ids, or at once the failed result of arguments that make no sense."""
        ...

    def answered(self, arguments: Mapping[str, Any], resolved: RequestResolved) -> ToolResult: ...
