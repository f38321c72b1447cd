"""What the log keeps beside the events: the line of the list, where search says a text stands, and the runs."""

import pytest

from palaver.conversation.index_rows import documents_of, listing_of, runs_of
from palaver.core.fold.evolve import fold
from palaver.log.base import Run
from palaver.schema.base import Usage
from palaver.schema.content import TextPart
from palaver.schema.errors import WireError
from palaver.schema.events import (
    AnswerStarted,
    ConversationCreated,
    KnownEvent,
    MessageAdded,
    MessageEdited,
    TextFinished,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
    TurnStatus,
)
from palaver.schema.view import Outcome, State, Stopped, Trigger


def said(seq: int, message: str, text: str) -> KnownEvent:
    return MessageAdded(seq=seq, message=message, content=(TextPart(text=text),))


def test_edited_message_is_found_where_it_stands() -> None:
    events = [said(1, "first", "roses"), said(2, "second", "tulips")]
    edited = MessageEdited(seq=3, message="first", content=(TextPart(text="daisies"),))
    state = fold(fold(State(), events), [edited])
    assert [(found.message, found.seq, found.text) for found in documents_of(state, [edited])] == [
        ("first", 1, "daisies")
    ]


@pytest.mark.parametrize(
    ("markdown", "line"),
    [
        ("Use `grep -n` and **not** *find*.", "Use grep -n and not find."),
        ("## Tides\n\n- [high](https://a.test/b) water\n- ***low*** water", "Tides high water low water"),
        ("```python\nx = 2 * 3 * 4\n```\nDone: _yes_", "x = 2 * 3 * 4 Done: yes"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "| a | b | | 1 | 2 |"),
        ("[high](https://a.test/b_(c)) water, [low", "high water, [low"),
        ("Tides\n\n  > - high\n-\n---\n - - -\n-- | --- | :-:\nEnd", "Tides - high - - End"),
        ("``a`` ``` `b` ````", "a ``` b ````"),
        ("-" * 479 + "!", "-" * 120),
        ("**args and snake_case_names stay", "**args and snake_case_names stay"),
        ('{"type": "plan", "summary": "A garden", "items": ["Dig"]}', "Plan: A garden [ ] Dig"),
        ('{"type": "weather", "summary": "Rain"}', '{"type": "weather", "summary": "Rain"}'),
    ],
)
def test_last_line_of_an_answer_is_plain(markdown: str, line: str) -> None:
    events: list[KnownEvent] = [
        said(1, "question", "?"),
        AnswerStarted(seq=2, turn="t", message="answer"),
        TextFinished(seq=3, turn="t", message="answer", block=0, text=markdown),
    ]
    assert listing_of(fold(State(), events)).last_line == line


def test_last_line_of_a_person_is_as_typed() -> None:
    assert listing_of(fold(State(), [said(1, "m", "run `make`")])).last_line == "run `make`"


# -- runs

CREATED = ConversationCreated(seq=1, conversation="c", project="/p")
STARTED = TurnStarted(
    seq=2,
    ts=20,
    turn="t",
    agent="default",
    backend="scripted",
    parent="above",
    trigger=Trigger(kind="task", exchange="x"),
)


def told(*events: KnownEvent, before: State | None = None) -> list[Run]:
    view = before or fold(State(), [CREATED])
    return runs_of(view, fold(view, events), events)


def test_a_turn_that_starts_is_a_running_run() -> None:
    assert told(STARTED) == [
        Run(
            run="t",
            conversation="c",
            project="/p",
            agent="default",
            backend="scripted",
            parent="above",
            trigger="task",
            exchange="x",
            status="running",
            detail=None,
            started_at=20,
        )
    ]


def test_the_exchange_a_callback_comes_from_is_not_one_it_answers() -> None:
    (run,) = told(TurnStarted(turn="t", agent="a", backend="b", trigger=Trigger(kind="callback", exchange="x")))
    assert run.exchange is None


def test_an_end_carries_when_it_began_and_what_it_cost() -> None:
    before = fold(fold(State(), [CREATED]), [STARTED])
    end = TurnFinished(
        seq=3, ts=50, turn="t", outcome="task", cost_usd=0.25, usage=Usage(input_tokens=7, output_tokens=2)
    )
    (run,) = told(end, before=before)
    assert (run.run, run.conversation, run.project, run.started_at, run.ended_at) == ("t", "c", "/p", 20, 50)
    assert (run.cost_usd, run.input_tokens, run.output_tokens) == (0.25, 7, 2)
    assert (run.trigger, run.exchange, run.status, run.detail) == ("task", "x", "completed", None)


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("completed", "completed"),
        ("task", "completed"),
        ("plan", "completed"),
        ("yielded", "completed"),
        ("limited", "completed"),
        ("failed", "failed"),
        ("interrupted", "cancelled"),
    ],
)
def test_an_outcome_is_one_of_three_ends(outcome: Outcome, status: str) -> None:
    (run,) = told(STARTED, TurnFinished(turn="t", outcome=outcome))
    assert run.status == status


def test_a_failure_says_why() -> None:
    error = WireError(code="provider_refused", message="The key was refused.")
    (run,) = told(STARTED, TurnFinished(turn="t", outcome="failed", error=error))
    assert run.detail == "The key was refused."


@pytest.mark.parametrize(
    ("reason", "detail"),
    [("user", "Stopped by a person."), ("parent", "Stopped with the turn it worked for.")],
)
def test_a_stop_is_a_cancellation_in_words(reason: Stopped, detail: str) -> None:
    (run,) = told(STARTED, TurnInterrupted(turn="t", reason=reason))
    assert (run.status, run.detail, run.parent) == ("cancelled", detail, "above")


def test_the_end_of_one_turn_and_the_start_of_the_next_are_two_runs() -> None:
    before = fold(fold(State(), [CREATED]), [STARTED])
    following = TurnStarted(turn="u", agent="default", backend="scripted", trigger=Trigger())
    found = told(TurnInterrupted(turn="t", reason="user"), following, before=before)
    assert [(run.run, run.status) for run in found] == [("t", "cancelled"), ("u", "running")]


def test_the_end_of_another_turn_and_what_happens_within_one_are_no_runs() -> None:
    before = fold(fold(State(), [CREATED]), [STARTED])
    end = TurnFinished(turn="other", outcome="completed")
    assert told(end, TurnStatus(turn="t", status="thinking"), before=before) == []
