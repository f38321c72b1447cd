"""Stopping, deleting, and results that an editor sends: what they do to the turn that runs."""

import pytest

from palaver.core.decide.decide import decide
from palaver.core.next import next_items
from palaver.schema.commands import DeleteConversation, Interrupt, ReturnToolResult, SendMessage
from palaver.schema.events import QueueEdited, QueueRemoved, ToolFinished, TurnInterrupted
from tests.unit.core.stage import (
    ADA,
    after,
    already,
    asked,
    at_rest,
    began,
    called,
    events,
    facts,
    finished,
    kinds,
    queued,
    refusal,
    tool,
    waiting_after_restart,
    wondered,
    working,
)


def _held(item: str) -> QueueEdited:
    return QueueEdited(item=item, version=2, held=True)


# -- stop


def test_stop_ends_the_turn_and_says_who_and_where_the_listener_was() -> None:
    interrupted = events(working(), Interrupt(audio_end_ms=700))[-1]
    assert isinstance(interrupted, TurnInterrupted)
    assert (interrupted.turn, interrupted.reason, interrupted.origin) == ("t1", "user", ADA)
    assert interrupted.audio_end_ms == 700


def test_stop_keeps_the_queue() -> None:
    state = after(*asked(), queued("a"))
    stopped = after(*events(state, Interrupt()), state=state)
    assert [item.id for item in stopped.queue] == ["a"]


def test_stop_that_holds_the_queue_holds_all_of_it_before_the_turn_ends() -> None:
    state = after(*asked(), queued("a"), queued("b", delivery="boundary"), queued("c"), _held("c"))
    decision = events(state, Interrupt(hold_queue=True))
    assert kinds(decision) == ["QueueEdited", "QueueEdited", "TurnInterrupted"]
    stopped = after(*decision, state=state)
    assert [(item.id, item.held, item.version) for item in stopped.queue] == [
        ("a", True, 2),
        ("b", True, 2),
        ("c", True, 2),
    ]
    assert next_items(stopped) == []


def test_stop_that_holds_the_queue_holds_commands_and_other_agents_too() -> None:
    waiting = (queued("x", command={"type": "regenerate"}), queued("y", exchange="e"), queued("z", trigger="callback"))
    state = after(*asked(), *waiting)
    stopped = after(*events(state, Interrupt(hold_queue=True)), state=state)
    assert [item.held for item in stopped.queue] == [True, True, True]


def test_message_sent_while_the_queue_is_held_runs_alone_at_once() -> None:
    state = after(*asked(), queued("a", merge=True))
    stopped = after(*events(state, Interrupt(hold_queue=True)), state=state)
    went_on = after(*events(stopped, SendMessage(content="Now", merge=True)), state=stopped)
    assert went_on.turn is not None
    assert [(item.id, item.held) for item in went_on.queue] == [("a", True)]
    assert after(finished(went_on.turn.id), state=went_on).queue[0].held


@pytest.mark.parametrize("turn", [None, "t1"])
def test_stop_that_holds_the_queue_without_one_is_a_stop(turn: str | None) -> None:
    assert kinds(events(after(*asked()), Interrupt(turn=turn, hold_queue=True))) == ["TurnInterrupted"]
    assert already(at_rest(), Interrupt(turn=turn, hold_queue=True)).note == "Nothing was running."


def test_stop_of_a_turn_that_just_ended_still_holds_what_waits() -> None:
    state = after(*asked(), queued("a"))
    decision = events(state, Interrupt(turn="t0", hold_queue=True))
    assert kinds(decision) == ["QueueEdited"]
    held = after(*decision, state=state)
    assert held.turn is not None
    assert already(held, Interrupt(turn="t0", hold_queue=True)).note == "That turn had ended before."


def test_stop_twice_is_told_that_nothing_runs() -> None:
    state = working()
    stopped = after(*events(state, Interrupt()), state=state)
    assert already(stopped, Interrupt()).note == "Nothing was running."


def test_stop_of_another_turn_stops_nothing() -> None:
    assert already(working(), Interrupt(turn="t0")).note == "That turn had ended before."
    assert already(at_rest(), Interrupt(turn="t1")).note == "Nothing was running."


