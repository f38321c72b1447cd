"""The queue as commands change it: taking back, editing, moving; and how much may wait in it.

Called by decide. How an item takes its place is `core/queue.py`, what runs next `core/next.py`.
"""

from palaver.core.decision import Already, Decision, Refusal, content_bytes, unfit
from palaver.core.next import next_items
from palaver.schema.commands import EditQueued, RemoveQueued
from palaver.schema.content import as_content
from palaver.schema.events import ExchangeReturned, KnownEvent, QueueEdited, QueueRemoved
from palaver.schema.view import QueueItem, State

QUEUE_ITEMS = 50
"""More than anyone reads: a client that sends on and on is told to wait."""
QUEUE_BYTES = 1 << 20
"""The queue travels in every snapshot."""
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
    item = _queued(state, command.item)
    return NOT_QUEUED if item is None else withdrawn(item)


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
    return sum(content_bytes(item.content) for item in state.queue)


def _queued(state: State, item: str) -> QueueItem | None:
    return next((known for known in state.queue if known.id == item), None)


def edit_queued(state: State, command: EditQueued) -> Decision:
    item = _queued(state, command.item)
    if item is None:
        return NOT_QUEUED
    before = None if command.before == item.id else command.before
    if before and _queued(state, before) is None:
        return Refusal("not_found", "The message to move it before is not in the queue.")
    content = None if command.content is None else as_content(command.content)
    if content is not None:
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
