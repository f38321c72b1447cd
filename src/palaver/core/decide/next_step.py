"""How a conversation at rest goes on with its queue: the next turn begins, or a command that waited is carried out.

Called by the owner after every change, again and again until a turn runs or nothing is ready. Pure.

A command is decided on now, against the conversation as it is: an index counts the messages of this moment. One that no longer
applies leaves the queue with the reason, said to people and not to the agent; what stands behind it goes on.
"""

import msgspec
from msgspec.structs import replace

from palaver.core.decide.decision import Already, Refusal
from palaver.core.decide.facts import Facts
from palaver.core.decide.history import rewrite
from palaver.core.next import next_items, next_turn
from palaver.core.queue import remove, words_of
from palaver.core.state import NOTICE
from palaver.schema.commands import Rewriting
from palaver.schema.content import as_content
from palaver.schema.events import KnownEvent, MessageAdded, QueueRemoved
from palaver.schema.view import QueueItem, State


def continue_queue(state: State, facts: Facts) -> list[KnownEvent]:
    items = next_items(state)
    if items and items[0].command is not None:
        return _carry_out(state, items[0], facts)
    return next_turn(state, facts)


def _carry_out(state: State, item: QueueItem, facts: Facts) -> list[KnownEvent]:
    try:
        command = msgspec.convert(item.command, Rewriting)
    except msgspec.ValidationError:
        return _left_out(item, "this release does not know it.", facts)
    decision = rewrite(replace(state, queue=remove(state.queue, item.id)), command, facts)
    match decision:
        case Refusal():
            return _left_out(item, decision.message, facts)
        case Already():
            return [QueueRemoved(item=item.id, reason="delivered")]
        case _:
            return [QueueRemoved(item=item.id, reason="delivered"), *(_by(item, event) for event in decision)]


def _by(item: QueueItem, event: KnownEvent) -> KnownEvent:
    """Known by the request id it was sent under; without the hash, for the command was answered when it was queued."""
    return replace(event, origin=event.origin or item.origin, client_request_id=item.client_request_id)


def _left_out(item: QueueItem, why: str, facts: Facts) -> list[KnownEvent]:
    said = f"“{words_of(item)}” was left out: {why}"
    return [
        QueueRemoved(item=item.id, reason="cancelled", why=why),
        MessageAdded(message=facts.new_id(), role="event", event_kind=NOTICE, content=as_content(said)),
    ]
