"""Structured answers are recognised as the golden cases say; everything else stays text."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.core.text.special_blocks import LIMIT_CHARS, AskUserBlock, answer_text, markdown, parse

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "golden" / "texts" / "special-blocks.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_text_is_recognised_as_the_golden_case_says(case: dict[str, Any]) -> None:
    block = parse(case["text"])
    assert json.loads(msgspec.json.encode(block)) == case["block"]
    if "markdown" in case:
        assert block is not None
        assert markdown(block) == case["markdown"]
    if "answer" in case:
        assert isinstance(block, AskUserBlock)
        assert answer_text(block.questions, case["answers"]) == case["answer"]


def test_text_beyond_the_limit_stays_text() -> None:
    body = json.dumps({"type": "plan", "summary": "x" * LIMIT_CHARS})
    assert parse(body) is None


def test_text_that_nests_without_end_stays_text() -> None:
    depth = 100_000
    assert parse('{"type": "plan", "summary": "S", "x": ' + "[" * depth + "]" * depth + "}") is None


def test_text_with_half_a_surrogate_pair_never_raises() -> None:
    assert parse('{"type": "plan", "summary": "\\ud800"}') is None