@pytest.mark.parametrize("turn", [None, "t1"])
def test_stop_at_rest_calls_off_what_an_ended_turn_left_waiting(turn: str | None) -> None:
    state = waiting_after_restart()
    decision = events(state, Interrupt(turn=turn))
    assert kinds(decision) == ["ToolFinished", "RequestResolved"]
    stopped = after(*decision, state=state)
    assert (stopped.status, tool(stopped, "a").status) == ("idle", "interrupted")
    assert stopped.requests[0].status == "cancelled"


def test_stop_at_rest_of_another_turn_leaves_what_waits() -> None:
    assert already(waiting_after_restart(), Interrupt(turn="t0")).note == "Nothing was running."


def test_stop_right_after_a_message_stops_its_turn() -> None:
    begun = after(*events(after(), SendMessage(content="Go")))
    assert kinds(decide(begun, Interrupt(), facts())) == ["TurnInterrupted"]


# -- delete


def test_delete_ends_everything_that_waits_each_with_a_reason() -> None:
    state = after(*asked(), *called("a"), wondered("q", "a"), queued("x"), queued("y"))
    decision = events(state, DeleteConversation())
    assert kinds(decision) == [
        "ToolFinished",
        "RequestResolved",
        "TurnInterrupted",
        "QueueRemoved",
        "QueueRemoved",
        "ConversationDeleted",
    ]
    assert [event.reason for event in decision if isinstance(event, QueueRemoved)] == ["cancelled", "cancelled"]
    gone = after(*decision, state=state)
    assert (gone.deleted, gone.queue, gone.turn) == (True, (), None)
    assert gone.last_turn is not None
    assert gone.last_turn.stopped == "deleted"


def test_delete_at_rest_closes_requests_that_a_restart_left() -> None:
    assert kinds(decide(waiting_after_restart(), DeleteConversation(), facts())) == [
        "ToolFinished",
        "RequestResolved",
        "ConversationDeleted",
    ]


def test_delete_twice_is_told_so() -> None:
    gone = after(*events(at_rest(), DeleteConversation()), state=at_rest())
    assert already(gone, DeleteConversation()).note == "It was deleted before."


# -- results from the editor


def test_editor_returns_the_result_of_its_call() -> None:
    state = after(*asked(), *called("a"), began("a", "ide"))
    assert state.status == "waiting_ide"
    result = events(state, ReturnToolResult(call="a", content="42"))[0]
    assert isinstance(result, ToolFinished)
    assert (result.turn, result.ok, result.output, result.error) == ("t1", True, "42", None)


def test_editor_returns_a_failure_as_a_result() -> None:
    state = after(*asked(), *called("a"), began("a", "ide"))
    result = events(state, ReturnToolResult(call="a", content="no such file", failed=True))[0]
    assert isinstance(result, ToolFinished)
    assert (result.ok, result.output) == (False, "")
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("tool_error", "no such file")


def test_editor_may_answer_while_another_call_waits_for_approval() -> None:
    state = after(*asked(), *called("a", "b"), began("a", "ide"), wondered("q", "b"))
    assert state.status == "paused"
    assert kinds(decide(state, ReturnToolResult(call="a", content="42"), facts())) == ["ToolFinished"]


def test_editor_answering_twice_is_told_so() -> None:
    state = after(*asked(), *called("a"), began("a", "ide"))
    once = after(*events(state, ReturnToolResult(call="a", content="42")), state=state)
    assert already(once, ReturnToolResult(call="a", content="43")).note == "It had its result before."
    assert tool(once, "a").output == "42"


def test_editor_cannot_answer_for_a_call_that_the_server_runs() -> None:
    state = after(*asked(), *called("a", "b"), began("a", "rule"))
    assert refusal(state, ReturnToolResult(call="a", content="forged")).code == "conflict"
    assert refusal(state, ReturnToolResult(call="b", content="forged")).code == "conflict"
    assert refusal(state, ReturnToolResult(call="nobody", content="?")).code == "not_found"


def test_editor_result_is_bounded() -> None:
    state = after(*asked(), *called("a"), began("a", "ide"))
    assert kinds(decide(state, ReturnToolResult(call="a", content="x" * (1 << 20)), facts())) == ["ToolFinished"]
    assert refusal(state, ReturnToolResult(call="a", content="x" * ((1 << 20) + 1))).code == "too_large"
