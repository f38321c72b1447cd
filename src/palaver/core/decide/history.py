"""Rewriting history: what editing, removing, truncating, retrying and restoring messages comes to.

Called by decide. At rest only: a running agent must not have its past changed. The owner loads the whole history before
it asks for one of these; with only the tail at hand, what cannot be found is refused, never guessed.
"""

from msgspec.structs import replace

from palaver.core.decide.authority import rewrites_others
from palaver.core.decide.decision import Already, Decision, Refusal, unfit
from palaver.core.decide.facts import Facts
from palaver.core.decide.restore import imported, restored, said_again
from palaver.core.next import start_turn
from palaver.core.openai_index import index_of, place_at
from palaver.core.settle import supersede
from palaver.core.state import OPEN_TOOL, find_message, is_empty, message_count
from palaver.schema.commands import (
    EditMessage,
    Fill,
    Regenerate,
    RemoveMessage,
    RestoreMessages,
    RetryFrom,
    Rewriting,
    TruncateMessages,
)
from palaver.schema.content import as_content
from palaver.schema.events import (
    ConversationUpdated,
    KnownEvent,
    MessageAdded,
    MessageEdited,
    MessageRemoved,
    MessageTruncated,
)
from palaver.schema.view import Message, State, ToolBlock, Trigger

NeedsAll = EditMessage | RemoveMessage | TruncateMessages | RetryFrom | Regenerate
"""What needs the whole history at hand; the others want an empty one."""


NOT_EMPTY = Refusal("conflict", "Only an empty conversation can be filled from elsewhere.")


def rewrite(state: State, command: Rewriting, facts: Facts) -> Decision:
    return _others_words(state, command, facts) or _rewrite(state, command, facts)


def _others_words(state: State, command: Rewriting, facts: Facts) -> Refusal | None:
    """Whether an agent's token would change what is not its own. What cannot be found is refused by the command itself."""
    start: int | None = None  # Only an empty conversation is filled: nothing is there to be changed.
    match command:
        case EditMessage() | RemoveMessage():
            found = find_message(state, command.message)
            start = found[0] if found else None
        case TruncateMessages():
            start = _start(state, command.from_index, command.flat)
        case RetryFrom():
            start = _start(state, command.index, command.flat)
        case Regenerate():
            start = _last_asked(state)
        case _:
            pass
    if start is None:
        return None
    alone = isinstance(command, EditMessage | RemoveMessage) and not command.regenerate
    # Not loaded is not known to be its own.
    whole = (*(UNKNOWN,) * state.offset, *state.messages)
    return rewrites_others(whole, start, facts.origin, start + 1 if alone else None)


UNKNOWN = Message(id="", role="user", seq=0, updated_seq=0, ts=0)
"""A message that is not at hand."""


def _start(state: State, index: int, counted_flat: bool) -> int | None:
    place = _place(state, "", index, counted_flat)
    return None if isinstance(place, Refusal) else place


def _last_asked(state: State) -> int | None:
    places = range(len(state.messages) - 1, -1, -1)
    asked = (place for place in places if state.messages[place].role == "user" and not state.messages[place].hidden)
    return next((state.offset + place for place in asked), None)


def _rewrite(state: State, command: Rewriting, facts: Facts) -> Decision:
    match command:
        case EditMessage():
            return _edit(state, command, facts)
        case RemoveMessage():
            return _remove(state, command, facts)
        case TruncateMessages():
            return _truncate(state, command)
        case RetryFrom():
            return _retry_from(state, command, facts)
        case Regenerate():
            return _regenerate(state, facts)
        case RestoreMessages():
            return _restore(state, command, facts)
        case Fill():
            return _fill(state, command, facts)


def _not_found(state: State) -> Refusal:
    if state.offset:
        return Refusal("conflict", "That message is not loaded. Try again in a moment.", {"offset": state.offset})
    return Refusal("not_found", "No such message in this conversation.")


def _waits_in(state: State, message: Message) -> list[KnownEvent]:
    """A message that goes takes its calls along; if one of them waits for a person, nothing is left to decide."""
    waits = any(isinstance(block, ToolBlock) and block.status in OPEN_TOOL for block in message.blocks)
    return supersede(state) if waits else []


