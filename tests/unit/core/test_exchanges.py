"""Exchanges between agents in the pure core: the answer goes back with the end of its turn, whatever ends it, and once."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from palaver.conversation.index_rows import listing_of
from palaver.core import exchanges
from palaver.core.decide.decide import decide
from palaver.core.decide.facts import Facts
from palaver.core.exchanges import RESPONSE_CHARS, find, is_open, stamp
from palaver.core.next import boundary_items, next_items, next_turn
from palaver.core.settle import expire, fail, finish, settle
from palaver.core.state import find_request
from palaver.schema.base import Origin
from palaver.schema.commands import (
    DeleteConversation,
    Deliver,
    Interrupt,
    Order,
    RemoveQueued,
    ResolveRequest,
    ReturnExchange,
    SendMessage,
)
from palaver.schema.content import plain_text
from palaver.schema.errors import WireError
from palaver.schema.events import (
    ExchangeReturned,
    ExchangeSent,
    KnownEvent,
    MessageAdded,
    QueueAdded,
    QueueEdited,
    RequestOpened,
    ToolFinished,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from palaver.schema.view import Exchange, Plan, State, Trigger
from tests.unit.core.stage import NOW_MS, after, asked, at_rest, called, facts, finished, kinds, said, tool, wondered

BEA = Origin(face="agents", agent="bea", conversation="caller")
LETTER = Deliver(content="What do you think?", exchange="x", hops=3, client_request_id="exchange-x")


def ordered(state: State, order: Order, origin: Origin = BEA, *, resumable: bool = True) -> State:
    """The view after an order, as the owner records it: numbered and stamped."""
    decision = decide(state, order, told_by(origin, resumable))
    assert isinstance(decision, list), decision
    return recorded(state, decision)


def told_by(origin: Origin, resumable: bool) -> Facts:
    return dataclasses.replace(facts(resumable=resumable), origin=origin)


def recorded(state: State, events: Sequence[KnownEvent]) -> State:
    return after(*stamp(state, events), state=state)


def answering(*more: KnownEvent) -> State:
    """The other agent's message began a turn."""
    state = ordered(at_rest(), LETTER)
    return recorded(state, [replace(event, turn=turn_of(state)) for event in more])


def turn_of(state: State) -> str:
    assert state.turn is not None
    return state.turn.id


def incoming(state: State) -> Exchange:
    found = find(state, "x", "in")
    assert found is not None
    return found


def outgoing(state: State) -> Exchange:
    found = find(state, "x", "out")
    assert found is not None
    return found


def answers(events: Sequence[KnownEvent]) -> list[ExchangeReturned]:
    return [event for event in events if isinstance(event, ExchangeReturned)]


def the_answer(events: Sequence[KnownEvent]) -> ExchangeReturned:
    (found,) = answers(events)
    assert found.exchange == "x"
    return found


def busy() -> State:
    return after(*asked())


def kept_open() -> State:
    """A restart cut the turn that answers; an approval of it is still open."""
    state = answering(*called("a"), wondered("q", "a"))
    return recorded(state, settle(state, "restart", now=NOW_MS))


# -- the side that answers


def test_message_of_an_agent_begins_a_turn_that_answers_it() -> None:
    state = answering()
    assert state.turn is not None
    assert (state.turn.trigger.kind, state.turn.trigger.exchange, state.turn.trigger.hops) == ("message", "x", 3)
    known = incoming(state)
    assert (known.status, known.agent, known.conversation, known.hops) == ("started", "bea", "caller", 3)
    said_to_it = state.messages[-1]
    assert (said_to_it.role, said_to_it.exchange, said_to_it.origin) == ("user", "x", BEA)


def test_message_to_a_busy_agent_waits_for_a_turn_of_its_own() -> None:
    state = ordered(busy(), LETTER)
    assert [item.exchange for item in state.queue] == ["x"]
    assert incoming(state).status == "queued"
    rested = recorded(state, finish(state, TurnFinished(outcome="completed"), now=NOW_MS))
    begun = recorded(rested, next_turn(rested, facts()))
    assert begun.turn is not None
    assert (begun.turn.trigger.exchange, begun.turn.trigger.hops, incoming(begun).status) == ("x", 3, "started")


