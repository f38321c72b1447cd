"""The folded view of a conversation: what `evolve` yields, what a snapshot carries, what a client draws.

Plain data in both languages. The eight states are the master words; every other status word is derived from them.
"""

from typing import Any, Literal

from msgspec import Struct

from palaver.schema.base import BlobRef, Decision, Delivery, Origin, Scope, Shown, Strength, Then, Usage, Verdict
from palaver.schema.content import Content
from palaver.schema.errors import WireError

Status = Literal[
    "idle", "generating", "executing_tools", "paused", "waiting_ide", "waiting_user_input", "completed", "error"
]
Role = Literal["user", "assistant", "system", "event", "plan", "summary"]
Progress = Literal["streaming", "done", "interrupted", "superseded"]
ToolStatus = Literal["input", "called", "waiting", "running", "ok", "error", "denied", "interrupted"]
Activity = Literal["model_loading", "thinking", "calling_tool", "working", "idle"]
RequestKind = Literal["approval", "question", "plan"]
RequestStatus = Literal["open", "answered", "expired", "cancelled", "superseded"]
Outcome = Literal["completed", "task", "plan", "yielded", "limited", "failed", "interrupted"]
ProcessEnd = Literal["exited", "stopped", "restart"]
CompressionStage = Literal["deduplicate", "shorten", "repair", "limit", "summarize"]
"""In the order they are tried: repeated files, long tool results, broken calls, old answers, a summary by the model."""
COMPRESSING = "compressing"
"""The detail of a turn that is making its history fit the model."""
Stopped = Literal["user", "restart", "shutdown", "limit", "backend_exit", "storage", "deleted", "parent"]
Waking = Literal["message", "task", "callback", "idle"]
"""What a message that begins a turn is: someone's words, a subagent's task, another agent's answer, an idle prompt."""


class _Block(Struct, frozen=True, kw_only=True, tag_field="type"):
    index: int
    """Place within its message. Blocks are ordered by it, not by arrival."""


class TextBlock(_Block, tag="text"):
    text: str
    status: Progress = "done"
    blob: BlobRef | None = None
    citations: tuple[Any, ...] = ()


class ThinkingBlock(_Block, tag="thinking"):
    text: str
    status: Progress = "done"
    redacted: bool = False
    signature: str | None = None
    provider: Any = None
    """What the provider wants back untouched: signatures, encrypted reasoning, its own ids."""
    duration_ms: int | None = None


class ImageBlock(_Block, tag="image"):
    url: str


class ToolError(Shown):
    code: str
    message: str


class ToolBlock(_Block, tag="tool"):
    call: str
    name: str
    status: ToolStatus
    input: Any = None
    input_text: str = ""
    """The arguments as they stream in; empty once `input` is whole."""
    output: str = ""
    error: ToolError | None = None
    truncated: bool = False
    blob: BlobRef | None = None
    total_lines: int | None = None
    total_bytes: int | None = None
    exit_code: int | None = None
    request: str | None = None
    grant: str | None = None
    provider: Any = None
    started_at: int | None = None
    finished_at: int | None = None
    changes: tuple["FileChange", ...] = ()
    """What it did to files, with diffs."""


Block = TextBlock | ThinkingBlock | ImageBlock | ToolBlock


class TurnSummary(Shown):
    """How a turn ended."""

    id: str
    outcome: Outcome
    ended_at: int
    stopped: Stopped | None = None
    by: Origin | None = None
    error: WireError | None = None
    summary: str | None = None
    duration_ms: int | None = None
    mode: str | None = None


class KnowledgeSource(Shown):
    """Where something recalled comes from. `ref` is a conversation's id or a path beneath the project."""

    kind: Literal["conversation", "note", "file"]
    ref: str
    title: str = ""
    snippet: str = ""
    seq: int | None = None
    """Where in that conversation."""


class Knowledge(Shown):
    """What was recalled before a message was answered, as the model was shown it."""

    sources: tuple[KnowledgeSource, ...] = ()
    tokens: int = 0
    text: str = ""


class Switch(Shown):
    """Another model took over, and why."""

    to_model: str
    from_model: str | None = None
    reason: str = ""


