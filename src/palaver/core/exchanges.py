"""Exchanges between agents, in the pure core: what both sides record, and when an answer goes back.

Called by decide, next and settle (what to record) and by evolve (what to show). An exchange has the id of the call that
sent it. The side that sent it is `out`, the side that answers is `in`. The turn that answers it ends it in the same commit
in which it ends itself, so that an answer can never be lost between the two.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from palaver.core.state import find_call, messages_of_turn, tools_of_turn
from palaver.schema.base import Origin
from palaver.schema.events import (
    ExchangeReturned,
    ExchangeSent,
    KnownEvent,
    QueueAdded,
    ToolCalled,
    ToolFinished,
    TurnStarted,
)
from palaver.schema.view import Exchange, State, TextBlock, Trigger, Turn

MESSAGE_TOOL = "agents_message"
"""The call and the result of this tool carry the exchange that the call begins."""
HOPS = 16
"""Words between agents until a person has to speak: enough for a real discussion, soon enough to notice a circle."""
RESPONSE_CHARS = 48_000
"""The longest answer that goes back in one piece: it is part of an event, which may hold 256 KiB."""
KEEP = 200
"""Exchanges that stay in view. Those whose answer is still to come always do."""

ENDS = ("complete", "failed", "cancelled")
End = Literal["complete", "failed", "cancelled"]


def is_open(exchange: Exchange) -> bool:
    """Its answer is still to come. One that timed out has none to wait for."""
    return exchange.status in ("sent", "started", "queued")


def exchange_answered_by(turn: Turn | None) -> str | None:
    """The exchange that a turn answers. A callback's turn goes on from one; it answers none."""
    return _answers(turn.trigger) if turn is not None else None


def _answers(trigger: Trigger) -> str | None:
    return trigger.exchange if trigger.kind != "callback" else None


def find(state: State, exchange: str, direction: Literal["out", "in"]) -> Exchange | None:
    return next((known for known in state.exchanges if (known.id, known.direction) == (exchange, direction)), None)


def waiting_to_go_on(state: State) -> Exchange | None:
    """Its turn was cut by a restart while it waited for a person: whatever goes on from there answers it."""
    if state.turn is not None:
        return None
    return next((known for known in state.exchanges if known.direction == "in" and known.status == "started"), None)


# -- what is recorded


def stamp(state: State, events: Sequence[KnownEvent]) -> list[KnownEvent]:
    """Every event of a turn that answers an exchange says so; one that names an exchange of its own keeps it."""
    # A turn's first words stand before its start, so that is looked for first.
    turns = [(state.turn.id, exchange_answered_by(state.turn))] if state.turn else []
    turns += [(event.turn or "", _answers(event.trigger)) for event in events if isinstance(event, TurnStarted)]
    answers = {turn: exchange for turn, exchange in turns if exchange is not None}
    marked: list[KnownEvent] = []
    for event in events:
        own = _exchange_of(state, event) or event.exchange or answers.get(event.turn or "")
        marked.append(event if own == event.exchange else replace(event, exchange=own))
    return marked


def _exchange_of(state: State, event: KnownEvent) -> str | None:
    """The exchange that a call begins has its id: on the call, and on the result that it gets, whatever ended it."""
    match event:
        case ToolCalled(name=name):
            return event.call if name == MESSAGE_TOOL else None
        case ToolFinished():
            tool = find_call(state, event.call)
            return event.call if tool is not None and tool.name == MESSAGE_TOOL else None
        case _:
            return None


def continue_trigger(state: State, trigger: Trigger) -> Trigger:
    """A turn that goes on from where a restart cut one answers what that one answered."""
    waiting = waiting_to_go_on(state)
    return trigger if waiting is None else replace(trigger, exchange=waiting.id, hops=waiting.hops)


def return_answer(state: State, status: End, text: str | None, now: int) -> list[KnownEvent]:
    """The active turn ends: if it answers an exchange, this is what goes back."""
    turn = state.turn
    exchange = exchange_answered_by(turn)
    if turn is None or exchange is None:
        return []
    return [
        ExchangeReturned(
            turn=turn.id,
            exchange=exchange,
            status=status,
            response=_truncate(text if text is not None else answer_of(state, turn.id)),
            duration_ms=max(0, now - turn.started_at),
            tool_call_count=sum(1 for _ in tools_of_turn(state, turn.id)),
        )
    ]


