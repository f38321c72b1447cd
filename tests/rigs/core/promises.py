"""The promises of INVARIANTS.md that the pure core must keep, each read off the log and the state alone.

Independent of how the core works: nothing here calls decide, settle or next except to see that they add nothing.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from palaver.core import settle as settling
from palaver.core.exchanges import ENDS
from palaver.core.fold import evolve as folding
from palaver.log.redundancy import Redundancy
from palaver.schema.events import (
    AnswerFinished,
    ExchangeReturned,
    ExchangeSent,
    KnownEvent,
    LogCompacted,
    MessageAdded,
    MessageRemoved,
    PlanUpdated,
    ProcessFinished,
    ProcessStarted,
    QueueAdded,
    QueueEdited,
    QueueRemoved,
    RequestOpened,
    RequestResolved,
    TextFinished,
    ThinkingFinished,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from palaver.schema.view import State, TextBlock, ThinkingBlock, ToolBlock, ToolError
from tests.golden.compaction import compacted

Log = Sequence[KnownEvent]

ENDED_CALL = frozenset({"ok", "error", "denied", "interrupted"})
_snapshot = msgspec.json.Decoder(State)


def shown(state: State) -> bytes:
    return msgspec.json.encode(state, order="deterministic")


def read(body: bytes) -> State:
    return _snapshot.decode(body)


def paged(whole: State, offset: int) -> State:
    return replace(whole, messages=whole.messages[offset - whole.offset :], offset=offset)


def events_are_numbered_without_gap(log: Log) -> None:
    assert [event.seq for event in log] == list(range(1, len(log) + 1)), "I1: numbers have a gap or a repeat"
    assert len({event.id for event in log}) == len(log), "I1: an id repeats"


def every_fold_agrees(log: Log, state: State, snapshots: Sequence[tuple[int, bytes]]) -> None:
    whole = folding.fold(State(), log)
    assert shown(paged(whole, state.offset)) == shown(state), "I4: one by one differs from all at once"
    assert shown(folding.fold(State(), compacted(log))) == shown(whole), "I4: the compacted log differs"
    assert shown(folding.fold(State(), _as_the_log_compacts(log))) == shown(whole), "I4: the log's compaction differs"
    for seq, body in snapshots:
        start = read(body)
        reached = folding.fold(start, log[seq:])
        assert shown(reached) == shown(paged(whole, reached.offset)), f"I4: the snapshot at {seq} differs"


def _as_the_log_compacts(log: Log) -> list[KnownEvent]:
    redundancy = Redundancy()
    for event in log:
        redundancy.read(event.seq, event)
    return [
        LogCompacted(seq=event.seq, ts=event.ts, first=event.seq, chain="")
        if event.seq in redundancy.dropped
        else event
        for event in log
    ]


def messages_are_consumed_once(log: Log) -> None:
    """Each message of a person waits, was withdrawn, or entered the transcript in the one turn that consumed it."""
    asked_for = {event.item for event in log if isinstance(event, QueueAdded) and event.command is not None}
    queued = {event.item for event in log if isinstance(event, QueueAdded)}
    left = Counter(event.item for event in log if isinstance(event, QueueRemoved))
    delivered = {event.item for event in log if isinstance(event, QueueRemoved) and event.reason == "delivered"}
    added = Counter(event.message for event in log if isinstance(event, MessageAdded))
    assert all(count == 1 for count in left.values()), "I10: an item left the queue twice"
    assert left.keys() <= queued, "I10: an item left the queue that was never in it"
    assert all(count == 1 for count in added.values()), "I10: a message was added twice"
    assert added.keys() & queued == delivered - asked_for, "I10: delivered and added do not agree"
    consumed = Counter(
        message
        for event in log
        if isinstance(event, TurnStarted) and event.trigger.kind in ("message", "task")
        for message in event.trigger.messages
    )
    active: str | None = None
    for event in log:
        match event:
            case MessageAdded(role="user") if event.turn is not None and event.turn == active:
                consumed[event.message] += 1
            case TurnStarted():
                active = event.turn
            case TurnFinished() | TurnInterrupted():
                active = None
            case _:
                pass
    said = {event.message for event in log if isinstance(event, MessageAdded) and event.turn and event.role == "user"}
    assert all(consumed[message] == 1 for message in said), "I10: a message was not consumed by exactly one turn"
    assert consumed.keys() <= said, "I10: a turn consumed what was never said"


def accepted_messages_are_kept(log: Log, state: State, accepted: Sequence[str]) -> None:
    added = {event.message for event in log if isinstance(event, MessageAdded)}
    withdrawn = {event.item for event in log if isinstance(event, QueueRemoved) and event.reason == "cancelled"}
    waiting = {item.id for item in state.queue}
    for message in accepted:
        places = [message in added, message in withdrawn, message in waiting]
        assert sum(places) == 1, f"I8: an accepted message is in {sum(places)} places"


def queued_commands_end_once(log: Log, state: State, accepted: Sequence[str]) -> None:
    """Each waits, was taken back, or left the queue once: carried out at rest, or with the reason why not."""
    left = Counter(event.item for event in log if isinstance(event, QueueRemoved))
    waiting = {item.id for item in state.queue}
    for item in accepted:
        assert left[item] + (item in waiting) == 1, f"I8: a queued command is in {left[item]} places"
    asked_for = {event.item for event in log if isinstance(event, QueueAdded) and event.command is not None}
    active: str | None = None
    for event in log:
        match event:
            case TurnStarted():
                active = event.turn
            case TurnFinished() | TurnInterrupted():
                active = None
            case QueueRemoved(reason="delivered") if event.item in asked_for:
                assert active is None, "I12: history changed under a running agent"
            case _:
                pass


def nothing_stands_idle(state: State) -> None:
    ready = [item for item in state.queue if not item.held]
    assert state.turn is not None or state.deleted or not ready, "I11: idle with a message waiting"
    assert not (state.deleted and state.queue), "I10: deleted with a message neither consumed nor withdrawn"


def held_items_stay(log: Log) -> None:
    """What is held back is delivered only after it was let go; taking it back is always possible."""
    held: set[str] = set()
    for event in log:
        match event:
            case QueueEdited(held=True):
                held.add(event.item)
            case QueueEdited(held=False):
                held.discard(event.item)
            case QueueRemoved(reason="delivered"):
                assert event.item not in held, "I11: a held message was delivered"
            case _:
                pass


def turns_alternate(log: Log) -> None:
    active: str | None = None
    ended: set[str] = set()
    for event in log:
        assert event.turn not in ended, f"I20: {type(event).__name__} belongs to a turn that is over"
        match event:
            case TurnStarted():
                assert active is None, "I12: a turn began while another was active"
                active = event.turn
            case TurnFinished() | TurnInterrupted():
                assert event.turn == active, "I12: a turn ended that was not active"
                ended.add(event.turn or "")
                active = None
            case _:
                pass


def every_call_has_its_result(log: Log, state: State) -> None:
    """What a model would be shown: each call it made, with exactly one result."""
    waiting = {known.id for known in state.requests if known.status == "open"}
    for message in state.messages:
        for block in message.blocks:
            if message.role != "assistant" or message.status == "superseded" or not isinstance(block, ToolBlock):
                continue
            ended = block.status in ENDED_CALL
            allowed = state.turn is not None or (block.status == "waiting" and block.request in waiting)
            assert ended or allowed, f"I13: call {block.call} is {block.status} at rest"
            assert not ended or block.status == "ok" or block.error is not None, "I13: a failed call does not say why"
    started: set[str] = set()
    for event in log:
        match event:
            case ToolStarted():
                assert event.call not in started, "I14: a call was started twice"
                started.add(event.call)
            case ToolFinished(error=ToolError(code="tool_interrupted")):
                known = "unknown" if event.call in started else "none"
                assert event.effect == known, "I14: an interrupted call misstates its effect"
            case _:
                pass


def nothing_half_done_at_rest(state: State) -> None:
    if state.turn is not None:
        return
    for message in state.messages:
        assert message.status != "streaming", "settle: an answer still streams at rest"
        empty = message.role == "assistant" and message.status == "interrupted" and not message.blocks
        assert not empty, "settle: an empty answer stayed"
        for block in message.blocks:
            streams = isinstance(block, TextBlock | ThinkingBlock) and block.status == "streaming"
            assert not streams, "settle: a block still streams at rest"


def decisions_apply_once(log: Log, state: State) -> None:
    resolved = Counter(event.request for event in log if isinstance(event, RequestResolved))
    assert all(count == 1 for count in resolved.values()), "I16: a request was resolved twice"
    recorded = {event.request: event for event in log if isinstance(event, RequestResolved)}
    for known in state.requests:
        if known.resolution is not None:
            event = recorded[known.id]
            told = (known.status, known.resolution.verdict, known.resolution.text)
            assert told == (event.status, event.verdict, event.text), "I16: the decision told is not the one recorded"


def open_requests_are_shown(log: Log, state: State) -> None:
    opened = {event.request for event in log if isinstance(event, RequestOpened)}
    resolved = {event.request for event in log if isinstance(event, RequestResolved)}
    in_view = {known.id for known in state.requests if known.status == "open"}
    assert in_view == opened - resolved, "I17: open requests and those in view do not agree"


def processes_end_once(log: Log, state: State) -> None:
    ended = Counter(event.process for event in log if isinstance(event, ProcessFinished))
    assert all(count == 1 for count in ended.values()), "I19: a process ended twice"
    begun = {event.process: event.turn for event in log if isinstance(event, ProcessStarted)}
    stopped = {event.turn for event in log if isinstance(event, TurnInterrupted)}
    left = {process for process, turn in begun.items() if process not in ended}
    assert not (state.deleted and left), "I19: a process outlived its conversation"
    assert not any(begun[process] in stopped for process in left), "I19: a process outlived the stop of its turn"


def exchanges_end_once(log: Log, state: State) -> None:
    """What another agent asked is answered once; what was asked of another comes back in one turn at most."""
    ends = Counter(event.exchange for event in log if isinstance(event, ExchangeReturned) and event.status in ENDS)
    came_in = {known.id for known in state.exchanges if known.direction == "in"}
    assert all(ends[exchange] <= 1 for exchange in came_in), "exchange: answered twice"
    queued = {item.exchange for item in state.queue if item.trigger == "message"}
    answering = state.turn.trigger.exchange if state.turn else None
    asks = state.turn is None and any(known.status == "open" for known in state.requests)
    for known in state.exchanges:
        left = known.status in ("sent", "queued", "started")
        if known.direction == "in":
            at_work = known.id in queued or known.id == answering or asks
            assert not left or at_work, f"exchange: {known.id} is {known.status} and nobody will answer it"
        else:
            waited_for = left and not known.callback
            assert not waited_for or state.turn is not None, "exchange: somebody is said to wait for it at rest"
    called_back = Counter(
        event.trigger.exchange for event in log if isinstance(event, TurnStarted) and event.trigger.kind == "callback"
    )
    assert all(count == 1 for count in called_back.values()), "exchange: more than one turn for one answer"
    assert all(ends[exchange or ""] for exchange in called_back), "exchange: a turn for an answer that never came"


def turns_say_what_they_answer(log: Log) -> None:
    started = [event for event in log if isinstance(event, TurnStarted) and event.trigger.kind != "callback"]
    answers = {event.turn: event.trigger.exchange for event in started if event.trigger.exchange}
    for event in log:
        if event.turn in answers:
            own = isinstance(event, ExchangeSent | ExchangeReturned)
            assert own or event.exchange == answers[event.turn], f"exchange: {type(event).__name__} does not say it"


def settling_is_idempotent(state: State, now: int) -> None:
    closing = settling.settle(state, "user", now=now)
    assert bool(closing) == (state.turn is not None), "settle: wrong for an active turn"
    settled = folding.fold(state, closing)
    assert settling.settle(settled, "user", now=now) == [], "settle: a settled state is settled again"


_ORDER: dict[type[KnownEvent], int] = {
    TextFinished: 0,
    ThinkingFinished: 0,
    AnswerFinished: 0,
    MessageRemoved: 0,
    ToolFinished: 1,
    RequestResolved: 2,
    ProcessFinished: 3,
    PlanUpdated: 4,
    TurnInterrupted: 5,
}


def settling_keeps_its_order(state: State, now: int) -> None:
    closing = settling.settle(state, "user", now=now)
    # What other agents are told may stand anywhere before the end.
    places = [_ORDER[type(event)] for event in closing if not isinstance(event, ExchangeReturned)]
    assert places == sorted(places), "settle: text, results, requests, interruption: not in this order"
