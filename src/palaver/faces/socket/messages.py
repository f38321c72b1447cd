"""What people and other agents say as frames, at once or waiting in the queue. Pure.

Called by `project`.
"""

from palaver.core import queue
from palaver.faces.socket.answers import post, restore
from palaver.faces.socket.frame_types import Json, Said
from palaver.faces.socket.memory import Memory
from palaver.schema.base import Origin
from palaver.schema.content import ImagePart, plain_text
from palaver.schema.events import MessageAdded, QueueAdded, QueueEdited, QueueRemoved
from palaver.schema.view import ImageBlock, QueueItem, TextBlock


def message(event: MessageAdded, memory: Memory) -> Said:
    if event.hidden:
        return
    if event.role == "user":
        yield "user_message", _user_message(event)
    elif event.role == "assistant":
        yield from restore(event, memory) if event.turn is None or event.turn != memory.turn else post(event, memory)


def _user_message(event: MessageAdded) -> Json:
    text = plain_text(event.content) or "\n".join(
        block.text for block in event.blocks or () if isinstance(block, TextBlock)
    )
    fields: Json = {"messageId": event.message, "text": text, **_from(event.origin)}
    if images := _images(event):
        fields["images"] = images
    if event.client_request_id and not _is_agents(event.origin):
        fields["clientMessageId"] = event.client_request_id
    return fields


def _from(origin: Origin | None) -> Json:
    if origin is None or not _is_agents(origin):
        return {}
    told = {"fromAgentId": origin.agent, "fromSessionId": origin.conversation}
    return {name: value for name, value in told.items() if value}


def _is_agents(origin: Origin | None) -> bool:
    return origin is not None and origin.agent is not None


def _images(event: MessageAdded) -> list[str]:
    return [part.image_url.url for part in event.content if isinstance(part, ImagePart)] or [
        block.url for block in event.blocks or () if isinstance(block, ImageBlock)
    ]


def in_queue(event: QueueAdded | QueueEdited | QueueRemoved, memory: Memory) -> Said:
    match event:
        case QueueAdded(command=None):
            memory.waiting = queue.insert(memory.waiting, event)
        case QueueAdded():
            return ()  # No message: a command of another face that waits for its turn.
        case QueueEdited():
            memory.waiting = queue.edit(memory.waiting, event)
        case QueueRemoved():
            was_there = memory.place_in_queue(event.item) is not None
            memory.waiting = queue.remove(memory.waiting, event.item)
            return (("message_dequeued", {"messageId": event.item, "reason": event.reason}),) if was_there else ()
    found = memory.place_in_queue(event.item)
    return (("message_queued", _queue_item(*found)),) if found else ()


def _queue_item(place: int, item: QueueItem) -> Json:
    by_agent = item.trigger == "callback" or _is_agents(item.origin)
    fields: Json = {
        "messageId": item.id,
        "text": plain_text(item.content),
        "position": place,
        "source": "agent" if by_agent else "user",
        **_from(item.origin),
    }
    if item.client_request_id and not by_agent:
        fields["clientMessageId"] = item.client_request_id
    return fields