class Message(Shown):
    id: str
    role: Role
    seq: int
    """The event that began it: the order of messages, never changed."""
    updated_seq: int
    ts: int
    blocks: tuple[Block, ...] = ()
    status: Progress = "done"
    turn: str | None = None
    origin: Origin | None = None
    agent: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    hidden: bool = False
    event_kind: str | None = None
    edited: bool = False
    client_request_id: str | None = None
    exchange: str | None = None
    knowledge: Knowledge | None = None
    switch: Switch | None = None
    """On the first answer of a model that took over."""
    ended: TurnSummary | None = None
    """On the last message of a turn that failed, was stopped or met a limit: a failure stays to be seen for ever."""
    data: Any = None


class QueueItem(Shown):
    """A message that waits; or, with a `command`, something that will be done to the history."""

    id: str
    content: Content
    delivery: Delivery
    ts: int
    priority: bool = False
    merge: bool = False
    held: bool = False
    version: int = 1
    agent: str | None = None
    mode: str | None = None
    origin: Origin | None = None
    client_request_id: str | None = None
    trigger: "Waking" = "message"
    exchange: str | None = None
    hops: int = 0
    command: dict[str, Any] | None = None


class QuestionOption(Shown):
    label: str
    description: str | None = None
    preview: str | None = None


class Question(Shown):
    question: str
    header: str = ""
    options: tuple[QuestionOption, ...] = ()
    multi_select: bool = False


class PlanItem(Shown):
    title: str
    description: str | None = None
    status: Literal["pending", "in_progress", "done", "skipped"] = "pending"


class Plan(Shown):
    summary: str
    items: tuple[PlanItem, ...] = ()
    status: Literal["planned", "approved", "executing", "completed"] = "planned"
    text: str | None = None


class Offer(Shown):
    """What a lasting yes to a request may cover. `match` as in a rule; absent: every call of the tool."""

    label: str
    match: str | None = None


class Resolution(Shown):
    """How a request ended, as recorded: the one answer every later decider is told."""

    status: RequestStatus
    ts: int
    verdict: Verdict | None = None
    then: Then = "continue"
    scope: Scope = "once"
    offer: int = 0
    answers: tuple[Any, ...] = ()
    text: str | None = None
    input: Any = None
    by: Origin | None = None


class Request(Shown):
    """Something that waits for a person. Open ones are in every snapshot; the last resolved ones stay to be seen."""

    id: str
    kind: RequestKind
    ts: int
    status: RequestStatus = "open"
    turn: str | None = None
    call: str | None = None
    agent: str | None = None
    tool: str | None = None
    input: Any = None
    hash: str | None = None
    title: str | None = None
    risk: str | None = None
    sandbox: str | None = None
    preview: str | None = None
    """What will happen, for the eye: a diff or the exact command, control characters made visible."""
    scopes: tuple[Scope, ...] = ("once",)
    offers: tuple[Offer, ...] = ()
    """What a yes in a scope beyond `once` may cover, the narrowest first."""
    questions: tuple[Question, ...] = ()
    plan: Plan | None = None
    expires_at: int | None = None
    resolution: Resolution | None = None


class Retry(Shown):
    attempt: int
    of: int
    after_s: float
    reason: str


class Trigger(Shown):
    """Why a turn began, and the messages it consumes."""

    kind: Literal["message", "request", "regenerate", "callback", "process", "idle", "task"] = "message"
    messages: tuple[str, ...] = ()
    request: str | None = None
    exchange: str | None = None
    """The exchange that this turn answers."""
    hops: int = 0
    """Words between agents since a person last spoke: what bounds a conversation of agents with each other."""


class Turn(Shown):
    """The active turn."""

    id: str
    agent: str
    backend: str
    model: str | None
    started_at: int
    trigger: Trigger
    resumable: bool = False
    steerable: bool = False
    mode: str | None = None
    activity: Activity = "thinking"
    """What a turn begins with: it is announced in the same breath as the message, before any event of its own."""
    detail: str | None = None
    retry: Retry | None = None
    usage: Usage = Usage()
    cost_usd: float = 0.0
    """Of its answers so far."""
    switch: Switch | None = None
    """Announced, and not yet shown on an answer."""
    yielding: bool = False
    """It ends as soon as its current answer and the calls of it are done."""


class Subagent(Shown):
    conversation: str
    agent: str
    task: str
    call: str | None = None
    status: Literal["running", "completed", "failed", "cancelled"] = "running"
    run: str | None = None
    """Its turn."""
    turn: str | None = None
    """The turn here that it works for."""
    started_at: int | None = None
    finished_at: int | None = None
    cost_usd: float | None = None


ExchangeStatus = Literal["sent", "started", "queued", "timeout", "complete", "failed", "cancelled"]


