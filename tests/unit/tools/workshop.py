"""A place to run tools in, which remembers what was said and spilled."""

import asyncio
import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palaver.backends.program_lookup import ProgramLookup
from palaver.schema.base import BlobRef
from palaver.schema.events import KnownEvent
from palaver.schema.view import Outcome
from palaver.tools.base import Letter, Passage, Proposal, Reply, Report, Stream, Tool, ToolResult, Workplace
from tests.provider.programs import programs_outside

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "SERVICE_TOKEN": "correct-horse-battery"}


@dataclass
class Listener:
    """A conversation that tools can speak to: it keeps what it is told."""

    conversation: str = "c1"
    events: list[KnownEvent] = field(default_factory=list[KnownEvent])
    ended: "asyncio.Queue[tuple[str, int | None, str]]" = field(default_factory=lambda: asyncio.Queue(100))
    outcome: tuple[Outcome, str | None] | None = None
    tasks: list[tuple[str | None, str, str]] = field(default_factory=list[tuple[str | None, str, str]])
    report: Report = field(default_factory=lambda: Report(ok=True, text="Done.", conversation="c2"))
    letters: list[Letter] = field(default_factory=list[Letter])
    reply: Reply = field(default_factory=lambda: Reply(status="complete", response="Yes.", conversation="c2"))

    async def emit(self, event: KnownEvent) -> None:
        self.events.append(event)

    async def search(self, query: str, limit: int) -> Sequence[Passage]:
        return ()

    def end_turn(self, outcome: Outcome, summary: str | None = None) -> None:
        self.outcome = (outcome, summary)

    async def process_ended(self, process: str, exit_code: int | None, text: str) -> None:
        await self.ended.put((process, exit_code, text))

    async def delegate(self, agent: str | None, prompt: str, call: str) -> Report:
        self.tasks.append((agent, prompt, call))
        return self.report

    async def write_to(self, letter: Letter, call: str) -> Reply:
        self.letters.append(letter)
        return self.reply


@dataclass
class Workshop:
    """A place to run tools in, and what came of it."""

    root: Path
    host: Listener | None = None
    mode: str = "ask"
    environment: dict[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))
    said: list[tuple[str, Stream]] = field(default_factory=list[tuple[str, Stream]])
    blobs: list[bytes] = field(default_factory=list[bytes])
    programs: ProgramLookup | None = None

    @property
    def place(self) -> Workplace:
        return Workplace(
            root=self.root,
            output=self._output,
            spill=self._spill,
            programs=self.programs or programs_outside(self.root),
            host=self.host,
            call="call-1",
            environment=self.environment,
            mode=self.mode,
        )

    async def run(self, tool: Tool, **arguments: Any) -> ToolResult:
        return await tool.run(arguments, self.place)

    def propose(self, tool: Tool, **arguments: Any) -> Proposal:
        proposal = tool.propose(arguments, self.root)
        assert isinstance(proposal, Proposal), proposal
        return proposal

    async def _output(self, text: str, stream: Stream) -> None:
        self.said.append((text, stream))

    async def _spill(self, data: bytes, mime: str) -> BlobRef:
        self.blobs.append(data)
        return BlobRef(id=hashlib.sha256(data).hexdigest(), size=len(data), mime=mime)


def processes_with(tag: str) -> list[str]:
    """The command lines of living processes that hold a tag."""
    found: list[str] = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            line = (process / "cmdline").read_bytes().decode(errors="replace")
            if tag in line:
                found.append(line)
    return found
