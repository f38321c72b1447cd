"""The tool `ask_user`: questions as a request, answers as the result, and no answer where there is none."""

import json
from typing import Any

import pytest

from palaver.schema.commands import Answer
from palaver.schema.events import RequestOpened, RequestResolved
from palaver.schema.view import Question, QuestionOption
from palaver.tools.agents.ask_user import AskUser
from palaver.tools.base import ToolResult

ASKED = {
    "questions": [
        {
            "question": "Which store?",
            "header": "Store",
            "options": [{"label": "SQLite", "description": "one file"}, {"label": "PostgreSQL"}],
            "multi_select": True,
        },
        {"question": "Which port?"},
    ]
}


def resolved(**fields: Any) -> RequestResolved:
    return RequestResolved(**{"request": "r1", "status": "answered", **fields})


def test_questions_become_a_request() -> None:
    opened = AskUser().ask(ASKED)
    assert isinstance(opened, RequestOpened)
    assert (opened.kind, opened.title) == ("question", "Which store?")
    options = (QuestionOption(label="SQLite", description="one file"), QuestionOption(label="PostgreSQL"))
    assert opened.questions == (
        Question(question="Which store?", header="Store", options=options, multi_select=True),
        Question(question="Which port?"),
    )


@pytest.mark.parametrize(
    ("questions", "says"),
    [
        ([], "length >= 1"),
        ([{"question": "a"}] * 5, "length <= 4"),
        ([{"question": " "}], "Question 1 or one of its options is blank"),
        ([{"question": "a", "options": [{"label": str(n)} for n in range(7)]}], "length <= 4"),
        ([{"question": "a", "options": [{"label": "x"}, {"label": " x"}]}], "same label"),
        (
            [{"question": "a"}, {"question": "b", "options": [{"label": "x"}]}],
            "Question 2 has one option, which is no choice",
        ),
        ([{"question": "a", "multi_select": True}], "has none"),
        ([{"header": "a"}], "missing required field `question`"),
        ("a", "Expected `array`"),
    ],
)
def test_questions_that_make_no_sense_are_a_result_to_act_on(questions: object, says: str) -> None:
    result = AskUser().ask({"questions": questions})
    assert isinstance(result, ToolResult)
    assert (result.ok, result.error_code) == (False, "invalid")
    assert says in (result.error or "")


def test_answers_are_told_plainly_in_the_order_of_the_questions() -> None:
    answers = (
        Answer(question_index=1, custom_text="8420"),
        Answer(question_index=0, selected=("SQLite", "PostgreSQL"), custom_text="both, later"),
    )
    result = AskUser().answered(ASKED, resolved(answers=answers, text="Take your time"))
    assert result.ok
    assert json.loads(result.output) == {
        "answers": [
            {"question": 1, "chosen": ["SQLite", "PostgreSQL"], "own_words": "both, later"},
            {"question": 2, "own_words": "8420"},
        ],
        "note": "Take your time",
    }


def test_answers_read_from_a_snapshot_are_told_alike() -> None:
    plain = ({"question_index": 1, "selected": ["80"]},)
    result = AskUser().answered(ASKED, resolved(answers=plain))
    assert json.loads(result.output)["answers"][1] == {"question": 2, "chosen": ["80"]}


def test_question_left_out_has_no_answer() -> None:
    result = AskUser().answered(ASKED, resolved(answers=(Answer(question_index=1, selected=("80",)),)))
    assert json.loads(result.output)["answers"][0] == {"question": 1, "unanswered": True}


def test_answer_to_one_option_that_an_earlier_version_put_is_still_told() -> None:
    asked = {"questions": [{"question": "Which store?", "options": [{"label": "SQLite"}]}]}
    result = AskUser().answered(asked, resolved(answers=(Answer(question_index=0, selected=("SQLite",)),)))
    assert (result.ok, result.output) == (True, '{"answers": [{"question": 1, "chosen": ["SQLite"]}]}')


@pytest.mark.parametrize(
    ("end", "code", "says"),
    [
        ({"status": "expired", "verdict": "deny"}, "interaction_timeout", "Nobody answered in time: no answer."),
        ({"status": "cancelled"}, "no_answer", "The questions were withdrawn: no answer."),
        ({"status": "superseded"}, "no_answer", "The questions were withdrawn: no answer."),
        ({"verdict": "deny", "text": "Not now"}, "no_answer", "They said: Not now"),
    ],
)
def test_no_answer_is_said_and_nothing_is_assumed(end: dict[str, Any], code: str, says: str) -> None:
    result = AskUser().answered(ASKED, resolved(**end))
    assert (result.ok, result.error_code, result.output) == (False, code, "")
    assert says in (result.error or "")
    assert "SQLite" not in (result.error or "")
