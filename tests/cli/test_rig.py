"""What the suite itself promises: a program that is missing is said, and in CI is a failure."""

from dataclasses import replace

import pytest

from palaver.context.handover import OPENING
from palaver.context.quotes import EARLIER_PERSON, Part
from tests.cli.rig import Subject, needed, remembered
from tests.cli.subjects import SUBJECTS
from tests.provider.quotes import QUOTING

every_program = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)


@every_program
def test_missing_program_is_left_out_with_the_reason(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="install it so"):
        needed(replace(subject, missing=lambda: "install it so"))


@every_program
def test_missing_program_is_a_failure_in_ci(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="install it so"):
        needed(replace(subject, missing=lambda: "install it so"))


def test_words_of_a_record_are_not_taken_for_memory() -> None:
    quote = QUOTING.quote(Part(EARLIER_PERSON, "the neap tide"))
    record = f"{OPENING}\n\n{quote}"
    assert remembered("neap tide", "the neap tide, and now this")
    assert not remembered("neap tide", f"{record}\n\nand now this")
    assert not remembered("neap tide", f"the neap tide\n\n{record}")
    assert not remembered("neap tide", "and now this")
