"""Line diffs: the same as difflib's where that is quick, and true diffs in bounded time where it is not."""

import difflib
import random

import pytest

from palaver.core.text.line_diff import LineMatcher, unified_diff


def applied(before: list[str], after: list[str], matcher: LineMatcher) -> list[str]:
    """What the opcodes make of the text before."""
    made: list[str] = []
    for word, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        made += before[old_from:old_to] if word == "equal" else after[new_from:new_to]
    return made


def hostile(lines: int) -> tuple[list[str], list[str]]:
    """Texts that share every other line and whose other lines stand everywhere: difflib starts anew at each of them."""
    before: list[str] = []
    after: list[str] = []
    for at in range(lines // 2):
        before += [f"own {at}\n", f"shared {at % 60}\n"]
        after += [f"own {at}\n", f"shared {(at + 30) % 60}\n"]
    return before, after


@pytest.mark.parametrize("seed", range(30))
def test_unified_diff_of_ordinary_texts_is_that_of_difflib(seed: int) -> None:
    chance = random.Random(seed)
    before = [f"line {chance.randrange(20)}\n" for _ in range(chance.randrange(60))]
    after = list(before)
    for _ in range(chance.randrange(8)):
        at = chance.randrange(len(after) + 1)
        after[at : at + chance.randrange(4)] = [f"new {chance.randrange(5)}\n"] * chance.randrange(3)
    expected = list(difflib.unified_diff(before, after, "a/x", "b/x"))
    assert list(unified_diff(before, after, "a/x", "b/x")) == expected


def test_hostile_texts_are_compared_within_the_budget() -> None:
    before, after = hostile(4_000)
    matcher = LineMatcher(before, after)
    assert applied(before, after, matcher) == after
    assert len(matcher.get_opcodes()) <= 3, "The budget was spent, so the middle is one change."


def test_coarse_answer_keeps_the_ends_that_both_texts_share() -> None:
    before, after = hostile(200)
    before, after = ["top\n", *before, "end\n"], ["top\n", *after, "end\n"]
    matcher = LineMatcher(before, after, comparisons=10)
    words = [word for word, *_ in matcher.get_opcodes()]
    assert words == ["equal", "replace", "equal"]
    assert applied(before, after, matcher) == after


@pytest.mark.parametrize(
    ("before", "after"), [([], []), ([], ["a\n"]), (["a\n"], []), (["a\n"], ["a\n"]), (["a\n", "a\n"], ["a\n"])]
)
def test_coarse_answer_of_short_texts_is_a_true_diff(before: list[str], after: list[str]) -> None:
    assert applied(before, after, LineMatcher(before, after, comparisons=-1)) == after


def test_budget_holds_an_ordinary_change_of_a_long_file() -> None:
    before = [f"    statement {at % 900}\n" if at % 3 else "\n" for at in range(5_000)]
    after = list(before)
    for at in range(0, 5_000, 250):
        after[at] = "changed\n"
    assert LineMatcher(before, after).get_opcodes() == difflib.SequenceMatcher(None, before, after).get_opcodes()
