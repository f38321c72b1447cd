"""Words that come in: a person's, a task, another agent's answer. At rest they begin a turn, else they are queued.

Called by decide. What waits already, and how much may, is `queue.py`.
"""

from palaver.core import exchanges
from palaver.core.decide.decision import Already, Decision, Refusal, content_bytes, unfit
from palaver.core.decide.facts import Facts
from palaver.core.decide.queue import overfull, starts
from palaver.core.next import message_from, start_turn
from palaver.core.queue import waiting
from palaver.core.settle import supersede
from palaver.schema.commands import Deliver, PostAnswer, ReturnExchange, SendMessage
from palaver.schema.content import Content, as_content, plain_text
from palaver.schema.events import (
    ConversationUpdated,
    ExchangeReturned,
    KnownEvent,
    MessageAdded,
    QueueAdded,
    QueueEdited,
)
from palaver.schema.view import State, Trigger

TITLE_CHARS = 60
"""A row of the list."""


def send(state: State, command: SendMessage, facts: Facts) -> Decision:
    added = QueueAdded(
        item=facts.new_id(),
        content=as_content(command.content),
        delivery=command.delivery,
        priority=command.priority,
        merge=command.merge,
        agent=command.agent,
        mode=command.mode,
    )
    if refusal := _unfit(state, added, held=command.held):
        return refusal
    if not command.held:
        return _take(state, added, facts)
    # In the same step: between the two it could have left.
    return [*_title(state, added.content), added, QueueEdited(item=added.item, version=2, held=True)]


def deliver(state: State, command: Deliver, facts: Facts) -> Decision:
    added = QueueAdded(
        item=facts.new_id(),
        content=as_content(command.content),
        agent=command.agent,
        mode=command.mode,
        trigger=command.trigger,
        exchange=command.exchange,
        hops=command.hops,
    )
    return _unfit(state, added) or _take(state, added, facts, command.parent, command.turn)


def return_exchange(state: State, command: ReturnExchange, facts: Facts) -> Decision:
    known = exchanges.find(state, command.exchange, "out")
    if known is None:
        return Refusal("not_found", "No such exchange in this conversation.")
    if known.status in exchanges.ENDS:
        return Already("Its answer came before.", id=known.id)
    returned = ExchangeReturned(
        exchange=known.id,
        status=command.status,
        response=command.response,
        duration_ms=command.duration_ms,
        tool_call_count=command.tool_call_count,
        run=command.run,
    )
    if not known.callback:
        return [returned]
    called_back = QueueAdded(
        item=facts.new_id(),
        content=as_content(_callback_words(known.agent, command)),
        trigger="callback",
        exchange=known.id,
        hops=known.hops + 1,
    )
    # Never refused for a full queue: it is an answer, and the only one.
    return [returned, *_take(state, called_back, facts)]


def _callback_words(agent: str, command: ReturnExchange) -> str:
    match command.status:
        case "complete":
            return f"{agent} answered:\n\n{command.response or '(without a word)'}"
        case "failed":
            return f"{agent} could not answer: {command.response or 'its turn failed.'}"
        case "cancelled":
            said = f" It had said:\n\n{command.response}" if command.response else ""
            return f"{agent} was stopped before it had answered.{said}"


def _unfit(state: State, added: QueueAdded, *, held: bool = False) -> Refusal | None:
    if refusal := unfit(added.content):
        return refusal
    return None if starts(state) and not held else overfull(state, content_bytes(added.content))


def _take(
    state: State, added: QueueAdded, facts: Facts, parent: str | None = None, turn: str | None = None
) -> list[KnownEvent]:
    titled = _title(state, added.content)
    if not starts(state):
        return [*titled, added]
    # At rest: the turn begins in the same step, so that a stop right after this stops it.
    turn, item = turn or facts.new_id(), waiting(added)
    trigger = Trigger(kind=added.trigger, messages=(item.id,), exchange=added.exchange, hops=added.hops)
    return [
        *supersede(state),
        *titled,
        message_from(item, turn),
        start_turn(turn, trigger, facts, added.mode, parent),
    ]


def _title(state: State, content: Content) -> list[KnownEvent]:
    """The first words become the title, once; a person's own title is never overwritten."""
    if state.title_source != "none":
        return []
    first_line = next((line.strip() for line in plain_text(content).splitlines() if line.strip()), "")
    if not first_line:
        return []
    title = first_line if len(first_line) <= TITLE_CHARS else first_line[: TITLE_CHARS - 1].rstrip() + "…"
    return [ConversationUpdated(title=title, title_source="auto")]


def post(state: State, command: PostAnswer, facts: Facts) -> Decision:
    content = as_content(command.content)
    if refusal := unfit(content):
        return refusal
    turn = state.turn.id if state.turn else None
    return [
        MessageAdded(turn=turn, message=facts.new_id(), role="assistant", content=content, agent=command.agent),
    ]
