"""Bringing a turn to rest, whatever stopped it: what is closed, in which order, and what stays for a person."""

import pytest
from msgspec.structs import replace

from palaver.core.settle import fail, finish, settle
from palaver.schema.base import Usage
from palaver.schema.content import as_content
from palaver.schema.errors import WireError
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    KnownEvent,
    MessageAdded,
    MessageRemoved,
    RequestOpened,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    TurnFinished,
    TurnInterrupted,
)
from palaver.schema.view import Plan, State, Stopped, TextBlock
from tests.unit.core.stage import (
    NOW_MS,
    after,
    asked,
    at_rest,
    began,
    called,
    kinds,
    message,
    said,
    tool,
    waiting_after_restart,
    wondered,
    working,
)


def _in_full_swing(*, resumable: bool = False) -> State:
    """Text and thinking half written, four calls in every stage, an approval open."""
    return after(
        *asked(resumable=resumable),
        AnswerStarted(turn="t1", message="m2"),
        ThinkingDelta(turn="t1", message="m2", block=0, text="hm"),
        TextDelta(turn="t1", message="m2", block=1, text="I wi"),
        *(
            ToolCalled(turn="t1", message="m2", block=block, call=call, name="shell", input={})
            for block, call in ((2, "running"), (3, "waiting"), (4, "called"))
        ),
        ToolInputDelta(turn="t1", message="m2", block=5, call="input", name="shell", text="{"),
        began("running"),
        ToolOutputDelta(turn="t1", call="running", text="out"),
        wondered("q", "waiting"),
    )


def test_stop_closes_text_then_calls_then_requests_then_the_turn() -> None:
    events = settle(_in_full_swing(), "user", now=NOW_MS)
    assert kinds(events) == [
        "ThinkingFinished",
        "TextFinished",
        "AnswerFinished",
        "ToolFinished",
        "ToolFinished",
        "ToolFinished",
        "ToolFinished",
        "RequestResolved",
        "TurnInterrupted",
    ]
    assert {event.turn for event in events} == {"t1"}
    thinking, text, answer = events[:3]
    assert isinstance(thinking, ThinkingFinished)
    assert isinstance(text, TextFinished)
    assert isinstance(answer, AnswerFinished)
    assert (thinking.text, text.text) == ("hm", "I wi")
    assert thinking.interrupted
    assert text.interrupted
    assert (answer.interrupted, answer.finish_reason) == (True, "interrupted")


def test_stop_says_of_each_call_whether_it_may_have_done_something() -> None:
    results = [event for event in settle(_in_full_swing(), "user", now=NOW_MS) if isinstance(event, ToolFinished)]
    assert {result.call: result.effect for result in results} == {
        "running": "unknown",
        "waiting": "none",
        "called": "none",
        "input": "none",
    }
    assert all(result.error is not None and result.error.code == "tool_interrupted" for result in results)
    assert results[0].output == "out"


def test_stop_leaves_a_state_that_needs_no_settling() -> None:
    state = after(*settle(_in_full_swing(), "user", now=NOW_MS), state=_in_full_swing())
    assert (state.status, state.turn) == ("idle", None)
    assert settle(state, "user", now=NOW_MS) == []
    assert {tool(state, call).status for call in ("running", "waiting", "called", "input")} == {"interrupted"}


def test_stop_counts_what_was_used_and_how_long_it_took() -> None:
    state = after(
        *asked(),
        AnswerStarted(turn="t1", message="m2"),
        AnswerFinished(turn="t1", message="m2", finish_reason="stop", usage=Usage(output_tokens=7)),
    )
    interrupted = settle(state, "limit", now=NOW_MS)[-1]
    assert isinstance(interrupted, TurnInterrupted)
    assert (interrupted.reason, interrupted.usage) == ("limit", Usage(output_tokens=7))
    assert interrupted.duration_ms == NOW_MS - 3_000
    # The wall clock may have been set back meanwhile.
    assert [event.duration_ms for event in settle(state, "user", now=0) if isinstance(event, TurnInterrupted)] == [0]


@pytest.mark.parametrize(
    "nothing",
    [
        [],
        [TextDelta(turn="t1", message="m2", block=0, text="")],
        [ThinkingDelta(turn="t1", message="m2", block=0, text="")],
    ],
)
def test_stop_before_the_first_word_leaves_no_empty_answer(nothing: list[KnownEvent]) -> None:
    state = after(*asked(), AnswerStarted(turn="t1", message="m2"), *nothing)
    events = settle(state, "user", now=NOW_MS)
    assert kinds(events)[-3:] == ["AnswerFinished", "MessageRemoved", "TurnInterrupted"]
    assert [known.id for known in after(*events, state=state).messages] == ["m1"]


def test_stop_removes_several_empty_answers_by_their_places() -> None:
    state = after(*asked(), *(AnswerStarted(turn="t1", message=name) for name in ("x", "y", "z")))
    spoken = after(TextDelta(turn="t1", message="y", block=0, text="hi"), state=state)
    events = settle(spoken, "user", now=NOW_MS)
    removed = [(event.message, event.index) for event in events if isinstance(event, MessageRemoved)]
    assert removed == [("z", 3), ("x", 1)]
    assert [known.id for known in after(*events, state=spoken).messages] == ["m1", "y"]


def test_stop_names_the_place_in_the_whole_history_also_when_only_the_tail_is_loaded() -> None:
    state = replace(after(*asked(), AnswerStarted(turn="t1", message="m2")), offset=7)
    removed = [event.index for event in settle(state, "user", now=NOW_MS) if isinstance(event, MessageRemoved)]
    assert removed == [8]


