"""`decide(state, command, facts) → events | refusal`: the one place that says what a command does.

Called by the owner of a conversation alone. A refusal leaves no trace, so a refused command may be repeated.
"""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, assert_never

import msgspec
from msgspec.structs import replace

from palaver.core.facts import Facts
from palaver.core.next import next_items, started
from palaver.core.settle import settle, supersede
from palaver.core.state import find_message, find_request, message_count
from palaver.schema.commands import (
    Accepted,
    ClearDraft,
    Command,
    DeleteConversation,
    EditMessage,
    EditQueued,
    Interrupt,
    Regenerate,
    RemoveMessage,
    RemoveQueued,
    ResolveRequest,
    RestoreMessages,
    RetryFrom,
    ReturnToolResult,
    SendMessage,
    SetDraft,
    SetParams,
    TruncateMessages,
    UpdateConversation,
)
from palaver.schema.content import Content, TextPart, as_content, plain_text
from palaver.schema.errors import ErrorCode
from palaver.schema.events import (
    ConversationDeleted,
    ConversationUpdated,
    DraftCleared,
    DraftSet,
    KnownEvent,
    MessageAdded,
    MessageEdited,
    MessageRemoved,
    MessageTruncated,
    QueueAdded,
    QueueEdited,
    QueueRemoved,
    RequestResolved,
    ToolFinished,
    TurnStarted,
)
from palaver.schema.view import QueueItem, State, ToolError, Trigger

QUEUE_ITEMS = 50
QUEUE_BYTES = 1 << 20
MESSAGE_BYTES = 1 << 20
TITLE_CHARS = 60
TITLE_LIMIT_CHARS = 500
DRAFT_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Refusal:
    code: ErrorCode
    message: str
    details: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Already:
    """Nothing to do: what the command asks for is so. Answered like success, and says why."""

    note: str
    id: str | None = None


Decision = list[KnownEvent] | Refusal | Already


def decide(state: State, command: Command, facts: Facts) -> Decision:
    if state.deleted and not isinstance(command, DeleteConversation):
        return Refusal("gone", "This conversation was deleted.")
    decision = _decide(state, command, facts)
    if not isinstance(decision, list) or not decision:
        return decision
    return _stamped(decision, command, facts)


def accepted(conversation: str, events: list[KnownEvent]) -> Accepted:
    """The answer to a command, read off the events it made: the same on the first try and on every repeat."""
    answer = Accepted(conversation=conversation, seq=events[-1].seq)
    for event in events:
        match event:
            case QueueAdded():
                answer = replace(answer, id=event.item, queued=True)
            case MessageAdded() if event.role == "user":
                answer = replace(answer, id=event.message)
            case RequestResolved() if event.client_request_id or answer.id is None:
                answer = replace(answer, id=event.request)
            case TurnStarted():
                answer = replace(answer, turn=event.turn)
            case _:
                pass
    return answer


def body_hash(command: Command) -> str:
    """What was asked, whatever its spelling on the wire: two bodies are the same when they mean the same."""
    body = msgspec.json.encode(replace(command, client_request_id=None), order="deterministic")
    return blake2b(body, digest_size=16).hexdigest()


def _stamped(events: list[KnownEvent], command: Command, facts: Facts) -> list[KnownEvent]:
    """Every event says who caused it; each also carries the command's id and hash, which is all of idempotency."""
    request_id = command.client_request_id
    digest = body_hash(command) if request_id else None
    return [
        replace(event, origin=event.origin or facts.origin, client_request_id=request_id, body_hash=digest)
        for event in events
    ]


def _decide(state: State, command: Command, facts: Facts) -> Decision:
    match command:
        case SendMessage():
            return _send(state, command, facts)
        case EditQueued():
            return _edit_queued(state, command)
        case RemoveQueued():
            if _queued(state, command.item) is None:
                return Refusal("not_found", "That message is not in the queue: it was delivered or removed before.")
            return [QueueRemoved(item=command.item, reason="cancelled")]
        case Interrupt():
            return _interrupt(state, command, facts)
        case ResolveRequest():
            return _resolve(state, command, facts)
        case UpdateConversation():
            return _update(state, command)
        case SetParams():
            return [ConversationUpdated(params=command.patch)]
        case DeleteConversation():
            if state.deleted:
                return Already("It was deleted before.")
            return [*settle(state, "deleted", now=facts.now, origin=facts.origin), ConversationDeleted()]
        case EditMessage():
            return _edit_message(state, command, facts)
        case RemoveMessage():
            return _remove_message(state, command)
        case TruncateMessages():
            return _truncate(state, command)
        case RetryFrom():
            return _retry_from(state, command, facts)
        case Regenerate():
            return _regenerate(state, facts)
        case ReturnToolResult():
            return _tool_result(state, command)
        case RestoreMessages():
            return _restore(state, command, facts)
        case SetDraft():
            if len(command.text.encode()) > DRAFT_BYTES:
                return Refusal("too_large", f"A draft may hold {DRAFT_BYTES // 1024} KiB.")
            return Already("unchanged") if command.text == state.draft else [DraftSet(text=command.text)]
        case ClearDraft():
            return [DraftCleared()] if state.draft else Already("There was no draft.")
        case _:
            assert_never(command)


