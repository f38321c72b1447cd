"""The order of the queue: how an added or edited item takes its place in it, and what an item says for itself.

Called by evolve, by decide for what need not wait, and by faces. Pure: what runs, and when, is `next.py`.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from palaver.schema.content import plain_text
from palaver.schema.events import QueueAdded, QueueEdited
from palaver.schema.view import QueueItem

Queue = tuple[QueueItem, ...]


def insert(queue: Queue, event: QueueAdded) -> Queue:
    return _place(queue, waiting(event), None)


def waiting(event: QueueAdded) -> QueueItem:
    return QueueItem(
        id=event.item,
        content=event.content,
        delivery=event.delivery,
        ts=event.ts,
        priority=event.priority,
        merge=event.merge,
        agent=event.agent,
        mode=event.mode,
        origin=event.origin,
        client_request_id=event.client_request_id,
        trigger=event.trigger,
        exchange=event.exchange,
        hops=event.hops,
        command=event.command,
    )


def edit(queue: Queue, event: QueueEdited) -> Queue:
    item = next((known for known in queue if known.id == event.item), None)
    if item is None:
        return queue
    changed = replace(
        item,
        version=event.version,
        content=item.content if event.content is None else event.content,
        held=item.held if event.held is None else event.held,
        priority=item.priority if event.priority is None else event.priority,
    )
    if event.before is None and changed.priority == item.priority:
        return tuple(changed if known.id == item.id else known for known in queue)
    return _place(tuple(known for known in queue if known.id != item.id), changed, event.before)


def remove(queue: Queue, item: str) -> Queue:
    return tuple(known for known in queue if known.id != item)


def _place(queue: Queue, item: QueueItem, before: str | None) -> Queue:
    """Priority items stand after those before them and before the others; `before` overrides that by hand."""
    at = len(queue)
    if before is None and item.priority:
        at = max((place + 1 for place, known in enumerate(queue) if known.priority), default=0)
    elif before:
        at = next((place for place, known in enumerate(queue) if known.id == before), at)
    return (*queue[:at], item, *queue[at:])


def words_of(item: QueueItem) -> str:
    """What waits, in words: a message's own, or what a command will do."""
    if item.command is None:
        return plain_text(item.content)
    does, said = _does(item.command), _text_of(item.command.get("content"))
    return f"{does}: {said}" if said else does


def _does(command: Mapping[str, Any]) -> str:
    """People count messages from 1."""
    match command:
        case {"type": "truncate_messages", "from_index": int(index)}:
            return f"Truncate from message {index + 1}"
        case {"type": "retry_from", "index": int(index)}:
            return f"Try again from message {index + 1}"
        case _:
            name = str(command.get("type"))
            return _DOES.get(name, name.replace("_", " ").capitalize())


def _text_of(content: Any) -> str:
    parts = content if isinstance(content, list) else [{"text": content}]
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


_DOES = {
    "edit_message": "Edit a message",
    "remove_message": "Remove a message",
    "regenerate": "Answer again",
    "restore_messages": "Restore messages",
    "fill": "Fill with messages from elsewhere",
}
