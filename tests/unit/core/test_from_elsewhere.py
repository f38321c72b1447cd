"""What an agent from elsewhere may do here: speak at any time, and let the running turn end after its current calls."""

from palaver.core.decide.decide import Already, Refusal, decide
from palaver.core.settle import end_yielding_turn
from palaver.core.state import between_steps
from palaver.schema.commands import AskFirst, Interrupt, Order, PostAnswer, ResolveRequest, SendMessage, YieldTurn
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    KnownEvent,
    MessageAdded,
    RequestResolved,
    TextDelta,
    ToolFinished,
    TurnFinished,
    TurnStarted,
    TurnStatus,
)
from palaver.schema.view import State
from tests.unit.core.stage import NOW_MS, after, asked, began, called, facts, said


def decided(state: State, order: Order) -> list[KnownEvent]:
    decision = decide(state, order, facts())
    assert isinstance(decision, list), decision
    return decision


def test_posted_answer_is_an_assistants_message_of_the_running_turn_and_starts_none() -> None:
    at_rest = after(*asked(), *said(), TurnFinished(turn="t1", outcome="completed"))
    (posted,) = decided(at_rest, PostAnswer(content="From afar", agent="afar"))
    assert isinstance(posted, MessageAdded)
    assert (posted.role, posted.agent, posted.turn) == ("assistant", "afar", None)
    (in_turn,) = decided(after(*asked()), PostAnswer(content="From afar"))
    assert in_turn.turn == "t1"


def test_yielding_at_rest_does_nothing() -> None:
    at_rest = after(*asked(), *said(), TurnFinished(turn="t1", outcome="completed"))
    assert isinstance(decide(at_rest, YieldTurn(), facts()), Already)


def test_yielding_between_steps_ends_the_turn_at_once() -> None:
    events = decided(after(*asked()), YieldTurn())
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].outcome == "yielded"


def test_yielding_waits_for_every_call_of_the_batch() -> None:
    state = after(*asked(), *called("a", "b"), began("a"), began("b"))
    (told,) = decided(state, YieldTurn())
    assert isinstance(told, TurnStatus)
    state = after(told, state=state)
    assert state.turn is not None
    assert state.turn.yielding
    assert isinstance(decide(state, YieldTurn(), facts()), Already)
    assert end_yielding_turn(state, now=NOW_MS) == []
    state = after(ToolFinished(turn="t1", call="a", ok=True), state=state)
    assert end_yielding_turn(state, now=NOW_MS) == []
    # What the agent says of itself meanwhile does not take it back.
    state = after(
        TurnStatus(turn="t1", status="working"), ToolFinished(turn="t1", call="b", ok=True, output="kept"), state=state
    )
    ended = end_yielding_turn(state, now=NOW_MS)
    assert [type(event) for event in ended] == [TurnFinished]


def test_yielding_waits_for_the_answer_that_streams_in() -> None:
    state = after(
        *asked(), AnswerStarted(turn="t1", message="m2"), TextDelta(turn="t1", message="m2", block=0, text="Well")
    )
    assert not between_steps(state)
    (told,) = decided(state, YieldTurn())
    state = after(told, AnswerFinished(turn="t1", message="m2", finish_reason="stop"), state=state)
    assert end_yielding_turn(state, now=NOW_MS) != []


ASKED = AskFirst(request="q", tool="chat_assistant_post", agent="afar")


def test_answer_to_who_asked_from_elsewhere_begins_no_turn() -> None:
    at_rest = after(*asked(), *said(), TurnFinished(turn="t1", outcome="completed"))
    state = after(*decided(at_rest, ASKED), state=at_rest)
    (resolved,) = decided(state, ResolveRequest(request="q", verdict="allow"))
    assert isinstance(resolved, RequestResolved)
    assert (resolved.verdict, resolved.turn) == ("allow", None)
    assert isinstance(decide(state, ASKED, facts()), Already)


def test_who_asked_from_elsewhere_waits_on_whatever_begins_or_ends_here_and_a_stop_calls_it_off() -> None:
    at_rest = after(*asked(), *said(), TurnFinished(turn="t1", outcome="completed"))
    state = after(*decided(at_rest, ASKED), state=at_rest)
    begun = decided(state, SendMessage(content="Next"))
    assert any(isinstance(event, TurnStarted) for event in begun)
    state = after(*begun, state=state)
    over = decided(state, YieldTurn())
    assert not any(isinstance(event, RequestResolved) for event in (*begun, *over))
    stopped = decided(state, Interrupt())
    assert [event.status for event in stopped if isinstance(event, RequestResolved)] == ["cancelled"]


def test_agents_elsewhere_cannot_ask_without_end() -> None:
    state = after(*asked())
    for number in range(8):
        state = after(*decided(state, AskFirst(request=f"q{number}", tool="x")), state=state)
    decision = decide(state, AskFirst(request="one-more", tool="x"), facts())
    assert isinstance(decision, Refusal)
    assert decision.code == "busy"