# -- messages in


def _send(state: State, command: SendMessage, facts: Facts) -> Decision:
    content = as_content(command.content)
    refusal = _unfit(content)
    if refusal:
        return refusal
    message = facts.new_id()
    titled = _title(state, content)
    if state.turn is None and not next_items(state):
        # At rest: the turn begins in the same step, so that a stop right after this stops it.
        turn = facts.new_id()
        return [
            *supersede(state),
            *titled,
            MessageAdded(turn=turn, message=message, content=content),
            started(turn, Trigger(messages=(message,)), facts, command.mode),
        ]
    if len(state.queue) >= QUEUE_ITEMS or _queue_bytes(state) + _content_bytes(content) > QUEUE_BYTES:
        return Refusal(
            "busy",
            f"The queue is full ({len(state.queue)} messages). Wait for the agent, or remove a queued message.",
            {"queue_size": len(state.queue)},
        )
    return [
        *titled,
        QueueAdded(
            item=message,
            content=content,
            delivery=command.delivery,
            priority=command.priority,
            merge=command.merge,
            agent=command.agent,
            mode=command.mode,
        ),
    ]


def _unfit(content: Content) -> Refusal | None:
    size = _content_bytes(content)
    if size > MESSAGE_BYTES:
        return Refusal(
            "too_large",
            f"A message may hold 1 MiB; this one holds {size:,} bytes. Attach it as a file instead.",
            {"limit_bytes": MESSAGE_BYTES, "size_bytes": size},
        )
    if all(isinstance(part, TextPart) and not part.text.strip() for part in content):
        return Refusal("invalid", "A message needs text or an image.")
    return None


def _content_bytes(content: Content) -> int:
    return sum(len(part.text.encode()) if isinstance(part, TextPart) else len(part.image_url.url) for part in content)


def _queue_bytes(state: State) -> int:
    return sum(_content_bytes(item.content) for item in state.queue)


def _title(state: State, content: Content) -> list[KnownEvent]:
    """The first words become the title, once; a person's own title is never overwritten."""
    if state.title_source != "none":
        return []
    first_line = next((line.strip() for line in plain_text(content).splitlines() if line.strip()), "")
    if not first_line:
        return []
    title = first_line if len(first_line) <= TITLE_CHARS else first_line[: TITLE_CHARS - 1].rstrip() + "…"
    return [ConversationUpdated(title=title, title_source="auto")]


def _queued(state: State, item: str) -> QueueItem | None:
    return next((known for known in state.queue if known.id == item), None)


def _edit_queued(state: State, command: EditQueued) -> Decision:
    item = _queued(state, command.item)
    if item is None:
        return Refusal("not_found", "That message is not in the queue: it was delivered or removed before.")
    content = None if command.content is None else as_content(command.content)
    if content is not None and (refusal := _unfit(content)):
        return refusal
    if command.before and _queued(state, command.before) is None:
        return Refusal("not_found", "The message to move it before is not in the queue.")
    return [
        QueueEdited(
            item=item.id,
            version=item.version + 1,
            content=content,
            held=command.held,
            priority=command.priority,
            before=command.before,
        )
    ]


# -- the running turn


def _interrupt(state: State, command: Interrupt, facts: Facts) -> Decision:
    if state.turn is None:
        return Already("Nothing was running.")
    if command.turn and command.turn != state.turn.id:
        return Already("That turn had ended before.")
    return settle(state, "user", now=facts.now, origin=facts.origin, audio_end_ms=command.audio_end_ms)


def _resolve(state: State, command: ResolveRequest, facts: Facts) -> Decision:
    request = find_request(state, command.request)
    if request is None:
        return Refusal("not_found", "No such request in this conversation.")
    if request.status != "open":
        return Already(f"It was {request.status} before.", id=request.id)
    if request.kind != "question" and command.verdict is None:
        return Refusal("invalid", 'Say `"verdict": "allow"` or `"verdict": "deny"`.')
    if request.kind == "approval" and command.scope not in request.scopes:
        return Refusal("invalid", f"This request can be granted for: {', '.join(request.scopes)}.")
    resolved = RequestResolved(
        turn=request.turn,
        request=request.id,
        status="answered",
        verdict=command.verdict,
        then=command.then,
        scope=command.scope,
        answers=command.answers,
        text=command.text,
        input=command.input,
    )
    if state.turn is not None:
        return [resolved]
    # The turn that asked was ended by a restart (or by its plan): the answer begins the turn that goes on from here.
    turn = facts.new_id()
    return [resolved, started(turn, Trigger(kind="request", request=request.id), facts)]


