"""Each face's map from its contract's statements to tests, held both ways: no test that is missing, none that shows nothing."""

import re
from pathlib import Path

import pytest

FACES = Path(__file__).parent
TESTS = FACES.parent.parent
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")

faces = pytest.mark.parametrize("face", sorted(path.parent.name for path in FACES.glob("*/STATEMENTS.md")))


def written(path: Path) -> set[str]:
    return set(re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE))


@faces
def test_statements_name_tests_that_exist(face: str) -> None:
    named = NAMED.findall((FACES / face / "STATEMENTS.md").read_text())
    missing = [
        f"{file}::{test}" for file, test in named if not (TESTS / file).exists() or test not in written(TESTS / file)
    ]
    assert missing == []
    assert named


@faces
def test_every_flow_of_a_face_shows_a_statement(face: str) -> None:
    named = {test for _, test in NAMED.findall((FACES / face / "STATEMENTS.md").read_text())}
    flows = {test for path in (FACES / face).glob("test_*.py") for test in written(path)}
    assert flows - named == set()


@faces
def test_every_row_names_a_test_or_gives_the_reason(face: str) -> None:
    rows = (FACES / face / "STATEMENTS.md").read_text().splitlines()
    said = [row for row in rows if row.startswith("| ") and not row.startswith(("| statement", "| ---"))]
    assert [row for row in said if not NAMED.search(row) and "deviation:" not in row.lower()] == []
