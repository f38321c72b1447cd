"""Every event a log may hold. Past tense; live fragments end in `.delta`.

Rules: new optional fields and new types only, never a changed meaning. An unknown type, or a known one with fields this
release cannot read, is kept as `UnknownEvent` and skipped, so an older server never crashes on a newer log.

`seq`, `id`, `ts` and `conversation` are filled in when the owner numbers an event; until then they hold defaults.
"""

from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct, ValidationError

from palaver.schema.base import BlobRef, Decision, Delivery, Origin, Scope, Strength, Then, Usage, Verdict
from palaver.schema.commands import Answer
from palaver.schema.content import Content
from palaver.schema.errors import WireError
from palaver.schema.view import (
    Activity,
    Block,
    CompressionStage,
    FileChange,
    KnowledgeSource,
    Offer,
    Outcome,
    Parent,
    Plan,
    ProcessEnd,
    Question,
    RequestKind,
    RequestStatus,
    Retry,
    Role,
    Stopped,
    ToolError,
    Trigger,
    Waking,
)


class EventBase(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    seq: int = 0
    id: str = ""
    ts: int = 0
    """Milliseconds since 1970, UTC. For people; order is `seq` alone."""
    conversation: str = ""
    turn: str | None = None
    origin: Origin | None = None
    client_request_id: str | None = None
    body_hash: str | None = None
    exchange: str | None = None
    """The exchange between two agents that it belongs to: on every event of the turn that answers one."""


# -- conversation


class ConversationCreated(EventBase, tag="conversation.created"):
    agent: str = "default"
    title: str = ""
    project: str | None = None
    params: dict[str, Any] = {}
    parent: Parent | None = None
    source: str | None = None


class ConversationUpdated(EventBase, tag="conversation.updated"):
    """Only the given fields change. In `params` a null clears its key."""

    title: str | None = None
    title_source: Literal["auto", "user"] | None = None
    agent: str | None = None
    params: dict[str, Any] | None = None
    archived: bool | None = None
    project: str | None = None
    parent: Parent | None = None
    """Where what it was filled with comes from."""


class ConversationDeleted(EventBase, tag="conversation.deleted"):
    pass


class DraftSet(EventBase, tag="draft.set"):
    text: str


class DraftCleared(EventBase, tag="draft.cleared"):
    pass


# -- queue


class QueueAdded(EventBase, tag="queue.added"):
    """A message waits; or a `command` that changes the history does, as it was sent, and `content` is empty."""

    item: str
    content: Content
    delivery: Delivery = "turn"
    priority: bool = False
    merge: bool = False
    agent: str | None = None
    mode: str | None = None
    trigger: Waking = "message"
    hops: int = 0
    command: dict[str, Any] | None = None


class QueueEdited(EventBase, tag="queue.edited"):
    item: str
    version: int
    content: Content | None = None
    held: bool | None = None
    priority: bool | None = None
    before: str | None = None


class QueueRemoved(EventBase, tag="queue.removed"):
    item: str
    reason: Literal["delivered", "cancelled"]
    why: str | None = None
    """Why a command that had waited could not be carried out."""


# -- messages


class MessageAdded(EventBase, tag="message.added"):
    """A message by anyone but the running agent. `blocks` instead of `content` for restored and imported ones."""

    message: str
    role: Role = "user"
    content: Content = ()
    blocks: tuple[Block, ...] | None = None
    hidden: bool = False
    event_kind: str | None = None
    agent: str | None = None
    model: str | None = None
    item: str | None = None
    data: Any = None


class MessageEdited(EventBase, tag="message.edited"):
    message: str
    content: Content


class MessageRemoved(EventBase, tag="message.removed"):
    message: str
    index: int


class MessageTruncated(EventBase, tag="message.truncated"):
    """Everything from `index` on is gone from the view (never from the log)."""

    index: int
    first_seq: int | None = None
    """The seq of the first message that goes: what was compressed beyond it is forgotten too."""


# -- turn


class TurnStarted(EventBase, tag="turn.started"):
    agent: str
    backend: str
    trigger: Trigger
    model: str | None = None
    parent: str | None = None
    mode: str | None = None
    resumable: bool = False
    steerable: bool = False


class TurnStatus(EventBase, tag="turn.status"):
    status: Activity
    detail: str | None = None
    retry: Retry | None = None
    yielding: bool = False
    """From now on the turn ends as soon as its current answer and the calls of it are done."""


class TurnFinished(EventBase, tag="turn.finished"):
    outcome: Outcome
    usage: Usage = Usage()
    cost_usd: float | None = None
    duration_ms: int | None = None
    error: WireError | None = None
    summary: str | None = None


class TurnInterrupted(EventBase, tag="turn.interrupted"):
    reason: Stopped
    usage: Usage = Usage()
    cost_usd: float | None = None
    duration_ms: int | None = None
    audio_end_ms: int | None = None
    detail: str | None = None


# -- stream


class AnswerStarted(EventBase, tag="answer.started"):
    """One model call begins to answer. `replaces` names the cut attempt that this one takes the place of."""

    message: str
    model: str | None = None
    replaces: str | None = None


class TextDelta(EventBase, tag="text.delta"):
    message: str
    block: int
    text: str


class TextFinished(EventBase, tag="text.finished"):
    message: str
    block: int
    text: str
    interrupted: bool = False
    blob: BlobRef | None = None
    unposted: bool = False
    """Plain words of an agent that speaks through its tools alone: an error, in no inbox."""
    cancelled: bool = False
    """Cut off because the turn was cancelled, not because it failed."""


class ThinkingDelta(EventBase, tag="thinking.delta"):
    message: str
    block: int
    text: str


class ThinkingFinished(EventBase, tag="thinking.finished"):
    message: str
    block: int
    text: str
    interrupted: bool = False
    redacted: bool = False
    signature: str | None = None
    provider: Any = None
    duration_ms: int | None = None
    cancelled: bool = False
    """As of `text.finished`."""


class AnswerFinished(EventBase, tag="answer.finished"):
    message: str
    finish_reason: str
    usage: Usage | None = None
    cost_usd: float | None = None
    model: str | None = None
    interrupted: bool = False
    provider: Any = None


class CitationAdded(EventBase, tag="citation.added"):
    message: str
    block: int
    citation: Any


# -- tools


class ToolInputDelta(EventBase, tag="tool.input.delta"):
    message: str
    block: int
    call: str
    name: str
    text: str = ""


class ToolCalled(EventBase, tag="tool.called"):
    """The model asks for a tool; nothing has run. `provider` keeps the provider's own call id, which may repeat."""

    message: str
    block: int
    call: str
    name: str
    input: Any = None
    provider: Any = None


class ToolStarted(EventBase, tag="tool.started"):
    """Committed before the tool's first effect: the grant it runs under. From here on its effect may be unknown."""

    call: str
    grant: str
    request: str | None = None
    hash: str | None = None
    sandbox: str | None = None


class ToolOutputDelta(EventBase, tag="tool.output.delta"):
    call: str
    text: str
    stream: Literal["stdout", "stderr"] = "stdout"


class ToolFinished(EventBase, tag="tool.finished"):
    """The one result of a call. `output` replaces what was streamed; `effect` says what happened to the world."""

    call: str
    ok: bool
    output: str = ""
    error: ToolError | None = None
    effect: Literal["done", "none", "unknown"] = "done"
    truncated: bool = False
    blob: BlobRef | None = None
    total_lines: int | None = None
    total_bytes: int | None = None
    exit_code: int | None = None
    duration_ms: int | None = None
    cancelled: bool = False
    """As of `text.finished`."""


# -- requests


class RequestOpened(EventBase, tag="request.opened"):
    """`hash` binds an approval to exactly what will run; any change asks again."""

    request: str
    kind: RequestKind
    call: str | None = None
    agent: str | None = None
    tool: str | None = None
    input: Any = None
    hash: str | None = None
    title: str | None = None
    risk: str | None = None
    sandbox: str | None = None
    preview: str | None = None
    scopes: tuple[Scope, ...] = ("once",)
    offers: tuple[Offer, ...] = ()
    questions: tuple[Question, ...] = ()
    plan: Plan | None = None
    expires_at: int | None = None


class RequestResolved(EventBase, tag="request.resolved"):
    """The one end of a request. Who answered is the event's `origin`."""

    request: str
    status: RequestStatus
    verdict: Verdict | None = None
    then: Then = "continue"
    scope: Scope = "once"
    asked_scope: Scope | None = None
    """The wider scope that was asked for, where the token that answered cannot give it."""
    offer: int = 0
    answers: tuple[Answer, ...] = ()
    text: str | None = None
    input: Any = None


# -- delegation


class SubagentStarted(EventBase, tag="subagent.started"):
    subagent: str
    agent: str
    task: str
    call: str | None = None
    run: str | None = None


class SubagentFinished(EventBase, tag="subagent.finished"):
    subagent: str
    outcome: Literal["completed", "failed", "cancelled"]
    result: str | None = None
    run: str | None = None
    cost_usd: float | None = None
    """What its whole tree cost; counted in its own conversations, shown here."""


class ExchangeSent(EventBase, tag="exchange.sent"):
    """One agent writes to another. The exchange has the id of the call that sent it."""

    exchange: str
    agent: str
    to: str | None = None
    content: str = ""
    mode: Literal["sync", "async"] = "sync"
    call: str | None = None
    hops: int = 0


class ExchangeReturned(EventBase, tag="exchange.returned"):
    """What came of it so far, on both sides. `complete`, `failed` and `cancelled` are ends: the first of them counts."""

    exchange: str
    status: Literal["complete", "timeout", "queued", "started", "failed", "cancelled"]
    response: str | None = None
    duration_ms: int | None = None
    tool_call_count: int | None = None
    run: str | None = None
    """The turn of the other conversation that answered."""


# -- context


class ContextMeasured(EventBase, tag="context.measured"):
    used_tokens: int
    window_tokens: int | None = None
    estimated: bool = True
    stage: str | None = None
    message_count: int = 0
    char_count: int = 0
    breakdown: dict[str, int] = {}


class ContextCompressed(EventBase, tag="context.compressed"):
    """A stage was taken: what began before `horizon` is shown to models in its way from now on, the same way each time."""

    stage: CompressionStage
    strength: Strength
    before_tokens: int
    after_tokens: int
    horizon: int = 0
    messages: tuple[str, ...] = ()
    summary: str | None = None
    usage: Usage | None = None
    """What the summary took; part of the turn's."""
    cost_usd: float | None = None


class KnowledgeRecalled(EventBase, tag="knowledge.recalled"):
    """What was recalled for a message. `text` is what the model is shown with it, now and in every later step."""

    message: str | None = None
    sources: tuple[KnowledgeSource, ...] = ()
    tokens: int = 0
    text: str = ""


# -- work


class FilesChanged(EventBase, tag="files.changed"):
    files: tuple[FileChange, ...]
    call: str | None = None
    truncated_count: int = 0


class PlanUpdated(EventBase, tag="plan.updated"):
    plan: Plan | None = None


class ProcessStarted(EventBase, tag="process.started"):
    process: str
    command: str
    call: str | None = None
    pid: int | None = None


class ProcessFinished(EventBase, tag="process.finished"):
    process: str
    exit_code: int | None = None
    end: ProcessEnd = "exited"


class ModelSwitched(EventBase, tag="model.switched"):
    to_model: str
    from_model: str | None = None
    reason: str = ""


# -- project streams


class MissionAgent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    agent: str
    idle_prompt: str | None = None
    idle_interval_s: int | None = None


class MissionSet(EventBase, tag="mission.set"):
    """A project's mission. The one before it ends, and stays in the history."""

    mission: str
    text: str
    agents: tuple[MissionAgent, ...] = ()
    budget_usd: float | None = None
    project: str | None = None
    """The folder, on every event of a project's stream: its name does not tell."""


class MissionCleared(EventBase, tag="mission.cleared"):
    mission: str
    project: str | None = None


class MissionTriggered(EventBase, tag="mission.triggered"):
    """An agent that has rested long enough is woken with its idle prompt."""

    mission: str
    agent: str
    count: int
    """Of all the mission's wakings, of whatever agent."""
    target: str | None = None
    """The conversation it is told in."""
    prompt: str | None = None
    spent_usd: float | None = None
    """What the mission had cost by then."""
    project: str | None = None


class AgentOverridden(EventBase, tag="agent.overridden"):
    """What a project says of an agent's resting from now on, as a whole: what is absent is no longer said."""

    agent: str
    idle_prompt: str | None = None
    idle_interval_s: int | None = None
    project: str | None = None


class GrantAdded(EventBase, tag="grant.added"):
    """A standing rule that a person gave, in the stream of what it covers."""

    tool: str
    scope: Scope
    decision: Decision = "allow"
    match: str | None = None
    agent: str | None = None
    request: str | None = None


class GrantRemoved(EventBase, tag="grant.removed"):
    """A standing rule was taken back."""

    tool: str
    match: str | None = None


# -- the log's own


class LogCompacted(EventBase, tag="log.compacted"):
    """Stands for the events `first` to `seq`, deltas that finished blocks made redundant. Carries the chain's value."""

    first: int
    chain: str


class UnknownEvent(Struct, frozen=True, kw_only=True):
    """An event this release does not know. Its bytes stay as they are in the log; the fold only moves `seq` on."""

    seq: int = 0
    id: str = ""
    ts: int = 0
    conversation: str = ""
    type: str = ""


Delta = TextDelta | ThinkingDelta | ToolInputDelta | ToolOutputDelta

KnownEvent = (
    TextDelta
    | ThinkingDelta
    | ToolOutputDelta
    | ToolInputDelta
    | ConversationCreated
    | ConversationUpdated
    | ConversationDeleted
    | DraftSet
    | DraftCleared
    | QueueAdded
    | QueueEdited
    | QueueRemoved
    | MessageAdded
    | MessageEdited
    | MessageRemoved
    | MessageTruncated
    | TurnStarted
    | TurnStatus
    | TurnFinished
    | TurnInterrupted
    | AnswerStarted
    | TextFinished
    | ThinkingFinished
    | AnswerFinished
    | CitationAdded
    | ToolCalled
    | ToolStarted
    | ToolFinished
    | RequestOpened
    | RequestResolved
    | SubagentStarted
    | SubagentFinished
    | ExchangeSent
    | ExchangeReturned
    | ContextMeasured
    | ContextCompressed
    | KnowledgeRecalled
    | FilesChanged
    | PlanUpdated
    | ProcessStarted
    | ProcessFinished
    | ModelSwitched
    | MissionSet
    | MissionCleared
    | MissionTriggered
    | AgentOverridden
    | GrantAdded
    | GrantRemoved
    | LogCompacted
)
Event = KnownEvent | UnknownEvent

EVENT_TYPES: dict[str, type[EventBase]] = {kind.__struct_config__.tag: kind for kind in get_args(KnownEvent)}

_decoder: "msgspec.json.Decoder[KnownEvent]" = msgspec.json.Decoder(KnownEvent)
_unknown_decoder = msgspec.json.Decoder(UnknownEvent)
_encoder = msgspec.json.Encoder()


def encode_event(event: KnownEvent) -> bytes:
    """The bytes of an event: made once, stored, and forwarded as they are for ever."""
    return _encoder.encode(event)


def decode_event(line: bytes) -> Event:
    try:
        return _decoder.decode(line)
    except ValidationError:
        return _unknown_decoder.decode(line)