def call_off(state: State, why: str) -> list[KnownEvent]:
    """What waited to be gone on with never will be."""
    waiting = waiting_to_go_on(state)
    return [] if waiting is None else [ExchangeReturned(exchange=waiting.id, status="cancelled", response=why)]


def give_up(state: State, turn: Turn) -> list[KnownEvent]:
    """A turn ends while one of its calls waits for another agent: that one goes on, but nobody here listens any more."""
    return [
        ExchangeReturned(turn=turn.id, exchange=known.id, status="cancelled")
        for known in state.exchanges
        if known.direction == "out" and is_open(known) and not known.callback
    ]


def abandon(state: State) -> list[KnownEvent]:
    """A copy of a conversation expects no answers: they go to the conversation that asked."""
    return [
        ExchangeReturned(exchange=known.id, status="cancelled")
        for known in state.exchanges
        if known.direction == "out" and is_open(known)
    ]


def answer_of(state: State, turn: str) -> str:
    """The last thing that an agent said in a turn."""
    for message in reversed(messages_of_turn(state, turn)):
        if message.role != "assistant" or message.status == "superseded":
            continue
        if said := "\n\n".join(block.text for block in message.blocks if isinstance(block, TextBlock) and block.text):
            return said
    return ""


def _truncate(text: str) -> str:
    if len(text) <= RESPONSE_CHARS:
        return text
    return f"{text[:RESPONSE_CHARS]}\n[… {len(text) - RESPONSE_CHARS:,} more characters in its own conversation]"


# -- what is shown

Exchanges = tuple[Exchange, ...]


def record_sent(exchanges: Exchanges, event: ExchangeSent) -> Exchanges:
    started = Exchange(
        id=event.exchange,
        agent=event.agent,
        conversation=event.to,
        status="sent",
        mode=event.mode,
        call=event.call,
        callback=event.mode == "async",
        hops=event.hops,
        started_at=event.ts,
    )
    return _add(exchanges, started)


def record_queued(exchanges: Exchanges, event: QueueAdded) -> Exchanges:
    if event.exchange is None or event.trigger != "message":
        return exchanges
    return _add(exchanges, _came_in(event.exchange, event.origin, "queued", event.hops, event.ts))


def record_start(exchanges: Exchanges, event: TurnStarted) -> Exchanges:
    exchange = event.trigger.exchange
    if exchange is None or event.trigger.kind == "callback":
        return exchanges
    if any(known.id == exchange and known.direction == "in" for known in exchanges):
        return tuple(
            replace(known, status="started") if (known.id, known.direction) == (exchange, "in") else known
            for known in exchanges
        )
    return _add(exchanges, _came_in(exchange, event.origin, "started", event.trigger.hops, event.ts))


def record_return(exchanges: Exchanges, event: ExchangeReturned) -> Exchanges:
    """The first end is the end."""
    return tuple(_with_answer(known, event) if known.id == event.exchange else known for known in exchanges)


def _with_answer(known: Exchange, event: ExchangeReturned) -> Exchange:
    if known.status in ENDS:
        return known
    return replace(
        known,
        status=event.status,
        callback=known.callback or event.status == "queued",
        finished_at=event.ts if event.status in ENDS else known.finished_at,
        tool_call_count=known.tool_call_count if event.tool_call_count is None else event.tool_call_count,
    )


def _came_in(
    exchange: str, origin: Origin | None, status: Literal["queued", "started"], hops: int, ts: int
) -> Exchange:
    return Exchange(
        id=exchange,
        direction="in",
        agent=(origin.agent if origin else None) or "",
        conversation=origin.conversation if origin else None,
        status=status,
        hops=hops,
        started_at=ts,
    )


def _add(exchanges: Exchanges, new: Exchange) -> Exchanges:
    surplus = len(exchanges) + 1 - KEEP
    kept = [known for place, known in enumerate(exchanges) if place >= surplus or is_open(known)]
    return (*kept, new)
