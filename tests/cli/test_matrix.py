"""The page on backends says of the programs what their tests and their capabilities say."""

from dataclasses import replace

import pytest

from tests.cli.matrix import EVERYBODY, PAGE, Scenario, capabilities, scenarios, written
from tests.cli.subjects import SUBJECTS

COLUMNS = ("deltas", "thinking", "steer", "approvals", "resume", "images", "usage")


def test_page_has_the_table_that_the_tests_make() -> None:
    page = PAGE.read_text()
    assert written(page) == page, "run `python -m tests.cli.matrix`"


@pytest.mark.parametrize("backend", sorted(capabilities()))
def test_page_says_of_each_program_backend_what_it_can_do(backend: str) -> None:
    (row,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{backend}` |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")][2:]
    assert cells == ["yes" if getattr(capabilities()[backend], name) else "no" for name in COLUMNS]


def test_every_scenario_is_for_somebody() -> None:
    assert [scenario.title for scenario in scenarios() if not scenario.programs] == []


def test_whatever_a_program_lacks_is_needed_by_a_test() -> None:
    needed = {scenario.needs for scenario in scenarios()}
    assert {lack for subject in SUBJECTS for lack in subject.lacks} <= needed


def test_program_that_cannot_be_steered_lacks_it_and_no_other() -> None:
    lacking = {subject.name for subject in SUBJECTS if "steer" in subject.lacks}
    assert lacking == {subject.name for subject in SUBJECTS if not capabilities()[subject.agent.backend].steer}


def test_cell_of_a_program_that_lacks_something_points_to_the_reason() -> None:
    notes = ["another reason"]
    lacking = replace(SUBJECTS[0], lacks={"cut": "a reason"})
    assert Scenario("x", EVERYBODY, "cut").cell(lacking, notes) == "no (2)"
    assert Scenario("x", EVERYBODY, "cut").cell(replace(lacking, lacks={}), notes) == "yes"
    assert Scenario("x", frozenset()).cell(lacking, notes) == ""
    assert notes == ["another reason", "a reason"]