@pytest.mark.parametrize("trigger", ["message", "callback"])
def test_message_of_an_agent_joins_no_other_turn_even_when_a_person_moves_it_forward(trigger: Any) -> None:
    state = after(
        *asked(),
        QueueAdded(item="p", content=(), delivery="boundary"),
        QueueAdded(item="i", content=(), exchange="x", trigger=trigger),
        QueueEdited(item="i", version=2, priority=True),
    )
    assert [item.id for item in state.queue] == ["i", "p"]
    assert [item.id for item in boundary_items(state)] == ["p"]
    rested = after(finished(), state=state)
    assert [item.id for item in next_items(rested)] == ["i"]
    moved = after(QueueEdited(item="p", version=2, before="i"), state=rested)
    assert [item.id for item in next_items(moved)] == ["p"]


def test_every_event_of_the_turn_that_answers_carries_the_exchange() -> None:
    state = ordered(at_rest(), LETTER)
    turn = turn_of(state)
    events = [replace(event, turn=turn) for event in (*said(), *called("a", message="m3"))]
    assert {event.exchange for event in stamp(state, events)} == {"x"}
    closed = stamp(state, settle(recorded(state, events), "user", now=NOW_MS))
    assert {event.exchange for event in closed if event.turn == turn} == {"x"}
    begun = decide(at_rest(), LETTER, facts())
    assert isinstance(begun, list)
    assert {event.exchange for event in stamp(at_rest(), begun) if event.turn} == {"x"}


def test_events_of_a_callback_turn_answer_nothing() -> None:
    begun = TurnStarted(turn="t9", agent="a", backend="b", trigger=Trigger(kind="callback", exchange="x"))
    (started, text) = stamp(at_rest(), [begun, replace(said()[0], turn="t9")])
    assert (started.exchange, text.exchange) == (None, None)


def test_answer_goes_back_in_the_commit_that_ends_its_turn() -> None:
    state = answering(*said(text="Blue."))
    events = finish(state, TurnFinished(outcome="completed"), now=NOW_MS)
    answer = the_answer(events)
    assert (answer.status, answer.response, answer.tool_call_count) == ("complete", "Blue.", 0)
    assert isinstance(events[-1], TurnFinished)
    assert incoming(recorded(state, events)).status == "complete"


def test_answer_counts_the_calls_and_is_the_last_thing_said() -> None:
    state = answering(*said(text="First I look."), *called("a", message="m3"), ToolFinished(call="a", ok=True))
    state = recorded(state, [replace(event, turn=turn_of(state)) for event in said("m4", "Blue.")])
    answer = the_answer(finish(state, TurnFinished(outcome="completed"), now=NOW_MS))
    assert (answer.response, answer.tool_call_count) == ("Blue.", 1)


def test_long_answer_is_cut_and_says_so() -> None:
    state = answering(*said(text="x" * (RESPONSE_CHARS + 5)))
    response = the_answer(finish(state, TurnFinished(outcome="completed"), now=NOW_MS)).response or ""
    assert response.endswith("[… 5 more characters in its own conversation]")


def test_failed_turn_answers_with_what_went_wrong() -> None:
    state = answering(*said(text="Half"))
    failed = the_answer(fail(state, WireError(code="exited", message="It crashed."), now=NOW_MS))
    assert (failed.status, failed.response) == ("failed", "It crashed.")
    ended = TurnFinished(outcome="failed", error=WireError(code="exited", message="No key."))
    answer = the_answer(finish(state, ended, now=NOW_MS))
    assert (answer.status, answer.response) == ("failed", "No key.")


@pytest.mark.parametrize("reason", ["user", "limit", "backend_exit", "deleted", "restart"])
def test_stopped_turn_gives_back_what_it_had_said(reason: Any) -> None:
    answer = the_answer(settle(answering(*said(text="So far")), reason, now=NOW_MS))
    assert (answer.status, answer.response) == ("cancelled", "So far")


