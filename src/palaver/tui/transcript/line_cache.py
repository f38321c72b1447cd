"""The rows of a transcript as lines ready for the screen: drawn when somebody looks, remembered, each with its place.

Held by the transcript. Until a row is drawn its height is a guess; `measure` puts it right. A line that did not change stays
the very same object when its row is drawn again, so that nothing below has to be prepared twice.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from palaver.tui.people import People
from palaver.tui.text.markdown import Line
from palaver.tui.theme import DARK, Palette
from palaver.tui.transcript.canvas import RULE
from palaver.tui.transcript.renderer import Drawing, gap_before, heads_answer
from palaver.tui.transcript.row_heights import common, guess_lines
from palaver.tui.transcript.rows import Row, WorkRow

GUTTER = 2
"""Left of every row, for the mark of the chosen one."""
MARGIN = 1
KEPT = 1_500
"""Rows whose lines are remembered: several screens around what was read."""


@dataclass(slots=True)
class _Drawn:
    row: Row
    is_open: bool
    heads: bool
    is_inner: bool
    lines: list[Line]
    strips: list[Strip]


class DrawnRows:
    def __init__(self) -> None:
        self.rows: Sequence[Row] = ()
        self.inner: frozenset[str] = frozenset()
        """Rows that stand below one that was opened."""
        self.opened: set[str] = set()
        self.closed: set[str] = set()
        """Folds that would be open while their work goes on."""
        self.tops: list[int] = [0]
        self._heights: list[int] = []
        self._is_measured: list[bool] = []
        self._drawn: OrderedDict[str, _Drawn] = OrderedDict()
        self._drawing = Drawing(80, DARK, 0)
        self._room = 0
        self.base = Style.null()
        self._inner_gutter = Segment(RULE)

    # -- what it is drawn for

    def suits(self, width: int, palette: Palette, people: People) -> bool:
        known = self._drawing
        return self._room == width and known.palette is palette and known.people is people

    def is_for(self, palette: Palette) -> bool:
        return self._drawing.palette is palette

    def draw_for(self, width: int, palette: Palette, people: People) -> None:
        """Everything is to be drawn anew; heights are guesses again."""
        self._room = width
        self._drawing = Drawing(max(20, width - GUTTER - MARGIN), palette, self._drawing.now_ms, people)
        self.base = Style(color=palette.ink, bgcolor=palette.paper)
        self._inner_gutter = Segment(RULE, Style(color=palette.line_strong))
        self._drawn.clear()
        self._heights, self._is_measured = [], []
        self._estimate()

    def at(self, now_ms: int) -> None:
        self._drawing.now_ms = now_ms

    def clear(self) -> None:
        self.rows, self.inner = (), frozenset()
        self.opened.clear()
        self.closed.clear()
        self._drawn.clear()
        self._heights, self._is_measured, self.tops = [], [], [0]

    def is_open(self, row: Row) -> bool:
        if row.key in self.opened:
            return True
        return isinstance(row, WorkRow) and row.is_live and row.key not in self.closed

    def toggle(self, row: Row) -> None:
        if self.is_open(row):
            self.opened.discard(row.key)
            self.closed.add(row.key)
        else:
            self.opened.add(row.key)
            self.closed.discard(row.key)

    def replace(self, rows: Sequence[Row], inner: frozenset[str] = frozenset()) -> int:
        """The first line that may be another one now. `inner`: those of them that stand below one that was opened."""
        same = common(self.rows, rows)
        if inner != self.inner:
            same = min(same, _first_of(inner ^ self.inner, rows))
            self.inner = inner
        goes_on = same < len(rows) and same < len(self.rows) and rows[same].key == self.rows[same].key
        before = self._drawn.get(rows[same].key) if goes_on else None
        self.rows = rows
        del self._heights[same:], self._is_measured[same:]
        self._estimate()
        if before is None or same >= len(rows):
            return self.tops[min(same, len(self.tops) - 1)]
        now = self.strips(same)
        unchanged = next(
            (at for at, strip in enumerate(now) if at >= len(before.strips) or strip is not before.strips[at]), 0
        )
        return self.tops[same] + self.gap(same) + unchanged

    # -- heights and places

    @property
    def total(self) -> int:
        return self.tops[-1]

    def height(self, place: int) -> int:
        return self._heights[place]

    def gap(self, place: int) -> int:
        return gap_before(self.rows[place - 1] if place else None, self.rows[place])

    def place_at(self, y: int) -> int:
        """The row that holds this line."""
        return min(len(self.rows) - 1, max(0, bisect_right(self.tops, y) - 1))

    def place_of(self, key: str | None) -> int | None:
        return next((place for place, row in enumerate(self.rows) if row.key == key), None)

    def measure(self, first: int, last: int) -> bool:
        """Whether the height of one of these turned out to be another."""
        changed = [self._measure(place) for place in range(first, last + 1)]
        if any(changed):
            self._sum_up()
        return any(changed)

    def measure_up(self, place: int, lines: int) -> None:
        """From a row upwards, until so many lines are known."""
        while place >= 0 and lines > 0:
            self._measure(place)
            lines -= self._heights[place]
            place -= 1
        self._sum_up()

    def measure_down(self, place: int, lines: int) -> None:
        while place < len(self.rows) and lines > 0:
            self._measure(place)
            lines -= self._heights[place]
            place += 1
        self._sum_up()

    def forget_height(self, place: int) -> None:
        self._is_measured[place] = False

    def _measure(self, place: int) -> bool:
        if self._is_measured[place]:
            return False
        height = self.gap(place) + len(self.strips(place))
        changed = height != self._heights[place]
        self._heights[place] = height
        self._is_measured[place] = True
        return changed

    def _estimate(self) -> None:
        """For the rows that came: what they were when last drawn, else a guess."""
        column, rows = self._drawing.column, self.rows
        previous = rows[len(self._heights) - 1] if self._heights else None
        for place in range(len(self._heights), len(rows)):
            row = rows[place]
            gap, heads = gap_before(previous, row), heads_answer(previous, row)
            known = self._drawn.get(row.key)
            is_known = known is not None and self._suits(known, row, heads)
            lines = len(known.strips) if known is not None and is_known else heads + guess_lines(row, column)
            self._heights.append(gap + lines)
            self._is_measured.append(is_known)
            previous = row
        self._sum_up()

    def _sum_up(self) -> None:
        self.tops = [0, *accumulate(self._heights)]

    # -- lines

    def strips(self, place: int) -> list[Strip]:
        row = self.rows[place]
        heads = heads_answer(self.rows[place - 1] if place else None, row)
        known = self._drawn.get(row.key)
        if known is not None and self._suits(known, row, heads):
            self._drawn.move_to_end(row.key)
            return known.strips
        is_open, is_inner = self.is_open(row), row.key in self.inner
        lines = self._drawing.draw(row, is_open=is_open, heads=heads)
        before = known if known is not None and known.is_inner == is_inner else None
        strips = [
            before.strips[at]
            if before and at < len(before.lines) and before.lines[at] is line
            else self._strip(line, is_inner)
            for at, line in enumerate(lines)
        ]
        self._drawn[row.key] = _Drawn(row, is_open, heads, is_inner, lines, strips)
        self._drawn.move_to_end(row.key)
        while len(self._drawn) > KEPT:
            self._drawn.popitem(last=False)
        return strips

    def _suits(self, known: _Drawn, row: Row, heads: bool) -> bool:
        is_same = known.row is row and known.heads == heads
        return is_same and known.is_open == self.is_open(row) and known.is_inner == (row.key in self.inner)

    def _strip(self, line: Line, is_inner: bool) -> Strip:
        gutter = self._inner_gutter if is_inner else Segment(" " * GUTTER)
        styled = Segment.apply_style([gutter, *line], self.base)
        return Strip(styled).simplify().adjust_cell_length(self._room, self.base)

    def line(self, y: int) -> tuple[Row, Strip] | None:
        """The row at a line, and what stands there; None: nothing."""
        if not self.rows or not 0 <= y < self.total:
            return None
        place = self.place_at(y)
        strips = self.strips(place)
        number = y - self.tops[place] - self.gap(place)
        return (self.rows[place], strips[number]) if 0 <= number < len(strips) else None


def _first_of(keys: frozenset[str], rows: Sequence[Row]) -> int:
    return next((place for place, row in enumerate(rows) if row.key in keys), len(rows))
