"""Whether a queue is paused, and what is said of it: the same as on the page (`web/src/view/dock/paused.test.ts`)."""

from palaver.schema.base import Origin
from palaver.schema.view import QueueItem, State, Trigger, Turn, TurnSummary
from palaver.tui.docks.queue_pause import is_paused, say_paused
from palaver.tui.people import People

ME = People(me="ada", client="terminal")
RUNNING = Turn(id="t2", agent="demo", backend="scripted", model=None, started_at=1, trigger=Trigger(messages=("m",)))


def waiting(*held: bool) -> tuple[QueueItem, ...]:
    return tuple(QueueItem(id=f"i{at}", content=(), delivery="turn", ts=1, held=one) for at, one in enumerate(held))


def stopped(*held: bool, by: Origin | None = None, turn: Turn | None = None) -> State:
    last = TurnSummary(id="t", outcome="interrupted", ended_at=1, stopped="user", by=by)
    return State(queue=waiting(*held), last_turn=last, turn=turn)


def test_queue_is_paused_after_a_stop_that_left_something_held() -> None:
    assert is_paused(stopped(True, False))
    assert not is_paused(stopped(False))
    assert not is_paused(State(queue=waiting(True)))
    assert not is_paused(stopped(True, turn=RUNNING))


def test_queue_with_more_than_one_held_is_paused_whatever_runs() -> None:
    assert is_paused(stopped(True, True, turn=RUNNING))
    assert is_paused(State(queue=waiting(True, True)))


def test_what_is_edited_here_pauses_nothing() -> None:
    assert not is_paused(stopped(True), edited="i0")
    assert is_paused(stopped(True, True), edited="i0")


def test_paused_queue_says_who_stopped_the_agent() -> None:
    here = Origin(user="ada", client="terminal")
    assert say_paused(stopped(True, by=here), ME) == "Paused: you stopped the agent."
    assert say_paused(stopped(True), ME) == "Paused: you stopped the agent."
    assert say_paused(stopped(True, by=Origin(user="bob", client="x")), ME) == "Paused: bob stopped the agent."
    elsewhere = say_paused(stopped(True, by=Origin(user="ada", client="page")), ME)
    assert elsewhere == "Paused: the agent was stopped from another client."
    assert say_paused(stopped(True, True, turn=RUNNING), ME) == "Held back until you let them go."
