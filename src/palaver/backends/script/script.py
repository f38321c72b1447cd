"""What a scripted agent does, step by step: the words a script is written in.

A script is a list of steps, or a generator of them that is sent a `Reply` after each, so that it can react to a decision
or an answer. Written by tests and by `demo/backend.py`, played by `backend.py`. Plain data: no step does anything by itself.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from palaver.errors import AgentError
from palaver.schema.base import Scope, Strength
from palaver.schema.commands import Answer
from palaver.schema.events import KnownEvent, RequestResolved
from palaver.schema.view import (
    Activity,
    CompressionStage,
    FileChange,
    KnowledgeSource,
    Offer,
    Outcome,
    Plan,
    Question,
    Retry,
)

Output = tuple[Literal["stdout", "stderr"], str]


@dataclass(frozen=True, slots=True)
class Say:
    text: str
    chunk: int | None = None
    """Characters a fragment; unset, about a word."""


@dataclass(frozen=True, slots=True)
class Think:
    text: str
    chunk: int | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A call that ends its answer, and its made-up result."""

    name: str
    input: Mapping[str, Any] = field(default_factory=dict[str, Any])
    output: str | None = None
    """Unset: all that was seen live."""
    ok: bool = True
    asks: bool = False
    live: tuple[str | Output, ...] = ()
    """What is seen while it runs, a piece at a time."""
    takes_s: float = 0.0
    """On the turn's clock; its pieces come evenly spread."""
    wait: str | None = None
    """A gate that holds the tool while it runs, after its live output."""
    error: str | None = None
    error_code: str = "tool_error"
    effect: Literal["done", "none", "unknown"] = "done"
    exit_code: int | None = None
    title: str | None = None
    preview: str | None = None
    risk: str | None = None
    sandbox: str | None = None
    scopes: tuple[Scope, ...] = ("once",)
    offers: tuple[Offer, ...] = ()
    changes: tuple[FileChange, ...] = ()
    message_to: str | None = None
    """The agent this call passes a message to; it answers with the output."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Several calls in one answer. They run one after the other."""

    calls: tuple[Tool, ...]
    together: bool = False
    """All that ask do so at once, before the first one runs."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Questions to a person, put through the tool `ask_user`."""

    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Confirm:
    """A yes or no that is about no tool: going on beyond a limit."""

    title: str
    preview: str
    risk: str | None = None


@dataclass(frozen=True, slots=True)
class ShowPlan:
    plan: Plan | None
    asks: bool = False
    """Wait for a person to approve it."""


@dataclass(frozen=True, slots=True)
class Status:
    status: Activity
    detail: str | None = None
    retry: Retry | None = None


@dataclass(frozen=True, slots=True)
class Recall:
    """Something remembered for the message that is being answered."""

    sources: tuple[KnowledgeSource, ...]
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Compress:
    """From here on a model would be shown less of all that came before."""

    stages: tuple[CompressionStage, ...]
    strength: Strength
    tokens: tuple[int, ...]
    """Before the first stage, and after each."""
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class Background:
    """A made-up process that outlives its call, until it is ended here, by a person or with the server."""

    command: str


@dataclass(frozen=True, slots=True)
class EndBackground:
    """The process of this command ends by itself."""

    command: str
    exit_code: int
    text: str


@dataclass(frozen=True, slots=True)
class Emit:
    """Any other event of a turn; its `turn` is filled in."""

    event: KnownEvent


@dataclass(frozen=True, slots=True)
class Boundary:
    """One model call ends here and the next begins: messages that wait join the turn."""


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Stands still until the gate is opened."""

    gate: str


@dataclass(frozen=True, slots=True)
class Fail:
    error: AgentError


@dataclass(frozen=True, slots=True)
class Finish:
    outcome: Outcome = "completed"
    summary: str | None = None


Step = (
    Say
    | Think
    | Tool
    | Tools
    | Ask
    | Confirm
    | ShowPlan
    | Status
    | Recall
    | Compress
    | Background
    | EndBackground
    | Emit
    | Boundary
    | Pause
    | Wait
    | Fail
    | Finish
)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a step brought back: how each request it opened has ended."""

    requests: tuple[RequestResolved, ...] = ()

    @property
    def allowed(self) -> bool:
        return all(allows(request) for request in self.requests)

    @property
    def answers(self) -> tuple[Answer, ...]:
        return tuple(answer for request in self.requests for answer in request.answers)

    @property
    def text(self) -> str | None:
        return next((request.text for request in self.requests if request.text), None)


def allows(request: RequestResolved) -> bool:
    return request.status == "answered" and request.verdict == "allow"


Dialogue = Generator[Step, Reply, None]
Script = Iterable[Step] | Dialogue


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a turn was asked, for a script that depends on it."""

    text: str
    image_count: int = 0
    earlier_turns: int = 0
    history_tokens: int = 0
    """Estimated, as scripts count."""


Choice = Callable[[Prompt], Script]


def turns(*scripts: Iterable[Step]) -> Choice:
    """One fixed script a turn, in order; the last one repeats."""
    fixed = [tuple(script) for script in scripts]
    return lambda prompt: fixed[min(prompt.earlier_turns, len(fixed) - 1)]