def _edit(state: State, command: EditMessage, facts: Facts) -> Decision:
    found = find_message(state, command.message)
    if found is None:
        return _not_found(state)
    index, message = found
    content = as_content(command.content)
    if refusal := unfit(content):
        return refusal
    edited = MessageEdited(message=message.id, content=content)
    if not command.regenerate:
        return [*_waits_in(state, message), edited]
    if message.role != "user":
        return Refusal("invalid", "Only a message of yours can be answered again.")
    trigger = Trigger(kind="regenerate", messages=(message.id,))
    return [*supersede(state), edited, *cut(state, index + 1), start_turn(facts.new_id(), trigger, facts)]


def _remove(state: State, command: RemoveMessage, facts: Facts) -> Decision:
    found = find_message(state, command.message)
    if found is None:
        return _not_found(state)
    index, message = found
    removed = MessageRemoved(message=message.id, index=index)
    if not command.regenerate:
        return [*_waits_in(state, message), removed]
    left = replace(state, messages=tuple(known for known in state.messages if known is not message))
    again = _regenerate(left, facts)
    return [removed, *again] if isinstance(again, list) else again


def _place(state: State, name: str, index: int, counted_flat: bool) -> int | Refusal:
    place = place_at(index, state) if counted_flat else index
    if place is None or not 0 <= place <= message_count(state):
        last = index_of(len(state.messages), state) if counted_flat else message_count(state)
        return Refusal("invalid", f"`{name}` lies between 0 and {last}.")
    return place


def _truncate(state: State, command: TruncateMessages) -> Decision:
    place = _place(state, "from_index", command.from_index, command.flat)
    if isinstance(place, Refusal):
        return place
    if place == message_count(state):
        return Already("There was nothing from that index on.")
    return [*supersede(state), *cut(state, place)]


def _retry_from(state: State, command: RetryFrom, facts: Facts) -> Decision:
    place = _place(state, "index", command.index, command.flat)
    if isinstance(place, Refusal):
        return place
    content = as_content(command.content)
    if refusal := unfit(content):
        return refusal
    message, turn = facts.new_id(), facts.new_id()
    return [
        *supersede(state),
        *cut(state, place),
        MessageAdded(turn=turn, message=message, content=content),
        start_turn(turn, Trigger(messages=(message,)), facts),
    ]


def _regenerate(state: State, facts: Facts) -> Decision:
    place = _last_asked(state)
    if place is not None:
        trigger = Trigger(kind="regenerate", messages=(state.messages[place - state.offset].id,))
        again = start_turn(facts.new_id(), trigger, facts, state.last_turn.mode if state.last_turn else None)
        return [*supersede(state), *cut(state, place + 1), again]
    if state.offset:
        return _not_found(state)
    return Refusal("conflict", "There is no message of yours to answer again.")


def cut(state: State, index: int) -> list[KnownEvent]:
    if index >= message_count(state):
        return []
    place = index - state.offset
    return [MessageTruncated(index=index, first_seq=state.messages[place].seq if place >= 0 else None)]


def _restore(state: State, command: RestoreMessages, facts: Facts) -> Decision:
    if not is_empty(state):
        return NOT_EMPTY
    events = restored(imported(command.messages, facts.origin), facts.new_id)
    return [event for event, _ in events] if events else Already("There was nothing to restore.")


def _fill(state: State, command: Fill, facts: Facts) -> Decision:
    if not is_empty(state):
        return NOT_EMPTY
    say = restored if command.new_ids else said_again
    messages = command.messages if command.is_copy else imported(command.messages, facts.origin)
    said = [replace(event, ts=ts) for event, ts in say(messages, facts.new_id)]
    framed = ConversationUpdated(
        agent=command.agent,
        project=command.project,
        # What was chosen here counts more than what was chosen there.
        params={name: value for name, value in command.params.items() if name not in state.params} or None,
        parent=command.parent,
    )
    first = [] if framed == ConversationUpdated() else [framed]
    if not said and not first:
        return Refusal("conflict", "There was nothing to restore.")
    titled = command.title if state.title_source == "none" else ""
    named = ConversationUpdated(title=titled, title_source="auto") if titled else ConversationUpdated()
    # Last and now: what is brought keeps the times at which it was said, the conversation is as new as it is.
    return [*first, *said, named]
