"""Bringing a conversation back: its newest snapshot, the last messages, and the events since.

Called by the directory. The cost depends on what is new since the snapshot, not on the length of the history.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from palaver.core.fold.evolve import fold
from palaver.errors import LogCorrupt
from palaver.journal import Journal
from palaver.log.base import EventLog, Snapshot, StoredMessage
from palaver.schema.events import decode_event
from palaver.schema.view import Message, State

logger = Journal(__name__)

TAIL_MESSAGES = 100
"""Messages kept in memory of a resting conversation, and in a snapshot for a client: more than a screen, less than a wait."""

_state = msgspec.json.Decoder(State)
_message = msgspec.json.Decoder(Message)


async def load_state(log: EventLog, conversation: str, tail: int = TAIL_MESSAGES) -> tuple[State, int] | None:
    """The view at the head and the seq of the snapshot it stands on (0: none). None: no such conversation.

    A stream that does not begin as one (a project's) is none either. Raises LogCorrupt.
    """
    snapshot = await log.load_snapshot(conversation, tail)
    try:
        state = _restore(snapshot) if snapshot is not None else State()
    except msgspec.DecodeError:
        # Only an excerpt of the events, which are read from the beginning instead.
        logger.warning("a snapshot is damaged", conversation=conversation)
        state = State()
    stood_on = state.seq
    while segments := await log.read(conversation, state.seq, 1 << 20):
        with _damage_told(conversation):
            for segment in segments:
                events = (decode_event(line) for line in segment.body.splitlines())
                state = fold(state, (event for event in events if event.seq > state.seq))
    return (state, stood_on) if state.conversation else None


async def older_messages(log: EventLog, conversation: str, before_seq: int, limit: int) -> list[Message]:
    """Raises LogCorrupt."""
    stored = await log.messages_before(conversation, before_seq, limit)
    with _damage_told(conversation):
        return [_message.decode(one.body) for one in stored]


def _restore(snapshot: Snapshot) -> State:
    messages = tuple(_message.decode(stored.body) for stored in snapshot.messages)
    head = _state.decode(snapshot.head)
    return replace(head, messages=messages, offset=head.offset - len(messages))


@contextmanager
def _damage_told(conversation: str) -> Iterator[None]:
    try:
        yield
    except msgspec.DecodeError as problem:
        raise LogCorrupt(
            "What is stored of this conversation is damaged. Restore it from a backup, or save what is left with "
            "`palaver salvage`; `palaver verify` says what is hit.",
            conversation=conversation,
        ) from problem


def snapshot_of(state: State, since: int, *, replace_all: bool = False) -> Snapshot:
    """The view as the log keeps it: a small head, and the messages that changed since the last snapshot."""
    head = replace(state, messages=(), offset=state.offset + len(state.messages))
    changed = [message_to_store(message) for message in state.messages if replace_all or message.updated_seq > since]
    return Snapshot(state.seq, msgspec.json.encode(head), changed, replace_all)


def message_to_store(message: Message) -> StoredMessage:
    return StoredMessage(message.seq, msgspec.json.encode(message))


def with_tail(state: State, tail: int) -> State:
    """The view with only its last messages: what is sent to a client, which pages the rest."""
    if len(state.messages) <= tail:
        return state
    dropped = len(state.messages) - tail
    return replace(state, messages=state.messages[dropped:], offset=state.offset + dropped)
