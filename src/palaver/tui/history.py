"""The transcript: all rows of a conversation in one widget that draws lines, whatever their number.

Held by the conversation screen, which gives it rows and hears what the reader does. A row is drawn when it comes into sight;
until then its height is an estimate. What the reader looks at never moves because of that, nor because something grows below
or is loaded above. The end is followed until the reader goes away from it.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from palaver.tui import row_words
from palaver.tui.drawing import Drawing, gap_before, heads_answer
from palaver.tui.heights import common, guessed_lines, holds
from palaver.tui.look import People
from palaver.tui.rows import (
    AttemptRow,
    ChangesRow,
    CompressedRow,
    EdgeRow,
    ErrorRow,
    GroupRow,
    NoteRow,
    Row,
    ThinkingRow,
    ToolRow,
    UserRow,
)
from palaver.tui.theme import palette_of

GUTTER = 2
"""Left of every row, for the mark of the chosen one."""
KEPT_DRAWN = 1_500
"""Rows whose lines are remembered: several screens around what was read."""
OLDER_WITHIN_SCREENS = 2
"""Older messages are asked for before the reader reaches the end of what is at hand."""

_OPENABLE = (UserRow, ToolRow, GroupRow, ThinkingRow, NoteRow, AttemptRow, CompressedRow, ChangesRow, ErrorRow)
_PASSED_OVER = (EdgeRow,)


@dataclass(slots=True)
class _Drawn:
    row: Row
    is_open: bool
    heads: bool
    strips: list[Strip]


class Transcript(ScrollView, can_focus=True):
    DEFAULT_CSS = """
    Transcript {
        height: 1fr;
        background: $paper;
        color: $ink;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        overflow-y: scroll;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "next_row", "next block", show=False),
        Binding("k", "previous_row", "previous block", show=False),
        Binding("o", "toggle_row", "open or close", show=False),
        Binding("enter", "choose", "open", show=False),
        Binding("g", "to_end", "end", show=False),
        Binding("G", "to_start", "start", show=False),
        Binding("end", "to_end", "end", show=False),
        Binding("home", "to_start", "start", show=False),
        Binding("y", "copy_row", "copy", show=False),
    ]

    class Moved(Message):
        """The reader went away from the end, came back to it, or something new came below."""

        def __init__(self, *, following: bool, new_count: int) -> None:
            super().__init__()
            self.following = following
            self.new_count = new_count

    class OlderWanted(Message):
        """The reader nears the beginning of what is at hand."""

    class Chosen(Message):
        """Enter on a row: go deeper into what it shows."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    class CopyWanted(Message):
        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.following = True
        self.new_count = 0
        self._rows: Sequence[Row] = ()
        self._now_ms = 0
        self._people = People()
        self._heights: list[int] = []
        self._is_measured: list[bool] = []
        self._tops: list[int] = [0]
        self._drawn: OrderedDict[str, _Drawn] = OrderedDict()
        self._opened: set[str] = set()
        self._cursor: str | None = None
        self._drawing: Drawing | None = None
        self._is_placing = False
        self._notice = ""

    # -- what is shown

    @property
    def rows(self) -> Sequence[Row]:
        return self._rows

    def show(self, rows: Sequence[Row], *, now_ms: int, people: People, is_older: bool = False) -> None:
        """`is_older`: only what stands above was added, so nothing is new below."""
        self._now_ms = now_ms
        if people is not self._people:
            self._people = people
            self._forget_drawn()
        if rows is self._rows:
            return
        anchor = self._anchor()
        fresh = 0 if is_older else max(0, len(rows) - len(self._rows))
        same = common(self._rows, rows)
        self._rows = rows
        del self._heights[same:], self._is_measured[same:]
        self._estimate()
        self._settle(anchor)
        if fresh and not self.following:
            self.new_count += fresh
            self.post_message(self.Moved(following=False, new_count=self.new_count))

    def open_another(self, notice: str = "") -> None:
        """Forget what belongs to the conversation that was shown; say this until there are rows."""
        self._notice = notice
        self._rows, self._cursor, self.following, self.new_count = (), None, True, 0
        self._opened.clear()
        self._heights, self._is_measured, self._tops = [], [], [0]
        self._drawn.clear()
        self._drawing = None
        self.refresh()

    def go_to_end(self) -> None:
        self.following, self.new_count = True, 0
        self._cursor = None
        self._settle(None)
        self.post_message(self.Moved(following=True, new_count=0))

    def go_to_message(self, message: str) -> bool:
        """Whether it is at hand."""
        for row in self._rows:
            if row.key == message or row.key.startswith(f"{message}:") or holds(row, message):
                self.following = False
                self._cursor = row.key
                self._settle((row.key, 0))
                self.post_message(self.Moved(following=False, new_count=self.new_count))
                return True
        return False

    def chosen_row(self) -> Row | None:
        return next((row for row in self._rows if row.key == self._cursor), None)

    # -- heights and places

    @property
    def _width(self) -> int:
        return max(20, self.scrollable_content_region.width or self.size.width - 1)

    def _draws(self) -> Drawing:
        width = self._width - GUTTER - 1
        palette = palette_of(self.app.theme)
        known = self._drawing
        if known is None or known.width != width or known.palette is not palette:
            known = Drawing(width, palette, self._now_ms, self._people)
            self._drawing = known
        known.now_ms = self._now_ms
        return known

    def _forget_drawn(self) -> None:
        self._drawn.clear()
        self._drawing = None
        self._is_measured = [False] * len(self._is_measured)

    def _estimate(self) -> None:
        """For the rows that came: what they were when last drawn, else a guess."""
        column = self._draws().column
        rows = self._rows
        for place in range(len(self._heights), len(rows)):
            row = rows[place]
            previous = rows[place - 1] if place else None
            known = self._drawn.get(row.key)
            gap = gap_before(previous, row)
            heads = heads_answer(previous, row)
            if known is not None and known.row is row and known.heads == heads:
                self._heights.append(gap + len(known.strips))
                self._is_measured.append(True)
            else:
                self._heights.append(gap + heads + guessed_lines(row, column))
                self._is_measured.append(False)
        self._sum_up()

    def _sum_up(self) -> None:
        self._tops = [0, *accumulate(self._heights)]

    def _measure(self, place: int) -> bool:
        """Whether its height turned out to be another."""
        if self._is_measured[place]:
            return False
        height = gap_before(self._rows[place - 1] if place else None, self._rows[place]) + len(self._strips(place))
        changed = height != self._heights[place]
        self._heights[place] = height
        self._is_measured[place] = True
        return changed

    def _strips(self, place: int) -> list[Strip]:
        row = self._rows[place]
        previous = self._rows[place - 1] if place else None
        heads, is_open = heads_answer(previous, row), row.key in self._opened
        known = self._drawn.get(row.key)
        if known is not None and known.row is row and known.heads == heads and known.is_open == is_open:
            self._drawn.move_to_end(row.key)
            return known.strips
        drawing = self._draws()
        base = Style(color=drawing.palette.ink, bgcolor=drawing.palette.paper)
        strips = [
            Strip(Segment.apply_style(line, base)).simplify()
            for line in drawing.draw(row, is_open=is_open, heads=heads)
        ]
        self._drawn[row.key] = _Drawn(row, is_open, heads, strips)
        self._drawn.move_to_end(row.key)
        while len(self._drawn) > KEPT_DRAWN:
            self._drawn.popitem(last=False)
        return strips

    def _anchor(self) -> tuple[str, int] | None:
        """The row at the top of what is read, and how many of its lines are above; None when the end is followed."""
        if self.following or not self._rows:
            return None
        place = self._place_at(self.scroll_offset.y)
        return self._rows[place].key, self.scroll_offset.y - self._tops[place]

    def _place_at(self, y: int) -> int:
        return min(len(self._rows) - 1, max(0, bisect_right(self._tops, y) - 1))

    def _settle(self, anchor: tuple[str, int] | None) -> None:
        """Draws what is in sight and puts the view where the reader is."""
        if not self._rows or not self.size.height:
            self._resize_to(0)
            return
        height = self.scrollable_content_region.height or self.size.height
        if anchor is None:
            self._measure_up_from(len(self._rows) - 1, height)
            self._sum_up()
            self._resize_to(max(0, self._total - height))
            return
        key, above = anchor
        place = next((at for at, row in enumerate(self._rows) if row.key == key), None)
        if place is None:
            place = self._place_at(self.scroll_offset.y)
        self._measure_up_from(place, height)
        self._measure_down_from(place, 2 * height + above)
        self._sum_up()
        self._resize_to(self._tops[place] + min(above, max(0, self._heights[place] - 1)))

    def _measure_up_from(self, place: int, lines: int) -> None:
        while place >= 0 and lines > 0:
            self._measure(place)
            lines -= self._heights[place]
            place -= 1

    def _measure_down_from(self, place: int, lines: int) -> None:
        while place < len(self._rows) and lines > 0:
            self._measure(place)
            lines -= self._heights[place]
            place += 1

    @property
    def _total(self) -> int:
        """All lines, and an empty one below the last."""
        return self._tops[-1] + 1

    def _resize_to(self, y: int) -> None:
        """The place of the view, once all lines have theirs."""
        with self._placing():
            size = Size(self._width, self._total)
            if size != self.virtual_size:
                self.virtual_size = size
            y = max(0, min(y, self.max_scroll_y))
            self.scroll_target_y = y
            self.scroll_y = y
        self.refresh()

    @contextmanager
    def _placing(self) -> Iterator[None]:
        """What moves the view here is not the reader."""
        before, self._is_placing = self._is_placing, True
        try:
            yield
        finally:
            self._is_placing = before

    # -- the reader moves

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._is_placing or not self._rows or round(old_value) == round(new_value):
            return
        self._keep_still(round(old_value), round(new_value))
        was = self.following, self.new_count
        self.following = self.scroll_offset.y >= self.max_scroll_y
        if self.following:
            self.new_count = 0
        if was != (self.following, self.new_count):
            self.post_message(self.Moved(following=self.following, new_count=self.new_count))
        if self.scroll_offset.y < OLDER_WITHIN_SCREENS * self.size.height:
            self.post_message(self.OlderWanted())

    def _keep_still(self, before: int, y: int) -> None:
        """Rows that come into sight get their true height; what was read before moves by what the reader moved."""
        height = self.scrollable_content_region.height or self.size.height
        known = self._place_at(before)
        first = self._place_at(max(0, y - height))
        last = self._place_at(y + 2 * height)
        fixed = known if first <= known <= last else self._place_at(y)
        changed = [self._measure(place) for place in range(first, last + 1)]
        if not any(changed):
            return
        top = self._tops[fixed]
        self._sum_up()
        self._resize_to(y + self._tops[fixed] - top)

    def _on_resize(self, event: events.Resize) -> None:
        anchor = self._anchor()
        width = self._width - GUTTER - 1
        if self._drawing is None or self._drawing.width != width:
            self._forget_drawn()
            self._heights, self._is_measured = [], []
            self._estimate()
        self._settle(anchor)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self._drawing is not None and self._drawing.palette is not palette_of(self.app.theme):
            anchor = self._anchor()
            self._forget_drawn()
            self._settle(anchor)

    # -- keys

    def action_next_row(self) -> None:
        self._move_cursor(1)

    def action_previous_row(self) -> None:
        self._move_cursor(-1)

    def _move_cursor(self, step: int) -> None:
        if not self._rows:
            return
        at = next((place for place, row in enumerate(self._rows) if row.key == self._cursor), None)
        if at is None:
            bottom = self.scroll_offset.y + self.size.height - 1
            at = self._place_at(bottom) + 1 if step < 0 else self._place_at(self.scroll_offset.y) - 1
        at = max(0, min(len(self._rows) - 1, at + step))
        while isinstance(self._rows[at], _PASSED_OVER) and 0 <= at + step < len(self._rows):
            at += step
        self._cursor = self._rows[at].key
        self._bring_into_sight(at)
        self.refresh()

    def _bring_into_sight(self, place: int) -> None:
        self._measure_up_from(place, self.size.height)
        self._measure_down_from(place, self.size.height)
        self._sum_up()
        self._resize_to(self.scroll_offset.y)
        top, bottom, height = self._tops[place], self._tops[place + 1], self.size.height
        y = self.scroll_offset.y
        if top < y or bottom - top > height:
            self.scroll_to(y=top, animate=False)
        elif bottom > y + height:
            self.scroll_to(y=bottom - height, animate=False)

    def action_toggle_row(self) -> None:
        row = self.chosen_row() or self._last_openable()
        if row is not None:
            self.toggle(row.key)

    def toggle(self, key: str) -> None:
        place = next((at for at, row in enumerate(self._rows) if row.key == key), None)
        if place is None or not isinstance(self._rows[place], _OPENABLE):
            return
        self._cursor = key
        self._opened ^= {key}
        # The line that was opened stays where it is; what it shows grows below it.
        anchor = self._anchor() or (self._rows[self._place_at(self.scroll_offset.y)].key, 0)
        was_following = self.following and key not in self._opened
        self._is_measured[place] = False
        self._settle(None if was_following else anchor)
        self.following = self.scroll_offset.y >= self.max_scroll_y
        self.post_message(self.Moved(following=self.following, new_count=self.new_count))

    def _last_openable(self) -> Row | None:
        last = self._place_at(self.scroll_offset.y + self.size.height - 1) if self._rows else -1
        return next((self._rows[at] for at in range(last, -1, -1) if isinstance(self._rows[at], _OPENABLE)), None)

    def action_choose(self) -> None:
        row = self.chosen_row()
        if row is not None:
            self.post_message(self.Chosen(row))

    def action_copy_row(self) -> None:
        row = self.chosen_row()
        if row is not None:
            self.post_message(self.CopyWanted(row))

    def action_to_end(self) -> None:
        self.go_to_end()

    def action_to_start(self) -> None:
        self._cursor = None
        self.scroll_to(y=0, animate=False)
        self.post_message(self.OlderWanted())

    def on_click(self, event: events.Click) -> None:
        if not self._rows:
            return
        pill = len(row_words.new_below(self.new_count)) + 4
        if not self.following and event.y == self.size.height - 1 and event.x >= self.size.width - pill:
            self.go_to_end()
        else:
            self.toggle(self._rows[self._place_at(self.scroll_offset.y + event.y)].key)

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self.refresh()

    # -- lines

    def render_line(self, y: int) -> Strip:
        strip = self._line(y)
        return strip if self.following or y < self.size.height - 1 else self._with_pill(strip)

    def _line(self, y: int) -> Strip:
        width = self.size.width
        palette = palette_of(self.app.theme)
        base = Style(color=palette.ink, bgcolor=palette.paper)
        at = self.scroll_offset.y + y
        if not self._rows and y == self.size.height // 2:
            said = Segment(self._notice.center(width)[:width], base + Style(color=palette.ink_faint))
            return Strip([said]).adjust_cell_length(width, base)
        if not self._rows or at >= self._tops[-1]:
            return Strip.blank(width, base)
        place = self._place_at(at)
        row = self._rows[place]
        number = at - self._tops[place] - gap_before(self._rows[place - 1] if place else None, row)
        strips = self._strips(place)
        if not 0 <= number < len(strips):
            return Strip.blank(width, base)
        is_marked = self.has_focus and row.key == self._cursor
        gutter = Segment("▌ " if is_marked else "  ", base + Style(color=palette.live))
        return Strip([gutter, *strips[number]]).adjust_cell_length(width, base)

    def _with_pill(self, strip: Strip) -> Strip:
        """At the edge of the last line, while the reader is further up: what is new below, and the way there."""
        palette = palette_of(self.app.theme)
        pill = f" ↓ {row_words.new_below(self.new_count)} "
        style = Style(color=palette.paper, bgcolor=palette.live, bold=True)
        if not self.new_count:
            style = Style(color=palette.ink_soft, bgcolor=palette.panel_strong)
        return Strip([*strip.crop(0, self.size.width - len(pill)), Segment(pill, style)])