def _tool_result(state: State, command: ReturnToolResult) -> Decision:
    if state.status != "waiting_ide":
        return Refusal("conflict", "No tool waits for a result from the editor.")
    error = ToolError(code="tool_error", message=command.content) if command.failed else None
    return [
        ToolFinished(
            turn=state.turn.id if state.turn else None,
            call=command.call,
            ok=not command.failed,
            output="" if command.failed else command.content,
            error=error,
        )
    ]


# -- the conversation itself


def _update(state: State, command: UpdateConversation) -> Decision:
    title = None if command.title is None else command.title.strip()
    if title is not None and not title:
        return Refusal("invalid", "A title needs at least one character.")
    if title is not None and len(title) > TITLE_LIMIT_CHARS:
        return Refusal("too_large", f"A title may hold {TITLE_LIMIT_CHARS} characters.")
    changes = (title, command.agent, command.archived)
    if all(change is None for change in changes):
        return Refusal("invalid", "Nothing to change: give `title`, `agent` or `archived`.")
    if changes == (state.title, state.agent, state.archived):
        return Already("unchanged")
    return [
        ConversationUpdated(
            title=title,
            title_source=None if title is None else "user",
            agent=command.agent,
            archived=command.archived,
        )
    ]


# -- rewriting history (at rest only: a running agent must not have its past changed)

_RUNNING = Refusal("conflict", "The agent is working. Stop it first, then change the history.")


def _edit_message(state: State, command: EditMessage, facts: Facts) -> Decision:
    if state.turn is not None:
        return _RUNNING
    found = find_message(state, command.message)
    if found is None:
        return Refusal("not_found", "No such message in this conversation.")
    index, message = found
    content = as_content(command.content)
    if refusal := _unfit(content):
        return refusal
    edited = MessageEdited(message=message.id, content=content)
    if not command.regenerate:
        return [edited]
    turn = facts.new_id()
    after = [MessageTruncated(index=index + 1)] if index + 1 < message_count(state) else []
    return [
        *supersede(state),
        edited,
        *after,
        started(turn, Trigger(kind="regenerate", messages=(message.id,)), facts),
    ]


def _remove_message(state: State, command: RemoveMessage) -> Decision:
    if state.turn is not None:
        return _RUNNING
    found = find_message(state, command.message)
    if found is None:
        return Refusal("not_found", "No such message in this conversation.")
    return [MessageRemoved(message=command.message, index=found[0])]


def _truncate(state: State, command: TruncateMessages) -> Decision:
    if state.turn is not None:
        return _RUNNING
    if not 0 <= command.from_index <= message_count(state):
        return Refusal("invalid", f"`from_index` lies between 0 and {message_count(state)}.")
    if command.from_index == message_count(state):
        return Already("There was nothing from that index on.")
    return [*supersede(state), MessageTruncated(index=command.from_index)]


def _retry_from(state: State, command: RetryFrom, facts: Facts) -> Decision:
    if state.turn is not None:
        return _RUNNING
    if not 0 <= command.index <= message_count(state):
        return Refusal("invalid", f"`index` lies between 0 and {message_count(state)}.")
    content = as_content(command.content)
    if refusal := _unfit(content):
        return refusal
    message, turn = facts.new_id(), facts.new_id()
    after = [MessageTruncated(index=command.index)] if command.index < message_count(state) else []
    return [
        *supersede(state),
        *after,
        MessageAdded(turn=turn, message=message, content=content),
        started(turn, Trigger(messages=(message,)), facts),
    ]


def _regenerate(state: State, facts: Facts) -> Decision:
    if state.turn is not None:
        return _RUNNING
    for place in range(len(state.messages) - 1, -1, -1):
        message = state.messages[place]
        if message.role == "user" and not message.hidden:
            index = state.offset + place + 1
            after = [MessageTruncated(index=index)] if index < message_count(state) else []
            turn = facts.new_id()
            trigger = Trigger(kind="regenerate", messages=(message.id,))
            return [*supersede(state), *after, started(turn, trigger, facts)]
    return Refusal("conflict", "There is no message of yours to answer again.")


def _restore(state: State, command: RestoreMessages, facts: Facts) -> Decision:
    if state.turn is not None:
        return _RUNNING
    if message_count(state):
        return Refusal("conflict", "Only an empty conversation can be filled from elsewhere.")
    return [
        MessageAdded(
            message=facts.new_id(),
            role=message.role,
            blocks=message.blocks,
            agent=message.agent,
            model=message.model,
            hidden=message.hidden,
            event_kind=message.event_kind,
            data=message.data,
        )
        for message in command.messages
    ]
