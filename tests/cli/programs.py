"""Which programs a scenario runs with, and which of that is left to `make test-all`: said here, so that it is seen at a glance.

`make test` runs every scenario with every program, as turns of one conversation that goes on from scenario to scenario. Left
out are each of them once more as the first thing that a newly started program hears, and of the slow programs those
scenarios that need a start of their own and tell little that others do not.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cli.rig import Stand, Subject
from tests.cli.subjects import GEMINI, OPENCODE, SUBJECTS

SLOW = (GEMINI, OPENCODE)
"""A start takes one to three seconds of a core; of the others, half of one."""


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A program for the scenarios of a file. The fixture `at_work` has it ready."""

    subject: Subject
    alone: bool = False
    """Started anew for each, in a home of its own."""
    shared: Stand | None = None
    """Where it is at work, unless alone."""


# Made once: tests with the same one are run together.
_TOGETHER = {subject.name: Setting(subject) for subject in SUBJECTS}
_ALONE = {subject.name: Setting(subject, alone=True) for subject in SUBJECTS}


def _marks(long: bool) -> list[pytest.MarkDecorator]:
    return [pytest.mark.long] if long else []


def each(subjects: Iterable[Subject], long: Collection[Subject] = ()) -> pytest.MarkDecorator:
    """For tests that start their programs themselves."""
    those = [pytest.param(subject, id=subject.name, marks=_marks(subject in long)) for subject in subjects]
    return pytest.mark.parametrize("subject", those)


def _by_themselves(subjects: Iterable[Subject], long: Collection[Subject]) -> list[Any]:
    return [
        pytest.param(_ALONE[subject.name], id=f"{subject.name}-alone", marks=_marks(subject in long))
        for subject in subjects
    ]


def _programs(those: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("program", those, indirect=True, scope="module")


def in_one_conversation(*subjects: Subject) -> pytest.MarkDecorator:
    """One conversation of each program for all such tests of a file; and each test by itself."""
    together = [pytest.param(_TOGETHER[subject.name], id=subject.name) for subject in subjects]
    return _programs([*together, *_by_themselves(subjects, long=subjects)])


def able(scenario: str) -> pytest.MarkDecorator:
    """The programs that can do this; why another cannot is said in its `lacks`, and in the documentation."""
    return in_one_conversation(*(subject for subject in SUBJECTS if scenario not in subject.lacks))


every_program = in_one_conversation(*SUBJECTS)
every_start = _programs(_by_themselves(SUBJECTS, long=SLOW))
"""For what begins a conversation, and so a program, whatever came before."""