def test_restart_with_an_open_approval_keeps_the_exchange_open_and_the_turn_that_goes_on_answers_it() -> None:
    state = kept_open()
    assert (state.turn, incoming(state).status) == (None, "started")
    going_on = ordered(state, ResolveRequest(request="q", verdict="allow"))
    assert going_on.turn is not None
    assert (going_on.turn.trigger.kind, going_on.turn.trigger.exchange, going_on.turn.trigger.hops) == (
        "request",
        "x",
        3,
    )
    resolved = stamp(state, decide(state, ResolveRequest(request="q", verdict="allow"), facts()))  # type: ignore[arg-type]
    assert {event.exchange for event in resolved} == {"x"}
    done = finish(going_on, TurnFinished(outcome="completed"), now=NOW_MS)
    assert the_answer(done).status == "complete"


@pytest.mark.parametrize(
    ("verdict", "text", "status"),
    [("allow", None, "started"), ("deny", "shorter", "started"), ("deny", None, "cancelled")],
)
def test_plan_that_a_restart_left_open_answers_the_exchange_whatever_is_said_to_it(
    verdict: Any, text: str | None, status: str
) -> None:
    state = answering(RequestOpened(request="q", kind="plan", plan=Plan(summary="Do it")))
    state = recorded(state, settle(state, "restart", now=NOW_MS))
    assert incoming(state).status == "started"
    told = ordered(state, ResolveRequest(request="q", verdict=verdict, text=text))
    assert incoming(told).status == status
    assert exchanges.exchange_answered_by(told.turn) == ("x" if status == "started" else None)


def _superseded(state: State) -> list[KnownEvent]:
    decision = decide(state, SendMessage(content="Something else"), facts())
    assert isinstance(decision, list)
    return decision


def _stopped(state: State) -> list[KnownEvent]:
    decision = decide(state, Interrupt(), facts())
    assert isinstance(decision, list)
    return decision


def _deleted(state: State) -> list[KnownEvent]:
    decision = decide(state, DeleteConversation(), facts())
    assert isinstance(decision, list)
    return decision


def _expired(state: State) -> list[KnownEvent]:
    request = find_request(state, "q")
    assert request is not None
    return expire(state, request)


@pytest.mark.parametrize("close", [_superseded, _stopped, _deleted, _expired])
def test_whatever_keeps_a_cut_turn_from_going_on_returns_its_exchange(
    close: Callable[[State], list[KnownEvent]],
) -> None:
    state = kept_open()
    events = close(state)
    assert the_answer(events).status == "cancelled"
    assert incoming(recorded(state, events)).status == "cancelled"


def test_expiry_of_one_request_of_several_leaves_the_exchange_open() -> None:
    state = answering(*called("a", "b"), wondered("q", "a"), wondered("r", "b"))
    state = recorded(state, settle(state, "restart", now=NOW_MS))
    assert answers(_expired(state)) == []


def test_message_taken_out_of_the_queue_is_returned() -> None:
    state = ordered(busy(), LETTER)
    events = decide(state, RemoveQueued(item=state.queue[0].id), facts())
    assert isinstance(events, list)
    assert the_answer(events).status == "cancelled"
    assert incoming(recorded(state, events)).status == "cancelled"


def test_deletion_returns_what_is_queued_and_what_runs() -> None:
    second = replace(LETTER, exchange="y", client_request_id="exchange-y")
    state = ordered(answering(), second)
    returned = answers(_deleted(state))
    assert [(event.exchange, event.status) for event in returned] == [("x", "cancelled"), ("y", "cancelled")]


# -- the side that asked


def sent(mode: Any = "sync", *more: KnownEvent) -> State:
    letter = ExchangeSent(turn="t1", exchange="x", agent="cleo", to="target", mode=mode, call="x", hops=4)
    return after(*asked(), letter, *more)


def returned(status: Any, **fields: Any) -> ExchangeReturned:
    return ExchangeReturned(exchange="x", status=status, **fields)


COMPLETE = ReturnExchange(exchange="x", status="complete", response="Blue.", duration_ms=5, tool_call_count=1)


