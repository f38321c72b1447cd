"""Everything that an approval approves, as lines: nothing left out, padding folded, the same in every client."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.text.approval_text import Reading, Shown, approval_lines, plan_lines
from palaver.core.text.visible import visible
from palaver.schema.view import Plan

GOLDEN: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[3] / "golden" / "texts" / "approvals.json").read_bytes()
)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_lines_are_the_same_in_every_client(case: dict[str, Any]) -> None:
    lines = approval_lines(case["preview"], case["input"])
    assert [[line.kind, list(line.pieces)] for line in lines] == case["lines"]


@pytest.mark.parametrize("case", GOLDEN["plans"], ids=lambda case: case["name"])
def test_plans_are_the_same_in_every_client(case: dict[str, Any]) -> None:
    lines = plan_lines(msgspec.convert(case["plan"], Plan))
    assert [[line.kind, list(line.pieces)] for line in lines] == case["lines"]


def test_nobody_may_allow_before_the_last_row_was_in_sight() -> None:
    for case in GOLDEN["reading"]:
        reading = Reading(case["rows"], case["reached"])
        assert (reading.left, reading.may_allow) == (case["left"], case["may_allow"])


def content(lines: list[Shown]) -> str:
    return "\n".join("".join(line.pieces[::2]) for line in lines)


WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.strip)
PADDING = st.sampled_from(
    [" " * 5000, "\n" * 5000, "\t \n" * 900, "\u200b" * 400, "x" * 900, ": ;\n" * 300, "\u3164\n" * 99]
)


@given(st.lists(WORDS, min_size=1, max_size=5), PADDING)
def test_what_stands_behind_padding_comes_into_view(words: list[str], padding: str) -> None:
    marked = [f"<{number}{visible(word).strip()}>" for number, word in enumerate(words)]
    lines = approval_lines(padding.join(marked), None)
    shown = content(lines)
    assert all(part in shown for word in marked for part in word.split("\n"))
    # A screen, not thousands of rows.
    assert len(lines) <= 4 * len(words) + sum(word.count("\n") for word in marked)
    assert max(len(line.text) for line in lines) < 200 * len(words)


VALUES = st.recursive(
    st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
)


@given(
    st.none() | WORDS, st.dictionaries(st.sampled_from(["command", "cwd", "env", "timeout", "url"]), VALUES, max_size=4)
)
def test_no_argument_is_left_out(preview: str | None, given: dict[str, Any]) -> None:
    shown = content(approval_lines(preview, given))
    for value in given.values():
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        assert visible(text).strip() in shown