class Exchange(Shown):
    """A word from one agent to another and its answer, seen from one of the two conversations."""

    id: str
    agent: str
    """The other agent."""
    conversation: str | None
    """The other conversation."""
    status: ExchangeStatus
    direction: Literal["out", "in"] = "out"
    mode: Literal["sync", "async"] = "sync"
    call: str | None = None
    callback: bool = False
    """Nobody waits for the answer: when it comes, it begins a turn."""
    hops: int = 0
    started_at: int | None = None
    finished_at: int | None = None
    tool_call_count: int | None = None
    """How many tools the other side used for its answer, once that is known."""


class Process(Shown):
    id: str
    command: str
    call: str | None = None
    pid: int | None = None
    turn: str | None = None
    running: bool = True
    exit_code: int | None = None
    started_at: int | None = None
    finished_at: int | None = None
    end: "ProcessEnd | None" = None


class Grant(Shown):
    """A standing rule that a person gave here. `match` absent: every call of the tool."""

    tool: str
    scope: Scope
    decision: Decision = "allow"
    match: str | None = None
    agent: str | None = None
    request: str | None = None
    ts: int = 0


class Compression(Shown):
    """From here on a model is shown less of what began before `horizon`; the log and the page keep all of it."""

    stage: CompressionStage
    horizon: int
    """A seq. What began before it is compressed in the way of this stage."""
    strength: Strength
    ts: int
    seq: int
    before_tokens: int
    after_tokens: int
    summary: str | None = None
    """What takes the place of the messages, in stage `summarize`."""


class ContextMeter(Shown):
    used_tokens: int
    window_tokens: int | None = None
    estimated: bool = True
    compressed: bool = False
    breakdown: dict[str, int] = {}
    """Tokens by what they are: system, tools, instructions, knowledge, messages, tool_results."""


class FileChange(Shown):
    path: str
    kind: Literal["created", "modified", "deleted", "renamed"]
    additions: int = 0
    deletions: int = 0
    diff: str | None = None
    blob: BlobRef | None = None


class Parent(Shown):
    """Where a conversation comes from. `root` is the top of its tree."""

    conversation: str
    kind: Literal["branch", "subagent", "exchange", "mission"]
    root: str
    message: str | None = None
    call: str | None = None
    depth: int = 0
    """How many conversations stand above it, for a subagent's."""


class State(Shown):
    """One conversation, folded. `offset` messages precede `messages[0]`: history is paged, not shipped."""

    conversation: str = ""
    seq: int = 0
    created_at: int = 0
    updated_at: int = 0
    title: str = ""
    title_source: Literal["none", "auto", "user"] = "none"
    agent: str = "default"
    project: str | None = None
    params: dict[str, Any] = {}
    parent: Parent | None = None
    status: Status = "idle"
    offset: int = 0
    messages: tuple[Message, ...] = ()
    queue: tuple[QueueItem, ...] = ()
    requests: tuple[Request, ...] = ()
    turn: Turn | None = None
    last_turn: TurnSummary | None = None
    plan: Plan | None = None
    subagents: tuple[Subagent, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    processes: tuple[Process, ...] = ()
    grants: tuple[Grant, ...] = ()
    compressions: tuple[Compression, ...] = ()
    files: tuple[FileChange, ...] = ()
    context: ContextMeter | None = None
    usage: Usage = Usage()
    cost_usd: float = 0.0
    draft: str = ""
    archived: bool = False
    deleted: bool = False


class Listing(Shown):
    """A conversation in a list: enough for a row, cheap enough for ten thousand."""

    id: str
    title: str
    agent: str
    project: str | None
    status: Status
    created_at: int
    updated_at: int
    seq: int
    last_line: str = ""
    message_count: int = 0
    queue_size: int = 0
    open_requests: int = 0
    turn: str | None = None
    last_turn: str | None = None
    """The latest that is over: a reader who missed all of a short one still learns of it."""
    archived: bool = False
    deleted: bool = False
    parent: str | None = None
    parent_kind: Literal["branch", "subagent", "exchange", "mission"] | None = None
    root: str | None = None
    """The top of its tree, for one that has a parent."""
    open_exchanges: int = 0
    """Words to other agents whose answer is still to come."""
    cost_usd: float = 0.0
    resolved_at: int | None = None
    """When a request of it last came to an end: how the latest of all conversations are found."""
    grants: int = 0
    """What was allowed for this conversation: how the list of all grants finds them."""
    pos: int = 0
    """The store-wide position of its latest change: the cursor of a list that follows."""
