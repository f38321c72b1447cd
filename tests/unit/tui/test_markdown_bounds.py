"""Markdown that is made to be slow or to hide something: bounded work, counted in steps of the parser, and no word lost."""

import json
from pathlib import Path

import pytest

from palaver.tui.text.markdown import INLINE_STEPS_LIMIT, STEPS_LIMIT, Line, blocks_of, count_steps, draw, safe_source
from palaver.tui.theme import DARK

GIVEN = json.loads((Path(__file__).parents[2] / "golden/texts/hostile_markdown.json").read_text())
SIZE: int = GIVEN["size"]
HOSTILE: dict[str, str] = {
    one["name"]: (one["head"] + one["unit"] * (SIZE // len(one["unit"]) + 1))[:SIZE] for one in GIVEN["hostile"]
}
RATIO = 12
"""To the work of a harmless text of the same size: what people write differs by as much."""


def harmless() -> str:
    unit: str = GIVEN["harmless"]
    return (unit * (SIZE // len(unit) + 1))[:SIZE]


def text_of(lines: list[Line]) -> str:
    return "\n".join("".join(segment.text for segment in line) for line in lines)


def test_harmless_text_of_the_same_size_is_drawn_as_markdown() -> None:
    steps = count_steps(harmless())
    assert steps is not None
    assert "Most tides" in text_of(draw(harmless(), 80, DARK))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_bounded_work(name: str) -> None:
    usual = count_steps(harmless())
    assert usual is not None
    steps = count_steps(safe_source(HOSTILE[name]))
    # None: given up at the limit, which is as bounded.
    assert steps is None or steps <= RATIO * usual
    assert RATIO * usual >= STEPS_LIMIT + INLINE_STEPS_LIMIT


@pytest.mark.parametrize("text", [">" * 60 + " word", "- " * 60 + "word", "1. " * 60 + "word", "> - " * 40 + "word"])
def test_word_that_is_nested_too_deep_is_shown(text: str) -> None:
    assert "word" in text_of(draw(f"Before.\n\n{text}\n\nAfter.", 400, DARK))
    assert "After." in text_of(draw(f"Before.\n\n{text}\n\nAfter.", 400, DARK))


def test_text_beyond_the_bounds_is_shown_whole_as_it_was_written() -> None:
    text = HOSTILE["headings"] + "\nlast words"
    drawn = text_of(draw(text, 80, DARK))
    assert "last words" in drawn
    assert drawn.count("a") >= text.count("a")
    (block,) = blocks_of(text)
    assert block.map == (0, text.count("\n") + 1)