def test_exchange_that_somebody_waits_for_is_given_up_with_its_turn() -> None:
    events = finish(sent(), TurnFinished(outcome="completed"), now=NOW_MS)
    assert the_answer(events).status == "cancelled"
    stopped = sent()
    assert outgoing(recorded(stopped, settle(stopped, "user", now=NOW_MS))).status == "cancelled"


@pytest.mark.parametrize("state", [sent("async"), sent("sync", returned("queued"))])
def test_exchange_that_comes_back_later_outlives_its_turn(state: State) -> None:
    rested = recorded(state, settle(state, "restart", now=NOW_MS))
    assert is_open(outgoing(rested))
    assert listing_of(rested).open_exchanges == 1


def test_answer_at_rest_begins_exactly_one_turn() -> None:
    rested = after(finished(), state=sent("async", returned("started")))
    begun = ordered(rested, COMPLETE, Origin(face="agents", agent="cleo", conversation="target"))
    assert begun.turn is not None
    assert (begun.turn.trigger.kind, begun.turn.trigger.exchange, begun.turn.trigger.hops) == ("callback", "x", 5)
    word = begun.messages[-1]
    assert (word.role, word.event_kind, word.exchange) == ("event", "agent_callback", "x")
    assert outgoing(begun).status == "complete"
    assert listing_of(begun).open_exchanges == 0
    again = decide(begun, COMPLETE, facts())
    assert not isinstance(again, list)


def test_answer_to_a_busy_caller_waits_in_its_queue_however_full_it_is() -> None:
    crowd = [QueueAdded(item=f"i{number}", content=()) for number in range(50)]
    state = ordered(after(*crowd, state=sent("sync", returned("queued"))), COMPLETE)
    assert (state.queue[-1].trigger, state.queue[-1].exchange, len(state.queue)) == ("callback", "x", 51)
    assert "cleo answered:\n\nBlue." in plain_text(state.queue[-1].content)


def test_late_answer_after_a_timeout_is_recorded_and_begins_nothing() -> None:
    rested = after(returned("timeout"), finished(), state=sent())
    assert (outgoing(rested).status, listing_of(rested).open_exchanges) == ("timeout", 0)
    decision = decide(rested, COMPLETE, facts())
    assert kinds(decision) == ["ExchangeReturned"]
    assert outgoing(recorded(rested, decision)).status == "complete"  # type: ignore[arg-type]


def test_answer_to_a_deleted_or_unknown_exchange_is_refused() -> None:
    state = sent("async")
    unknown = decide(state, replace(COMPLETE, exchange="nobody"), facts())
    assert getattr(unknown, "code", None) == "not_found"
    gone = recorded(state, _deleted(state))
    assert getattr(decide(gone, COMPLETE, facts()), "code", None) == "gone"


def test_word_that_it_started_never_undoes_an_answer() -> None:
    state = after(returned("complete", response="Blue."), returned("started"), state=sent("async"))
    assert outgoing(state).status == "complete"


def test_call_and_result_of_the_tool_carry_the_exchange_that_the_call_begins() -> None:
    state = busy()
    (started, call, ended) = called("x")
    assert not isinstance(call, RequestOpened | MessageAdded)
    events = stamp(state, [started, replace(call, name="agents_message"), ended])
    assert [event.exchange for event in events] == [None, "x", None]
    state = after(*events, state=state)
    cut = stamp(state, settle(state, "user", now=NOW_MS))
    assert [event.exchange for event in cut if isinstance(event, ToolFinished)] == ["x"]
    assert tool(state, "x").name == "agents_message"


def test_call_of_the_tool_in_a_turn_that_answers_another_exchange_carries_its_own() -> None:
    state = answering()
    (_, call, _) = called("y")
    (marked,) = stamp(state, [replace(call, turn=turn_of(state), name="agents_message")])
    assert marked.exchange == "y"


def test_copy_of_a_conversation_expects_no_answers() -> None:
    rested = after(finished(), state=sent("async"))
    copied = recorded(rested, exchanges.abandon(rested))
    assert (outgoing(copied).status, exchanges.abandon(copied)) == ("cancelled", [])
    assert isinstance(settle(sent("async"), "restart", now=NOW_MS)[-1], TurnInterrupted)
