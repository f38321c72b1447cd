"""Events told as they come: text in pieces, a structured answer as a whole, what was begun and never ended."""

import json

import pytest

from palaver.cli.support.event_lines import Teller
from palaver.schema.events import TextDelta, TextFinished

PLAN = json.dumps({"type": "plan", "summary": "Tidy up", "items": ["Read"]})


def tell(teller: Teller, text: str, *, size: int = 5, is_over: bool = True) -> None:
    for at in range(0, len(text), size):
        teller.tell(TextDelta(message="m", block=0, text=text[at : at + size]))
    if is_over:
        teller.tell(TextFinished(message="m", block=0, text=text))


def test_text_is_told_piece_by_piece(capsys: pytest.CaptureFixture[str]) -> None:
    tell(Teller(), "Half a sentence", is_over=False)
    assert capsys.readouterr().out == "Half a sentence"


def test_structured_answer_is_held_back_and_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller()
    tell(teller, PLAN, is_over=False)
    assert capsys.readouterr().out == ""
    teller.tell(TextFinished(message="m", block=0, text=PLAN))
    assert capsys.readouterr().out == "**Plan: Tidy up**\n\n- [ ] Read\n"


def test_other_json_comes_out_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    tell(Teller(), '{"wind": 3, "of": [1, 2]}')
    assert capsys.readouterr().out == '{"wind": 3, "of": [1, 2]}\n'


@pytest.mark.parametrize("scrubs", [True, False])
def test_text_of_which_a_compacted_log_has_only_the_first_delta_is_told_whole(
    scrubs: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    teller = Teller(scrubs=scrubs)
    teller.tell(TextDelta(message="m", block=0, text="I "))
    teller.tell(TextFinished(message="m", block=0, text="I begin to"))
    assert capsys.readouterr().out == "I begin to\n"


def test_answer_in_a_pipe_is_exactly_what_was_said(capsys: pytest.CaptureFixture[str]) -> None:
    tell(Teller(scrubs=False), PLAN, is_over=False)
    assert capsys.readouterr().out == PLAN


def test_what_was_held_back_is_not_lost_when_the_answer_never_ends(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller()
    tell(teller, PLAN[:12], is_over=False)
    teller.rest()
    assert capsys.readouterr().out == PLAN[:12] + "\n"
