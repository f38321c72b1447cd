"""The view beyond its blocks: status, requests, turns, paged history, and the bounds that keep it small."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.core.fold.activity import KEEP_LATEST
from palaver.core.fold.evolve import fold
from palaver.core.fold.requests import KEEP_RESOLVED
from palaver.schema.base import Usage
from palaver.schema.content import as_content
from palaver.schema.events import (
    ConversationCreated,
    Event,
    ExchangeReturned,
    ExchangeSent,
    FilesChanged,
    KnownEvent,
    MessageEdited,
    MessageRemoved,
    MessageTruncated,
    RequestOpened,
    RequestResolved,
    SubagentStarted,
    ToolFinished,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
    UnknownEvent,
    decode_event,
)
from palaver.schema.view import FileChange, State, Trigger
from tests.golden.make import HERE as GOLDEN
from tests.unit.core.stage import after, asked, at_rest, began, called, finished, said, stopped, wondered

# -- status: derived from what is open, set by nobody

QUESTION = RequestOpened(turn="t1", request="q", kind="question")
PLAN = RequestOpened(turn="t1", request="q", kind="plan")


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([], "idle"),
        ([*asked()], "generating"),
        ([*asked(), *called("a")], "generating"),
        ([*asked(), *called("a"), began("a")], "executing_tools"),
        ([*asked(), *called("a"), began("a", "ide")], "waiting_ide"),
        ([*asked(), *called("a", "b"), began("a"), began("b", "ide")], "waiting_ide"),
        ([*asked(), *called("a", "b"), began("a"), wondered("q", "b")], "paused"),
        ([*asked(), QUESTION], "waiting_user_input"),
        ([*asked(), PLAN], "waiting_user_input"),
        ([*asked(), QUESTION, wondered("q2")], "paused"),
        ([*asked(), finished()], "idle"),
        ([*asked(), PLAN, TurnFinished(turn="t1", outcome="plan")], "waiting_user_input"),
        ([*asked(), TurnFinished(turn="t1", outcome="task")], "completed"),
        ([*asked(), TurnFinished(turn="t1", outcome="failed")], "error"),
        ([*asked(), TurnFinished(turn="t1", outcome="failed"), *asked("t2", "m3")], "generating"),
        ([*asked(), TurnInterrupted(turn="t1", reason="user")], "idle"),
    ],
)
def test_status_follows_from_what_is_open(events: list[KnownEvent], status: str) -> None:
    assert after(*events).status == status


def test_status_sees_calls_of_the_turn_that_was_cut_once_an_answer_goes_on() -> None:
    cut = after(*asked(resumable=True), *called("a"), wondered("q", "a"), stopped())
    going_on = after(
        RequestResolved(turn="t2", request="q", status="answered", verdict="allow"),
        TurnStarted(turn="t2", agent="default", backend="x", trigger=Trigger(kind="request", request="q")),
        state=cut,
    )
    assert going_on.status == "generating"
    running = after(began("a", turn="t2"), state=going_on)
    assert running.status == "executing_tools"
    assert after(began("a", "ide", turn="t2"), state=going_on).status == "waiting_ide"


# -- turns


def test_end_of_another_turn_ends_nothing() -> None:
    working = after(*asked())
    strayed = after(finished("t0"), TurnInterrupted(turn="t9", reason="user"), state=working)
    assert strayed.turn == working.turn
    assert strayed.last_turn is None
    over = after(finished(), state=working)
    again = after(TurnInterrupted(turn="t1", reason="user"), state=over)
    assert (again.last_turn, again.usage) == (over.last_turn, over.usage)


def test_usage_and_cost_add_up_over_turns() -> None:
    paid = TurnFinished(outcome="completed", usage=Usage(input_tokens=3, cached_tokens=1), cost_usd=0.25)
    state = after(*asked(), replace(paid, turn="t1"), *asked("t2", "m3"), replace(paid, turn="t2"))
    assert (state.usage, state.cost_usd) == (Usage(input_tokens=6, cached_tokens=2), 0.5)


# -- requests


def test_first_resolution_is_the_resolution() -> None:
    state = after(
        *asked(),
        QUESTION,
        RequestResolved(request="q", status="answered", text="first"),
        RequestResolved(request="q", status="cancelled"),
        QUESTION,
    )
    assert len(state.requests) == 1
    assert state.requests[0].status == "answered"
    assert state.requests[0].resolution is not None
    assert state.requests[0].resolution.text == "first"


def test_resolved_requests_are_kept_up_to_a_bound_and_open_ones_always() -> None:
    events: list[KnownEvent] = [wondered("open")]
    for number in range(KEEP_RESOLVED + 3):
        events += [wondered(f"q{number}"), RequestResolved(request=f"q{number}", status="expired")]
    state = after(*asked(), *events)
    assert [known.id for known in state.requests] == ["open", *(f"q{n}" for n in range(3, KEEP_RESOLVED + 3))]


# -- history, whole and paged


def _tail(state: State, kept: int) -> State:
    gone = len(state.messages) - kept
    return replace(state, messages=state.messages[gone:], offset=gone)


FOUR = after(*asked(), *said(), finished(), *asked("t2", "m3"), *said("m4", turn="t2"), finished("t2"))


@pytest.mark.parametrize("kept", [0, 1, 2, 3, 4])
@pytest.mark.parametrize(
    "event",
    [
        MessageRemoved(message="m1", index=0),
        MessageRemoved(message="m3", index=2),
        MessageTruncated(index=0),
        MessageTruncated(index=1),
        MessageTruncated(index=3),
        MessageTruncated(index=4),
        MessageEdited(message="m1", content=as_content("x")),
        MessageEdited(message="m3", content=as_content("x")),
    ],
)
def test_paged_view_is_the_tail_of_the_whole_one(kept: int, event: KnownEvent) -> None:
    whole, paged = after(event, state=FOUR), after(event, state=_tail(FOUR, kept))
    assert paged == replace(whole, messages=whole.messages[paged.offset :], offset=paged.offset)
    assert paged.offset + len(paged.messages) == len(whole.messages)


def test_removal_of_an_unknown_message_changes_nothing() -> None:
    assert after(MessageRemoved(message="nobody", index=3), state=_tail(FOUR, 2)).messages == FOUR.messages[2:]


# -- what is kept is bounded


def test_lists_keep_their_latest() -> None:
    many = range(KEEP_LATEST + 2)
    state = after(
        *(SubagentStarted(subagent=f"c{n}", agent="a", task="t") for n in many),
        ExchangeSent(exchange="open", agent="a"),
        *(
            event
            for n in many
            for event in (
                ExchangeSent(exchange=f"x{n}", agent="a"),
                ExchangeReturned(exchange=f"x{n}", status="complete"),
            )
        ),
        *(FilesChanged(files=(FileChange(path=f"f{n}", kind="modified"),)) for n in many),
    )
    assert state.subagents[0].conversation == "c2"
    assert [known.id for known in state.exchanges[:2]] == ["open", "x2"], "what is still expected never leaves the view"
    assert (state.files[0].path, len(state.files)) == ("f2", KEEP_LATEST)


def test_files_hold_the_latest_change_of_each_path_latest_last() -> None:
    state = after(
        FilesChanged(files=(FileChange(path="a", kind="created"), FileChange(path="b", kind="created"))),
        FilesChanged(files=(FileChange(path="a", kind="deleted"),)),
    )
    assert [(file.path, file.kind) for file in state.files] == [("b", "created"), ("a", "deleted")]


def test_files_add_up_what_the_calls_did_to_them() -> None:
    state = after(
        FilesChanged(files=(FileChange(path="a", kind="created", additions=3, diff="+1"),), call="c1"),
        FilesChanged(files=(FileChange(path="a", kind="modified", additions=2, deletions=1, diff="+2"),), call="c2"),
    )
    assert state.files == (FileChange(path="a", kind="created", additions=5, deletions=1),)


# -- it never fails

_LINES = [decode_event(line) for path in sorted(GOLDEN.glob("*.jsonl")) for line in path.read_bytes().splitlines()]


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(st.lists(st.sampled_from(_LINES), max_size=60))
def test_fold_takes_any_events_in_any_order(events: list[Event]) -> None:
    state = fold(State(), events)
    reread = msgspec.json.decode(msgspec.json.encode(state), type=State)
    assert msgspec.json.encode(reread) == msgspec.json.encode(state)


def test_fold_moves_on_over_what_it_does_not_know() -> None:
    state = fold(at_rest(), [UnknownEvent(seq=99, ts=7, type="weather.changed")])
    assert (state.seq, state.updated_at, state.messages) == (99, 7, at_rest().messages)


def test_created_title_is_a_persons_own_and_none_is_to_be_found() -> None:
    given_title = fold(State(), [ConversationCreated(seq=1, conversation="c", title="Mine")])
    none_given = fold(State(), [ConversationCreated(seq=1, conversation="c")])
    assert (given_title.title_source, none_given.title_source) == ("user", "none")


def test_result_without_a_call_is_skipped() -> None:
    assert after(ToolFinished(call="nobody", ok=True), state=at_rest()).messages == at_rest().messages
