"""Words that were looked for, marked in a line."""

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from palaver.tui.transcript.search_marks import mark_found, pattern_of

GROUND = Style(bgcolor="yellow")
PAPER = Style(bgcolor="black")


def on_ground(strip: Strip) -> list[str]:
    return [segment.text for segment in strip if segment.style and segment.style.bgcolor == GROUND.bgcolor]


def test_every_word_is_marked_wherever_it_stands_and_nothing_is_lost() -> None:
    wanted = pattern_of("Tide (sea")
    assert wanted is not None
    line = Strip([Segment("日本 ti", PAPER), Segment("de of the (SEA) tide")])
    found = mark_found(line, wanted, GROUND)
    assert found.text == line.text
    assert on_ground(found) == ["ti", "de", "(SEA", "tide"]


def test_line_without_them_stays_the_very_same() -> None:
    wanted = pattern_of("tide")
    assert wanted is not None
    line = Strip([Segment("calm")])
    assert mark_found(line, wanted, GROUND) is line
    assert pattern_of("  ") is None
