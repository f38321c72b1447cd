"""Animated marks of rows that are under way: which lines have one, and a line with another picture of it. Pure.

Lines are drawn once and kept; only the mark at their beginning is replaced when they go to the screen.
"""

from rich.segment import Segment
from textual.strip import Strip

from palaver.tui.transcript.renderer import PULSE

_FIRST = PULSE[0]


def is_turning(strip: Strip) -> bool:
    """The mark is what comes first after the gutter."""
    parts = iter(strip)
    next(parts, None)
    part = next(parts, None)
    return part is not None and part.text.startswith(_FIRST)


def turn_picture(strip: Strip, picture: int) -> Strip:
    gutter, mark, *rest = strip
    return Strip([gutter, Segment(PULSE[picture] + mark.text[1:], mark.style), *rest], strip.cell_length)
