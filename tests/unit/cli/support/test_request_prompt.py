"""What a person says to a request, as a command."""

from typing import Any

import pytest

from palaver.cli.support.request_prompt import Wish, describe_request, how_to_answer, resolution
from palaver.errors import Invalid
from palaver.schema.commands import Answer
from palaver.schema.view import Offer, Question, QuestionOption, Request


def approval(**fields: Any) -> Request:
    return Request(id="0199-r1", kind="approval", ts=0, tool="shell", input={"command": "make"}, **fields)


def question(*questions: Question) -> Request:
    return Request(id="0199-q1", kind="question", ts=0, questions=questions)


COLOURS = Question(question="Which?", options=(QuestionOption(label="Red"), QuestionOption(label="Green")))
MANY = Question(question="Which ones?", options=COLOURS.options, multi_select=True)


def test_words_become_verdicts() -> None:
    allowed, denied = resolution(approval(), Wish("allow")), resolution(approval(), Wish("deny", note="no", stop=True))
    assert (allowed.verdict, allowed.scope, allowed.then) == ("allow", "once", "continue")
    assert (denied.verdict, denied.text, denied.then) == ("deny", "no", "stop")


def test_always_takes_the_narrowest_scope_that_is_offered_unless_told() -> None:
    lasting = approval(scopes=("once", "agent", "project"), offers=(Offer(label="make"), Offer(label="all")))
    assert resolution(lasting, Wish("always")).scope == "agent"
    told = resolution(lasting, Wish("always", scope="project", offer=1))
    assert (told.scope, told.offer) == ("project", 1)
    with pytest.raises(Invalid, match="only be allowed once"):
        resolution(approval(), Wish("always"))


def test_options_are_chosen_by_number_or_label_of_any_question() -> None:
    assert resolution(question(COLOURS), Wish(options=["2"])).answers == (Answer(selected=("Green",)),)
    assert resolution(question(COLOURS), Wish(options=["green"])).answers == (Answer(selected=("Green",)),)
    both = resolution(question(COLOURS, MANY), Wish(options=["1", "2:red", "2:2"]))
    assert both.answers == (Answer(selected=("Red",)), Answer(question_index=1, selected=("Red", "Green")))


@pytest.mark.parametrize(
    ("request_", "wish", "words"),
    [
        (question(COLOURS), Wish(options=["blue"]), "1\\) Red, 2\\) Green"),
        (question(COLOURS), Wish(options=["1", "2"]), "Only one option"),
        (question(COLOURS), Wish("allow"), "--option 1"),
        (approval(), Wish(options=["1"]), "this is an approval"),
        (approval(), Wish(), "allow\\|deny"),
    ],
)
def test_answer_that_does_not_fit_is_told_what_would(request_: Request, wish: Wish, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        resolution(request_, wish)


def test_question_may_be_answered_in_words_or_left_unanswered() -> None:
    said = resolution(question(COLOURS), Wish(note="Neither."))
    assert (said.answers, said.text) == ((Answer(custom_text="Neither."),), "Neither.")
    assert resolution(question(COLOURS), Wish("deny")).verdict == "deny"


def test_what_will_run_is_shown_to_the_last_character() -> None:
    hostile = approval(preview="rm -rf \x1b[8m/\x1b[0m\u202e safe", title="a\x1b]0;x\x07b")
    text = "\n".join(describe_request(hostile))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "␛[8m/" in text


def test_how_to_answer_names_what_is_possible() -> None:
    assert "allow|deny" in how_to_answer(approval())
    assert "allow|always|deny" in how_to_answer(approval(scopes=("once", "agent")))
    assert "--option 1" in how_to_answer(question(COLOURS))
    assert "--note" in how_to_answer(question(Question(question="Why?")))
