"""Bringing a conversation back: its newest snapshot, the last messages, and the events since.

Called by the directory. The cost depends on what is new since the snapshot, not on the length of the history.
"""

import msgspec
from msgspec.structs import replace

from palaver.core.evolve import fold
from palaver.log.base import EventLog, Snapshot, StoredMessage
from palaver.schema.events import decode_event
from palaver.schema.view import Message, State

TAIL_MESSAGES = 100
"""Messages kept in memory of a resting conversation, and in a snapshot for a client: more than a screen, less than a wait."""

_state = msgspec.json.Decoder(State)
_message = msgspec.json.Decoder(Message)


async def load_state(log: EventLog, conversation: str, tail: int = TAIL_MESSAGES) -> tuple[State, int] | None:
    """The view at the head and the seq of the snapshot it stands on (0: none). None: no such conversation.

    A stream that does not begin as one (a project's) is none either.
    """
    snapshot = await log.load_snapshot(conversation, tail)
    state, stood_on = State(), 0
    if snapshot is not None:
        messages = tuple(_message.decode(stored.body) for stored in snapshot.messages)
        head = _state.decode(snapshot.head)
        state, stood_on = replace(head, messages=messages, offset=head.offset - len(messages)), snapshot.seq
    while segments := await log.read(conversation, state.seq, 1 << 20):
        for segment in segments:
            events = (decode_event(line) for line in segment.body.splitlines())
            state = fold(state, (event for event in events if event.seq > state.seq))
    return (state, stood_on) if state.conversation else None


async def older_messages(log: EventLog, conversation: str, before_seq: int, limit: int) -> list[Message]:
    return [_message.decode(stored.body) for stored in await log.messages_before(conversation, before_seq, limit)]


def snapshot_of(state: State, since: int, *, replace_all: bool = False) -> Snapshot:
    """The view as the log keeps it: a small head, and the messages that changed since the last snapshot."""
    head = replace(state, messages=(), offset=state.offset + len(state.messages))
    changed = [
        StoredMessage(message.seq, msgspec.json.encode(message))
        for message in state.messages
        if replace_all or message.updated_seq > since
    ]
    return Snapshot(state.seq, msgspec.json.encode(head), changed, replace_all)


def with_tail(state: State, tail: int) -> State:
    """The view with only its last messages: what is sent to a client, which pages the rest."""
    if len(state.messages) <= tail:
        return state
    dropped = len(state.messages) - tail
    return replace(state, messages=state.messages[dropped:], offset=state.offset + dropped)
