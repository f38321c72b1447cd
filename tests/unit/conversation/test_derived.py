"""What the log keeps beside the events: the line of the list, and where search says a text stands."""

import pytest

from palaver.conversation.derived import documents_of, listing_of
from palaver.core.evolve import fold
from palaver.schema.content import TextPart
from palaver.schema.events import AnswerStarted, KnownEvent, MessageAdded, MessageEdited, TextFinished
from palaver.schema.view import State


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
        ("**args and snake_case_names stay", "**args and snake_case_names stay"),
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
