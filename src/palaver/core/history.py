"""Rewriting history: what editing, removing, truncating, retrying and restoring messages comes to.

Called by decide. At rest only: a running agent must not have its past changed. The owner loads the whole history before
it asks for one of these; with only the tail at hand, what cannot be found is refused, never guessed.
"""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from palaver.core.decision import Already, Decision, Refusal, unfit
from palaver.core.facts import Facts
from palaver.core.next import started
from palaver.core.settle import interrupted_result, supersede
from palaver.core.state import OPEN_TOOL, find_message, message_count
from palaver.schema.commands import (
    EditMessage,
    Regenerate,
    RemoveMessage,
    RestoreMessages,
    RetryFrom,
    TruncateMessages,
)
from palaver.schema.content import as_content
from palaver.schema.events import (
    AnswerFinished,
    KnowledgeRecalled,
    KnownEvent,
    MessageAdded,
    MessageEdited,
    MessageRemoved,
    MessageTruncated,
)
from palaver.schema.view import Block, Message, State, TextBlock, ThinkingBlock, ToolBlock, Trigger

Rewriting = EditMessage | RemoveMessage | TruncateMessages | RetryFrom | Regenerate | RestoreMessages


def rewrite(state: State, command: Rewriting, facts: Facts) -> Decision:
    match command:
        case EditMessage():
            return _edit(state, command, facts)
        case RemoveMessage():
            found = find_message(state, command.message)
            if found is None:
                return _not_found(state)
            return [*_waits_in(state, found[1]), MessageRemoved(message=command.message, index=found[0])]
        case TruncateMessages():
            return _truncate(state, command)
        case RetryFrom():
            return _retry_from(state, command, facts)
        case Regenerate():
            return _regenerate(state, facts)
        case RestoreMessages():
            return _restore(state, command, facts)


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
    return [*supersede(state), edited, *cut(state, index + 1), started(facts.new_id(), trigger, facts)]


def _truncate(state: State, command: TruncateMessages) -> Decision:
    if not 0 <= command.from_index <= message_count(state):
        return Refusal("invalid", f"`from_index` lies between 0 and {message_count(state)}.")
    if command.from_index == message_count(state):
        return Already("There was nothing from that index on.")
    return [*supersede(state), *cut(state, command.from_index)]


def _retry_from(state: State, command: RetryFrom, facts: Facts) -> Decision:
    if not 0 <= command.index <= message_count(state):
        return Refusal("invalid", f"`index` lies between 0 and {message_count(state)}.")
    content = as_content(command.content)
    if refusal := unfit(content):
        return refusal
    message, turn = facts.new_id(), facts.new_id()
    return [
        *supersede(state),
        *cut(state, command.index),
        MessageAdded(turn=turn, message=message, content=content),
        started(turn, Trigger(messages=(message,)), facts),
    ]


def _regenerate(state: State, facts: Facts) -> Decision:
    for place in range(len(state.messages) - 1, -1, -1):
        message = state.messages[place]
        if message.role == "user" and not message.hidden:
            trigger = Trigger(kind="regenerate", messages=(message.id,))
            again = started(facts.new_id(), trigger, facts, state.last_turn.mode if state.last_turn else None)
            return [*supersede(state), *cut(state, state.offset + place + 1), again]
    if state.offset:
        return _not_found(state)
    return Refusal("conflict", "There is no message of yours to answer again.")


def cut(state: State, index: int) -> list[KnownEvent]:
    if index >= message_count(state):
        return []
    place = index - state.offset
    return [MessageTruncated(index=index, first_seq=state.messages[place].seq if place >= 0 else None)]


def _restore(state: State, command: RestoreMessages, facts: Facts) -> Decision:
    if message_count(state):
        return Refusal("conflict", "Only an empty conversation can be filled from elsewhere.")
    events = restored(command.messages, facts.new_id)
    return [event for event, _ in events] if events else Already("There was nothing to restore.")


def restored(messages: Iterable[Message], new_id: Callable[[], str]) -> list[tuple[KnownEvent, int]]:
    """The events that say messages from elsewhere again under new ids, each with the time it was first said."""
    events: list[tuple[KnownEvent, int]] = []
    for message in messages:
        # A cut attempt was taken back where it was made; here nothing would say so.
        if message.status != "superseded":
            events.extend((event, message.ts) for event in _restored(message, new_id))
    return events


def _restored(message: Message, new_id: Callable[[], str]) -> list[KnownEvent]:
    added = MessageAdded(
        message=new_id(),
        role=message.role,
        blocks=tuple(_at_rest(block, new_id) for block in message.blocks),
        agent=message.agent,
        model=message.model,
        hidden=message.hidden,
        event_kind=message.event_kind,
        data=message.data,
    )
    events: list[KnownEvent] = [added]
    if known := message.knowledge:
        events.append(
            KnowledgeRecalled(message=added.message, sources=known.sources, tokens=known.tokens, text=known.text)
        )
    under_way = message.status in ("streaming", "interrupted")
    if message.role == "assistant" and (message.finish_reason or message.usage or under_way):
        events.append(
            AnswerFinished(
                message=added.message,
                finish_reason=message.finish_reason or ("interrupted" if under_way else "stop"),
                usage=message.usage,
                interrupted=under_way,
            )
        )
    return events


def _at_rest(block: Block, new_id: Callable[[], str]) -> Block:
    """Nobody goes on with what was under way where the message comes from: text stays as it is, a call gets its result.

    Calls get ids of their own: those of providers repeat, and no two calls here may be taken for one.
    """
    match block:
        case TextBlock(status="streaming") | ThinkingBlock(status="streaming"):
            return replace(block, status="interrupted")
        case ToolBlock() if block.status in OPEN_TOOL:
            result = interrupted_result(block, None)
            return replace(
                block, call=new_id(), status="interrupted", output=result.output, error=result.error, request=None
            )
        case ToolBlock():
            return replace(block, call=new_id(), request=None)
        case _:
            return block
