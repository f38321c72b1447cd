"""The map from statements to tests names tests that exist, so that a test cannot leave without its statement noticing."""

import re
from pathlib import Path

FLOWS = Path(__file__).parent
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def test_statements_name_tests_that_exist() -> None:
    named = NAMED.findall((FLOWS / "STATEMENTS.md").read_text())
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (FLOWS.parent / file).exists()
        or not re.search(rf"^(async )?def {test}\(", (FLOWS.parent / file).read_text(), re.MULTILINE)
    ]
    assert missing == []
    assert len(named) > 100


def test_statements_of_every_invariant_of_the_engine_have_a_test() -> None:
    rows = (FLOWS / "STATEMENTS.md").read_text().splitlines()
    shown = {row.split()[1] for row in rows if row.startswith("| I") and NAMED.search(row)}
    assert shown == {f"I{number}" for number in (*range(13, 22), 24, 25)}


def test_every_flow_of_the_engine_shows_a_statement() -> None:
    named = {test for _, test in NAMED.findall((FLOWS / "STATEMENTS.md").read_text())}
    written = {
        test
        for path in FLOWS.glob("test_engine_*.py")
        if path != Path(__file__)
        for test in re.findall(r"^async def (test_\w+)\(", path.read_text(), re.MULTILINE)
    }
    assert written - named == set()
