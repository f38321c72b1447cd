"""The queue as commands change it: taking back, editing, moving, holding; and how much may wait in it.

Called by decide, and by a stop that holds the queue. How an item takes its place is `core/queue.py`, what runs next
`core/next.py`.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from palaver.core.decide.decision import Already, Decision, Refusal, content_bytes, unfit
from palaver.core.decide.facts import Facts
from palaver.core.next import next_items
from palaver.core.state import find_message
from palaver.schema.commands import (
    EditMessage,
    EditQueued,
    RemoveMessage,
    RemoveQueued,
    RetryFrom,
    Rewriting,
    TruncateMessages,
)
from palaver.schema.content import as_content
from palaver.schema.events import ExchangeReturned, KnownEvent, QueueAdded, QueueEdited, QueueRemoved
from palaver.schema.view import QueueItem, State

QUEUE_ITEMS = 50
"""More than anyone reads: a client that sends on and on is told to wait."""
QUEUE_BYTES = 1 << 20
"""The queue travels in every snapshot."""
COMMAND_BYTES = 200 << 10
"""Of one command that waits: it is kept in its event, which may hold 256 KiB and has an envelope."""
NOT_QUEUED = Refusal("not_found", "That message is not in the queue: it was delivered or removed before.")


def starts(state: State) -> bool:
    """Nothing runs and nothing waits to: what comes now begins at once."""
    return state.turn is None and not next_items(state)


def withdrawn(item: QueueItem) -> list[KnownEvent]:
    """A queued message is taken back; an agent that sent it is told."""
    removed = QueueRemoved(item=item.id, reason="cancelled", exchange=item.exchange)
    if item.exchange is None or item.trigger != "message":
        return [removed]
    why = "The message was taken out of the queue before it was read."
    return [removed, ExchangeReturned(exchange=item.exchange, status="cancelled", response=why)]


def remove_queued(state: State, command: RemoveQueued) -> Decision:
    item = _find_queued(state, command.item)
    return NOT_QUEUED if item is None else withdrawn(item)


def let_wait(state: State, command: Rewriting, facts: Facts) -> Decision:
    """What changes the history waits until nothing runs. Only what cannot make sense then either is refused now."""
    if refusal := _senseless(state, command):
        return refusal
    body = msgspec.json.encode(replace(command, client_request_id=None, when_busy="refuse", priority=False))
    size_bytes = len(body)
    if size_bytes > COMMAND_BYTES:
        too_long = f"This is too long to wait ({size_bytes:,} bytes). Stop the agent first, or ask again when it rests."
        return Refusal("too_large", too_long, {"limit_bytes": COMMAND_BYTES, "size_bytes": size_bytes})
    if refusal := overfull(state, size_bytes):
        return refusal
    return [QueueAdded(item=facts.new_id(), content=(), priority=command.priority, command=msgspec.json.decode(body))]


def _senseless(state: State, command: Rewriting) -> Refusal | None:
    if isinstance(command, EditMessage | RetryFrom) and (refusal := unfit(as_content(command.content))):
        return refusal
    match command:
        case EditMessage() | RemoveMessage():
            # Ids are not foretold: one that is neither said nor queued never will be. Earlier ones may not be at hand.
            known = state.offset or find_message(state, command.message) or _find_queued(state, command.message)
            return None if known else Refusal("not_found", "No such message in this conversation.")
        case TruncateMessages(from_index=index) | RetryFrom(index=index) if index < 0:
            return Refusal("invalid", "An index is 0 or more.")
        case _:
            return None


def overfull(state: State, more_bytes: int) -> Refusal | None:
    """Why no more may wait, if no more may."""
    full = len(state.queue) >= QUEUE_ITEMS or _queue_bytes(state) + more_bytes > QUEUE_BYTES
    return _queue_full(state) if full else None


def _queue_full(state: State) -> Refusal:
    return Refusal(
        "busy",
        f"The queue is full ({len(state.queue)} messages). Wait for the agent, or remove a queued message.",
        {"queue_size": len(state.queue)},
    )


def _queue_bytes(state: State) -> int:
    return sum(content_bytes(item.content) + _command_bytes(item.command) for item in state.queue)


def _command_bytes(command: dict[str, Any] | None) -> int:
    return 0 if command is None else len(msgspec.json.encode(command))


def _find_queued(state: State, item: str) -> QueueItem | None:
    return next((known for known in state.queue if known.id == item), None)


def all_held(state: State, held: bool) -> list[KnownEvent]:
    """Everything that waits is held back, or let go in its order."""
    return [QueueEdited(item=item.id, version=item.version + 1, held=held) for item in state.queue if item.held != held]


def edit_queued(state: State, command: EditQueued) -> Decision:
    if command.item is None:
        return _edit_all(state, command)
    item = _find_queued(state, command.item)
    if item is None:
        return NOT_QUEUED
    before = None if command.before == item.id else command.before
    if before and _find_queued(state, before) is None:
        return Refusal("not_found", "The message to move it before is not in the queue.")
    content = None if command.content is None else as_content(command.content)
    if content is not None:
        if item.command is not None:
            return Refusal("invalid", "That is no message. Remove it, and send another instead.")
        if refusal := unfit(content):
            return refusal
        if _queue_bytes(state) - content_bytes(item.content) + content_bytes(content) > QUEUE_BYTES:
            return _queue_full(state)
    if all(change is None for change in (content, command.held, command.priority, before)):
        return Already("unchanged", id=item.id)
    return [
        QueueEdited(
            item=item.id,
            version=item.version + 1,
            content=content,
            held=command.held,
            priority=command.priority,
            before=before,
        )
    ]


def _edit_all(state: State, command: EditQueued) -> Decision:
    if any(change is not None for change in (command.content, command.priority, command.before)):
        return Refusal("invalid", "Only one message at a time can be changed or moved: name its `item`.")
    return ([] if command.held is None else all_held(state, command.held)) or Already("unchanged")
