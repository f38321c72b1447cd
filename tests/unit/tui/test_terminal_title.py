"""What a terminal says to someone who looks elsewhere: how the conversation stands, and when that is worth a bell."""

from msgspec.structs import replace

from palaver.schema.view import State, TurnSummary
from palaver.tui.terminal_title import is_worth_ringing, title_of
from tests.tui.harness import NOW_MS, approval, state_with

ENDED = TurnSummary(id="turn-1", outcome="completed", ended_at=NOW_MS)


def test_title_says_how_the_conversation_stands() -> None:
    assert title_of(State()) == "Palaver"
    assert title_of(state_with(title="Tidy up", status="generating")) == "● Tidy up · Palaver"
    assert title_of(state_with(title="", status="paused")) == "◆ New conversation · Palaver"


def test_title_cannot_command_the_terminal() -> None:
    said = title_of(state_with(title="a\x07\x1b]2;b\nc", status="idle"))
    assert said.isprintable()


def test_end_of_a_turn_and_a_new_request_ring_and_nothing_else() -> None:
    working, waiting = state_with(), state_with(approval())
    resting = state_with(turn=None, last_turn=ENDED)
    assert is_worth_ringing(working, resting)
    assert is_worth_ringing(resting, replace(resting, last_turn=replace(ENDED, id="turn-2")))
    assert is_worth_ringing(working, waiting)
    assert is_worth_ringing(waiting, state_with(approval(), approval("r-2")))
    assert not is_worth_ringing(resting, state_with(last_turn=ENDED))
    assert not is_worth_ringing(waiting, waiting)
    assert not is_worth_ringing(waiting, working)


def test_conversation_that_is_opened_does_not_ring() -> None:
    assert not is_worth_ringing(State(), state_with(approval()))
    assert not is_worth_ringing(state_with(), replace(state_with(turn=None, last_turn=ENDED), conversation="c-2"))
