"""An example stays as small as something written in an afternoon, and is in the documentation."""

from pathlib import Path

import pytest

from tests.examples.running import EXAMPLES

LIMIT_LINES = 200
DOCS = EXAMPLES.parent / "docs" / "examples.md"
ALL = sorted(path for path in EXAMPLES.iterdir() if not path.name.startswith((".", "__")))


def lines_of(example: Path) -> int:
    files = [example] if example.is_file() else [path for path in example.rglob("*") if path.is_file()]
    return sum(len(path.read_text().splitlines()) for path in files)


@pytest.mark.parametrize("example", ALL, ids=lambda path: path.name)
def test_example_has_fewer_than_200_lines_and_is_documented(example: Path) -> None:
    assert lines_of(example) < LIMIT_LINES
    assert f"examples/{example.name}" in DOCS.read_text()
