"""`palaver import claude|codex|pi|refact`: what another program kept, read here and taken over by the server.

Called by `import_.py`. The files are read on this machine, wherever the server is; what they say goes over in batches. It may
be repeated at any time and broken off at any moment: what is known is not made again.
"""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BufferedIOBase
from pathlib import Path
from tempfile import TemporaryFile

from msgspec.structs import asdict

from palaver.cli.support.connection import complain
from palaver.cli.support.output import Bar, count_of, print_json, progress
from palaver.client import Client
from palaver.client.conversations import TakenOver
from palaver.errors import CallerError, TooLarge
from palaver.history.conversation_lines import write_conversation
from palaver.history.programs.foreign import ForeignConversation, Program
from palaver.history.programs.places import (
    Places,
    SessionFile,
    Unreadable,
    batches,
    files_since,
    is_within,
    names,
    places_of,
    read_all,
)
from palaver.history.programs.scratch import Scratch

REQUEST_BYTES = 16 << 20
"""Of one request, and what its last conversation has beyond."""
PROBLEMS_SHOWN = 20
SHOWN_EVERY = 500
"""Conversations between two lines of a log: one in ten seconds or so."""

WORDS = {
    "made": "new",
    "grown": "grew since the last import",
    "known": "known already",
    "changed": "differ from what was imported and were left as they are",
    "taken_up": "went on here and were left as they are",
    "empty": "without a message",
    "not_yours": "of subagents or driven from here, left out",
    "refused": "refused",
}
"""In the order of the report."""


@dataclass(slots=True)
class Report:
    """What happened so far."""

    of: int
    dry: bool
    as_json: bool = False
    done: int = 0
    shown: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    messages: int = 0
    elsewhere: int = 0
    skipped_lines: int = 0
    left_out: Counter[str] = field(default_factory=Counter[str])
    problems: list[str] = field(default_factory=list[str])

    def take(self, file: SessionFile, conversation: ForeignConversation, taken: TakenOver) -> None:
        self.outcomes[taken.outcome] += 1
        self.messages += taken.added
        self.skipped_lines += conversation.skipped_lines
        self.left_out.update(conversation.left_out)
        if taken.outcome == "refused":
            self.problems.append(f"{file.path}: {taken.note}")
        if self.as_json:
            print_json({"file": str(file.path), **asdict(taken)})
        elif self.dry:
            size_kib = -(-file.size_bytes // 1024)
            print(f"{taken.outcome}\t{taken.message_count} messages\t{size_kib} KiB\t{file.path}\t{taken.title}")

    def show(self, bar: Bar) -> None:
        """A bar where somebody looks at it, else a line now and then."""
        bar(self.done, self.of)
        if not sys.stderr.isatty() and self.done >= self.shown + SHOWN_EVERY:
            self.shown = self.done
            print(f"{self.done} of {self.of}", file=sys.stderr, flush=True)

    def tell(self, program: Program) -> None:
        verb = "would be" if self.dry else "was" if self.messages == 1 else "were"
        print(
            f"{count_of(self.of, 'conversation')} of {program} looked at; {count_of(self.messages, 'message')} {verb} added.",
            file=sys.stderr,
        )
        for outcome, words in WORDS.items():
            if count := self.outcomes[outcome]:
                print(f"  {count} {words}", file=sys.stderr)
        if self.elsewhere:
            print(f"  {self.elsewhere} about other folders", file=sys.stderr)
        if self.skipped_lines:
            print(f"  {self.skipped_lines} lines could not be read and were skipped", file=sys.stderr)
        if self.left_out:
            told = ", ".join(f"{count} {words}" for words, count in self.left_out.most_common())
            print(f"  left out: {told}", file=sys.stderr)
        for problem in self.problems[:PROBLEMS_SHOWN]:
            complain(problem)
        if len(self.problems) > PROBLEMS_SHOWN:
            complain(f"… and {len(self.problems) - PROBLEMS_SHOWN} more.")


@dataclass(frozen=True, slots=True)
class Wanted:
    program: Program
    since_ms: int = 0
    project: Path | None = None
    agent: str | None = None
    dry: bool = False
    as_json: bool = False


async def import_history(client: Client, wanted: Wanted) -> bool:
    """True when nothing failed."""
    places = places_of(os.environ, await _projects(client, wanted))
    picked = files_since(wanted.program, places, wanted.since_ms)
    if not picked:
        complain(f"There is no history of {wanted.program} here: looked in {_places_text(wanted.program, places)}.")
        return False
    report = Report(len(picked), wanted.dry, wanted.as_json)
    titles = names(places)
    with progress(f"Importing from {wanted.program}", quiet=wanted.as_json) as bar:
        for batch in batches(picked):
            with Scratch() as scratch:
                read = await asyncio.to_thread(read_all, batch, titles, scratch)
                pairs: list[tuple[SessionFile, ForeignConversation]] = []
                for file, one in zip(batch, read, strict=True):
                    if isinstance(one, Unreadable):
                        report.problems.append(f"{file.path}: {one.reason}")
                    elif is_within(one, wanted.project):
                        pairs.append((file, one))
                    else:
                        report.elsewhere += 1
                await _send(client, pairs, wanted, report)
            report.done += len(batch)
            report.show(bar)
    report.tell(wanted.program)
    return not report.problems


async def _projects(client: Client, wanted: Wanted) -> list[Path]:
    """Where trajectories may lie: in the folder that was named, else here and where conversations are about something."""
    if wanted.program != "refact":
        return []
    if wanted.project is not None:
        return [wanted.project]
    known = [Path(listing.project) async for listing in client.every_conversation() if listing.project]
    return [Path.cwd(), *known]


def _places_text(program: Program, places: Places) -> str:
    match program:
        case "refact":
            return ", ".join(str(project / ".refact") for project in places.projects[:5])
        case "claude":
            return str(places.claude)
        case "codex":
            return str(places.codex)
        case "pi":
            return str(places.pi)


async def _send(
    client: Client, pairs: Sequence[tuple[SessionFile, ForeignConversation]], wanted: Wanted, report: Report
) -> None:
    rest = list(pairs)
    while rest:
        with TemporaryFile() as body:
            count = await asyncio.to_thread(_write, body, rest)
            await _request(client, rest[:count], body, wanted, report)
        rest = rest[count:]


def _write(body: BufferedIOBase, pairs: Sequence[tuple[SessionFile, ForeignConversation]]) -> int:
    """Enough of them for one request, and how many those are."""
    for count, (_, conversation) in enumerate(pairs, 1):
        body.writelines(write_conversation(conversation))
        if body.tell() >= REQUEST_BYTES:
            return count
    return len(pairs)


async def _request(
    client: Client,
    pairs: Sequence[tuple[SessionFile, ForeignConversation]],
    body: BufferedIOBase,
    wanted: Wanted,
    report: Report,
) -> None:
    try:
        taken = await client.take_over(body, agent=wanted.agent, dry_run=wanted.dry)
    except TooLarge as problem:
        report.problems += [f"{file.path}: {problem.message}" for file, _ in pairs]
        return
    except CallerError as problem:
        if problem.code in ("not_found", "unauthorized", "forbidden"):
            raise
        report.problems += [f"{file.path}: {problem.message}" for file, _ in pairs]
        return
    for (file, conversation), one in zip(pairs, taken, strict=True):
        report.take(file, conversation, one)