def test_stop_keeps_an_answer_that_only_called_a_tool() -> None:
    state = after(
        *asked(),
        AnswerStarted(turn="t1", message="m2"),
        ToolCalled(turn="t1", message="m2", block=0, call="a", name="shell"),
    )
    settled = after(*settle(state, "user", now=NOW_MS), state=state)
    assert (message(settled, "m2").status, tool(settled, "a").status) == ("interrupted", "interrupted")


def test_stop_finds_the_turns_messages_behind_an_event_that_came_between() -> None:
    state = after(
        *asked(),
        AnswerStarted(turn="t1", message="m2"),
        TextDelta(turn="t1", message="m2", block=0, text="I"),
        MessageAdded(message="e", role="event", hidden=True, content=as_content("exit 0")),
        *said("m3"),
    )
    settled = after(*settle(state, "user", now=NOW_MS), state=state)
    assert message(settled, "m2").blocks == (TextBlock(index=0, text="I", status="interrupted"),)


def test_stop_closes_a_block_that_an_answer_forgot() -> None:
    state = after(
        *asked(),
        AnswerStarted(turn="t1", message="m2"),
        TextDelta(turn="t1", message="m2", block=0, text="I"),
        AnswerFinished(turn="t1", message="m2", finish_reason="stop"),
    )
    assert kinds(settle(state, "user", now=NOW_MS)) == ["TextFinished", "TurnInterrupted"]


def test_stop_keeps_the_tail_of_long_output_and_says_that_it_is_one() -> None:
    state = after(*asked(), *called("a"), began("a"), ToolOutputDelta(turn="t1", call="a", text="x" * 40_000 + "end"))
    result = settle(state, "user", now=NOW_MS)[0]
    assert isinstance(result, ToolFinished)
    assert (len(result.output), result.output[-4:], result.truncated) == (32_768, "xend", True)


# -- a restart


@pytest.mark.parametrize("reason", ["restart", "shutdown"])
def test_restart_leaves_answerable_what_nothing_has_acted_on(reason: Stopped) -> None:
    state = _in_full_swing(resumable=True)
    settled = after(*settle(state, reason, now=NOW_MS), state=state)
    assert settled.status == "waiting_user_input"
    assert (tool(settled, "waiting").status, tool(settled, "running").status) == ("waiting", "interrupted")
    assert settled.requests[0].status == "open"


@pytest.mark.parametrize(("reason", "resumable"), [("restart", False), ("user", True), ("backend_exit", True)])
def test_other_ends_leave_nothing_open(reason: Stopped, resumable: bool) -> None:
    state = _in_full_swing(resumable=resumable)
    settled = after(*settle(state, reason, now=NOW_MS), state=state)
    assert (settled.status, settled.requests[0].status) == ("idle", "cancelled")


def test_restart_ends_a_question_of_a_call_that_runs() -> None:
    # What runs may have had an effect; an answer could only go to a process that is gone.
    asking = RequestOpened(turn="t1", request="q", kind="question", call="a")
    state = after(*asked(resumable=True), *called("a"), began("a"), asking)
    settled = after(*settle(state, "restart", now=NOW_MS), state=state)
    assert (tool(settled, "a").status, settled.requests[0].status) == ("interrupted", "cancelled")
    result = settle(state, "restart", now=NOW_MS)[0]
    assert isinstance(result, ToolFinished)
    assert result.effect == "unknown"


def test_restart_at_rest_changes_nothing() -> None:
    assert settle(at_rest(), "restart", now=NOW_MS) == []
    assert settle(waiting_after_restart(), "restart", now=NOW_MS) == []


# -- failure and a normal end


def test_failure_closes_the_same_and_says_why() -> None:
    error = WireError(code="exited", message="It is gone.")
    events = fail(_in_full_swing(resumable=True), error, now=NOW_MS)
    failed = events[-1]
    assert isinstance(failed, TurnFinished)
    assert (failed.outcome, failed.error, failed.duration_ms) == ("failed", error, NOW_MS - 3_000)
    assert kinds(events)[:-1] == kinds(settle(_in_full_swing(), "user", now=NOW_MS))[:-1]
    assert after(*events, state=_in_full_swing()).status == "error"
    assert fail(at_rest(), error, now=NOW_MS) == []


def test_finish_closes_what_a_backend_forgot() -> None:
    events = finish(_in_full_swing(), TurnFinished(outcome="completed"), now=9)
    assert kinds(events)[-2:] == ["RequestResolved", "TurnFinished"]
    assert events[-1].turn == "t1"
    assert finish(at_rest(), TurnFinished(outcome="completed"), now=9) == []


def test_finish_counts_usage_that_the_backend_did_not_sum_up() -> None:
    state = after(
        *asked(), *said(), AnswerFinished(turn="t1", message="m2", finish_reason="stop", usage=Usage(input_tokens=4))
    )
    summed, told = (
        finish(state, TurnFinished(outcome="completed", usage=usage), now=9)[-1]
        for usage in (Usage(), Usage(input_tokens=9))
    )
    assert isinstance(summed, TurnFinished)
    assert isinstance(told, TurnFinished)
    assert (summed.usage, told.usage) == (Usage(input_tokens=4), Usage(input_tokens=9))


def test_finish_leaves_a_proposed_plan_to_be_answered() -> None:
    plan = RequestOpened(turn="t1", request="q", kind="plan", plan=Plan(summary="Dig"))
    state = after(*asked(), plan)
    assert kinds(finish(state, TurnFinished(outcome="plan"), now=9)) == ["TurnFinished"]
    assert kinds(finish(state, TurnFinished(outcome="completed"), now=9)) == ["RequestResolved", "TurnFinished"]


def test_settling_a_turn_that_said_nothing_is_its_interruption_alone() -> None:
    assert kinds(settle(working(), "user", now=NOW_MS)) == ["TurnInterrupted"]
