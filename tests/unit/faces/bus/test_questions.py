"""Permissions as questions, and what an answer to one comes to."""

import pytest

from palaver.faces.bus.questions import answer_to, question_of
from palaver.schema.commands import Answer
from palaver.schema.view import Offer, Question, QuestionOption, Request

OFFERS = (Offer(label="exactly this", match="x"), Offer(label="every call of write"))
LASTING = Request(
    id="q", kind="approval", ts=0, tool="write", scopes=("once", "conversation", "agent", "project"), offers=OFFERS
)
ONCE = Request(id="q", kind="approval", ts=0, tool="shell", scopes=("once",))


@pytest.mark.parametrize(
    ("request_", "label", "verdict", "scope", "offer"),
    [
        (LASTING, "Allow once", "allow", "once", 0),
        (LASTING, " allow ONCE ", "allow", "once", 0),
        (LASTING, "Allow for this session", "allow", "conversation", 1),
        (LASTING, "Always allow", "allow", "agent", 1),
        (LASTING, "Deny", "deny", "once", 0),
        (LASTING, "Sure", "deny", "once", 0),
        (LASTING, "", "deny", "once", 0),
        # What can only be allowed call by call is never allowed for longer.
        (ONCE, "Allow for this session", "allow", "once", 0),
        (ONCE, "Always allow", "allow", "once", 0),
    ],
)
def test_answer_to_a_permission_comes_to(request_: Request, label: str, verdict: str, scope: str, offer: int) -> None:
    answer = answer_to(request_, [Answer(selected=(label,))])
    assert (answer.verdict, answer.scope, answer.offer, answer.then) == (verdict, scope, offer, "continue")


@pytest.mark.parametrize(
    "answers",
    [
        [],
        [Answer()],
        [Answer(selected=("Allow once", "Deny"))],
        [Answer(selected=("Allow once",)), Answer(question_index=1, selected=("Deny",))],
        [Answer(question_index=1, selected=("Allow once",))],
        [Answer(custom_text="Allow once")],
    ],
)
def test_answer_that_is_not_exactly_one_option_denies(answers: list[Answer]) -> None:
    assert answer_to(LASTING, answers).verdict == "deny"


def test_options_say_what_they_cover_and_that_some_cannot_last() -> None:
    (lasting,), (once,) = question_of(LASTING)["questions"], question_of(ONCE)["questions"]
    labels = ["Allow once", "Allow for this session", "Always allow", "Deny"]
    assert [option["label"] for option in lasting["options"]] == labels
    assert [option["label"] for option in once["options"]] == labels
    assert "every call of write" in lasting["options"][2]["description"]
    assert "asked again" in once["options"][2]["description"]


def test_question_is_asked_as_it_is_and_leaves_out_what_is_absent() -> None:
    option = QuestionOption(label="A", preview="a")
    request = Request(id="q", kind="question", ts=0, questions=(Question(question="Which?", options=(option,)),))
    assert question_of(request) == {
        "question_id": "q",
        "questions": [
            {"question": "Which?", "header": "", "options": [{"label": "A", "preview": "a"}], "multi_select": False}
        ],
    }
    answer = answer_to(request, [Answer(selected=("A",))])
    assert (answer.verdict, answer.answers) == (None, (Answer(selected=("A",)),))
