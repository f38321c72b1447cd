"""The `Backend` seam: what runs a turn, and the handle it is given to do so.

A backend yields events without numbers, ids or times; the conversation numbers, stores and publishes them. Yielding is
not storing: `await turn.committed()` before an effect that must not precede its record.

A backend must never: import the log, a conversation, the feed or a face; keep state beyond its process; swallow a
cancellation (a stop cancels the task that iterates it, and the conversation settles what is open).
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from palaver.backends.program_lookup import ProgramLookup
from palaver.context.quotes import Quoting
from palaver.schema.base import BlobRef
from palaver.schema.events import KnownEvent, RequestOpened, RequestResolved
from palaver.schema.records import AgentRecord
from palaver.schema.view import Message, State
from palaver.tools.base import Letter, Passage, Reply, Report


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do. What is absent is said, not faked."""

    deltas: bool = True
    thinking: bool = False
    steer: bool = False
    approvals: bool = False
    resume: bool = False
    """A turn cut by a restart can be taken up from the log alone."""
    fork: bool = False
    images: bool = False
    usage: bool = False


class Turn(Protocol):
    """A running turn, as its backend sees it."""

    @property
    def id(self) -> str: ...
    @property
    def conversation(self) -> str: ...
    @property
    def agent(self) -> AgentRecord: ...
    @property
    def project(self) -> Path:
        """The folder tools work in."""
        ...

    @property
    def params(self) -> Mapping[str, Any]: ...
    @property
    def state(self) -> State:
        """The folded view as committed now, with the whole history. It moves while the turn runs."""
        ...

    @property
    def history(self) -> Sequence[Message]: ...
    @property
    def programs(self) -> ProgramLookup:
        """Where the programs that it starts are found: outside every folder that agents work in."""
        ...

    @property
    def quoting(self) -> Quoting:
        """How words that are not the person's enter a prompt."""
        ...

    def new_id(self) -> str: ...
    def now_ms(self) -> int: ...

    async def sleep(self, seconds: float) -> None:
        """Wait on the injected clock (retry delays)."""
        ...

    async def committed(self) -> None:
        """Returns once everything yielded so far is on disk."""
        ...

    async def deliveries(self) -> Sequence[Message]:
        """A boundary: queued messages that join this turn now, already part of `history`. Often empty."""
        ...

    async def request(self, request: RequestOpened) -> RequestResolved:
        """Ask a person and wait, through restarts of every client. An already open request is waited for, not reopened."""
        ...

    async def result_of(self, call: str) -> None:
        """Returns once a call that somebody else executes (an editor) has its result in the log."""
        ...

    async def store_blob(self, data: bytes, mime: str) -> BlobRef:
        """Keep what is too large for an event; on disk when it returns."""
        ...

    async def load_blob(self, blob: str) -> bytes | None: ...

    async def search(self, query: str, limit: int) -> Sequence[Passage]:
        """Earlier conversations of the same project, the best first. This one is left out."""
        ...

    async def process_ended(self, process: str, exit_code: int | None, text: str) -> None:
        """A background process ended by itself: recorded, and told to the agent. Works after the turn is over too."""
        ...

    async def delegate(self, agent: str | None, prompt: str, call: str) -> Report:
        """A subagent does a task, in a conversation of its own, and reports. Its start and end are recorded here."""
        ...

    async def write_to(self, letter: Letter, call: str) -> Reply:
        """A message to another agent. `call` becomes the exchange's id; what comes of it is recorded here."""
        ...


class Background(Protocol):
    """Processes that outlive the turn that started them, as their conversations see them."""

    def stop(self, process: str) -> None:
        """End it and its children soon. Nothing happens when it is over, or was never there."""
        ...


class NoBackground:
    """For a server whose agents start no processes."""

    def stop(self, process: str) -> None:
        pass


class Backend(Protocol):
    name: str

    @property
    def capabilities(self) -> Capabilities: ...

    def run(self, turn: Turn) -> AsyncIterator[KnownEvent]:
        """One turn. Ends normally with its `turn.finished`, or raises an AgentError that becomes a failed turn."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Readiness:
    """What doctor says of a backend."""

    ready: bool
    summary: str
    fix: str | None = None
    """What to do about it: a sentence, or the bare command, to be copied as it is."""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def in_words(self) -> str:
        """All of it to be read in one go."""
        if self.fix is None:
            return self.summary
        return f"{self.summary} {self.fix}" if self.fix.endswith(".") else f"{self.summary} Run `{self.fix}`."
