"""The transcript: all rows of a conversation in one widget that draws lines, whatever their number.

Held by the conversation screen, which gives it rows and hears what the reader does. A row is drawn when it comes into sight;
until then its height is an estimate. What the reader looks at never moves because of that, nor because something grows below
or is loaded above. The end is followed until the reader goes away from it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import ClassVar, Literal

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.constants import TEXTUAL_ANIMATIONS
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from palaver.tui.docks.keyline import Key
from palaver.tui.people import People
from palaver.tui.text.docks import Regions
from palaver.tui.theme import Palette, palette_of
from palaver.tui.transcript.line_cache import DrawnRows
from palaver.tui.transcript.pill import pill_of, with_pill
from palaver.tui.transcript.renderer import PULSE
from palaver.tui.transcript.row_heights import belongs
from palaver.tui.transcript.rows import (
    AttemptRow,
    ChangesRow,
    CompressedRow,
    EdgeRow,
    ErrorRow,
    Fold,
    GroupRow,
    NoteRow,
    Row,
    TextRow,
    ThinkingRow,
    ToolRow,
    UserRow,
    WorkRow,
    special_of,
    text_of,
)
from palaver.tui.transcript.search_marks import NOTHING, LookedFor, mark_found, pattern_of
from palaver.tui.transcript.spinner import is_turning, turn_picture
from palaver.tui.transcript.structured_answers import is_openable
from palaver.tui.transcript.work import unfold

Wish = Literal["copy", "whole", "edit"]

OLDER_WITHIN_SCREENS = 2
"""Older messages are asked for before the reader reaches the end of what is at hand."""

PULSE_S = 0.15
"""How long one picture of the turning mark stands."""

_OPENABLE = (
    UserRow,
    ToolRow,
    GroupRow,
    WorkRow,
    ThinkingRow,
    NoteRow,
    AttemptRow,
    CompressedRow,
    ChangesRow,
    ErrorRow,
)
_PASSED_OVER = (EdgeRow,)


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
        Binding("y", "ask('copy')", "copy", show=False),
        Binding("w", "ask('whole')", "all of it", show=False),
        Binding("e", "ask('edit')", "edit and resend", show=False),
    ]

    KEYS: ClassVar = (
        Key("J K", Regions.BLOCK),
        Key("O", Regions.OPEN),
        Key("W", Regions.WHOLE),
        Key("Y", Regions.COPY),
        Key("E", Regions.EDIT, writes=True),
    )

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

    class Wanted(Message):
        """Something is to be done with a row: copied, read in full, edited and sent again."""

        def __init__(self, row: Row, what: Wish) -> None:
            super().__init__()
            self.row = row
            self.what = what

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.following = True
        self.new_count = 0
        self._drawn = DrawnRows()
        self._given: Sequence[Row] = ()
        self._live: frozenset[str] = frozenset()
        self._pulse = 0
        self._people = People()
        self._cursor: str | None = None
        self._is_placing = False
        self._notice = ""
        self._found = NOTHING

    def on_mount(self) -> None:
        self.set_interval(PULSE_S, self._turn_marks)

    # -- what is shown

    @property
    def rows(self) -> Sequence[Row]:
        """Those on the screen or above and below it: an open fold is followed by its members."""
        return self._drawn.rows

    def show(self, rows: Sequence[Row], *, now_ms: int, people: People, is_older: bool = False) -> None:
        """`is_older`: only what stands above was added, so nothing is new below."""
        self._drawn.at(now_ms)
        self._people = people
        anchor = self._anchor()
        is_fresh = self._draw_for_this_screen()
        if rows is self._given and not is_fresh:
            return
        before = len(self.rows)
        self._given = rows
        self._keep_open_what_is_read()
        changed_from = self._unfold()
        fresh = 0 if is_older else max(0, len(self.rows) - before)
        self._settle(anchor, 0 if is_fresh else changed_from)
        if fresh and not self.following:
            self.new_count += fresh
            self.refresh()
            self.post_message(self.Moved(following=False, new_count=self.new_count))

    def _unfold(self) -> int:
        """The first line that may be another one now."""
        return self._drawn.replace(*unfold(self._given, self._drawn.is_open))

    def _keep_open_what_is_read(self) -> None:
        """Work that is over closes only in front of a reader who follows the end and has chosen nothing in it."""
        live = frozenset(row.key for row in self._given if isinstance(row, WorkRow) and row.is_live)
        ended = self._live - live
        self._live = live
        for row in self._given if ended else ():
            if isinstance(row, WorkRow) and row.key in ended and row.key not in self._drawn.closed:
                is_chosen = self._cursor in unfold((row,), lambda _: True)[1]
                if is_chosen or not self.following:
                    self._drawn.opened.add(row.key)

    def open_another(self, notice: str = "") -> None:
        """Forget what belongs to the conversation that was shown; say this until there are rows."""
        self._notice = notice
        self._given, self._live = (), frozenset()
        self._cursor, self.following, self.new_count = None, True, 0
        self._found = NOTHING
        self._drawn.clear()
        self.refresh()

    def say(self, notice: str) -> None:
        """What stands here while there are no rows: a heading, and what is to be known."""
        self._notice = notice
        self.refresh()

    def go_to_end(self) -> None:
        self.following, self.new_count = True, 0
        self._cursor, self._found = None, NOTHING
        self._settle(None)
        self.post_message(self.Moved(following=True, new_count=0))

    def go_to_message(self, message: str, looked_for: str = "") -> bool:
        """Whether it is at hand. What was looked for is marked there, and a row that hides it is opened."""
        self._found = LookedFor(message, pattern_of(looked_for))
        row = self._find(message)
        if row is None:
            self._found = NOTHING
            return False
        if self._found.pattern and isinstance(row, ToolRow | ThinkingRow | NoteRow):
            self._drawn.opened.add(row.key)
            self._drawn.forget_height(self.rows.index(row))
        self.following = False
        self._cursor = row.key
        self._settle((row.key, 0))
        self.post_message(self.Moved(following=False, new_count=self.new_count))
        return True

    def _find(self, message: str) -> Row | None:
        """The row of a message that holds what was looked for, else its first one in sight. Folds around it are opened."""
        rows: Sequence[Row] = [row for row in self.rows if belongs(row, message)]
        while rows:
            # What is in sight comes before what would have to be opened.
            rows = sorted(rows, key=lambda row: isinstance(row, Fold))
            row = next((row for row in rows if self._found.is_in(text_of(row))), rows[0])
            if not isinstance(row, Fold):
                return row
            self._drawn.opened.add(row.key)
            self._drawn.closed.discard(row.key)
            below = row.members if isinstance(row, GroupRow) else row.hidden
            rows = [member for member in below if belongs(member, message)]
            self._unfold()
        return None

    def selected_row(self) -> Row | None:
        place = self._drawn.place_of(self._cursor)
        return None if place is None else self.rows[place]

    # -- where the view stands

    @property
    def _height(self) -> int:
        return self.scrollable_content_region.height or self.size.height

    def _draw_for_this_screen(self) -> bool:
        """Whether everything has to be drawn anew: another width, other colours, other names."""
        width = max(20, self.scrollable_content_region.width or self.size.width)
        palette = palette_of(self.app.theme)
        if self._drawn.suits(width, palette, self._people):
            return False
        self._drawn.draw_for(width, palette, self._people)
        return True

    def _anchor(self) -> tuple[str, int] | None:
        """The row at the top of what is read, and how many of its lines are above; None when the end is followed."""
        if self.following or not self.rows:
            return None
        place = self._drawn.place_at(self.scroll_offset.y)
        return self.rows[place].key, self.scroll_offset.y - self._drawn.tops[place]

    def _settle(self, anchor: tuple[str, int] | None, changed_from: int = 0) -> None:
        """Draws what is in sight and puts the view where the reader is; lines above `changed_from` are as they were."""
        drawn = self._drawn
        if not self.rows or not self.size.height:
            self._put_at(0)
        elif anchor is None:
            drawn.measure_up(len(self.rows) - 1, self._height)
            self._put_at(max(0, self._lines_in_all - self._height), changed_from)
        else:
            key, above = anchor
            place = drawn.place_of(key)
            if place is None:
                place = drawn.place_at(self.scroll_offset.y)
            drawn.measure_up(place, self._height)
            drawn.measure_down(place, 2 * self._height + above)
            self._put_at(drawn.tops[place] + min(above, max(0, drawn.height(place) - 1)), changed_from)

    @property
    def _lines_in_all(self) -> int:
        """And an empty one below the last."""
        return self._drawn.total + 1

    def _put_at(self, y: int, changed_from: int = 0) -> None:
        """The place of the view, once all lines have theirs."""
        before = self.scroll_offset.y
        with self._placing():
            size = Size(self.size.width, self._lines_in_all)
            if size != self.virtual_size:
                # The bar is always there, so nothing else on the screen has to make room.
                self.set_reactive(Widget.virtual_size, size)
                self._scroll_update(size)
            y = max(0, min(y, self.max_scroll_y))
            self.scroll_target_y = y
            self.scroll_y = y
        if y == before and changed_from > y:
            self.refresh(Region(0, changed_from - y, self.size.width, max(0, self._height - changed_from + y)))
        else:
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
        if self._is_placing or not self.rows or round(old_value) == round(new_value):
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
        drawn, height = self._drawn, self._height
        known = drawn.place_at(before)
        first, last = drawn.place_at(max(0, y - height)), drawn.place_at(y + 2 * height)
        fixed = known if first <= known <= last else drawn.place_at(y)
        top = drawn.tops[fixed]
        if drawn.measure(first, last):
            self._put_at(y + drawn.tops[fixed] - top)

    def _on_resize(self, event: events.Resize) -> None:
        anchor = self._anchor()
        self._draw_for_this_screen()
        self._settle(anchor)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.rows and not self._drawn.is_for(palette_of(self.app.theme)):
            anchor = self._anchor()
            self._draw_for_this_screen()
            self._settle(anchor)

    # -- keys

    # A scroll that takes its time would end where it was sent, also when heights above have been put right meanwhile.

    def action_scroll_up(self) -> None:
        self.scroll_to(y=self.scroll_offset.y - 1, animate=False)

    def action_scroll_down(self) -> None:
        self.scroll_to(y=self.scroll_offset.y + 1, animate=False)

    def action_page_up(self) -> None:
        self.scroll_to(y=self.scroll_offset.y - self._height, animate=False)

    def action_page_down(self) -> None:
        self.scroll_to(y=self.scroll_offset.y + self._height, animate=False)

    def action_next_row(self) -> None:
        self._move_cursor(1)

    def action_previous_row(self) -> None:
        self._move_cursor(-1)

    def _move_cursor(self, step: int) -> None:
        if not self.rows:
            return
        drawn, y = self._drawn, self.scroll_offset.y
        at = drawn.place_of(self._cursor)
        if at is None:
            at = drawn.place_at(y + self._height - 1) + 1 if step < 0 else drawn.place_at(y) - 1
        at = max(0, min(len(self.rows) - 1, at + step))
        while isinstance(self.rows[at], _PASSED_OVER) and 0 <= at + step < len(self.rows):
            at += step
        self._cursor = self.rows[at].key
        self._bring_into_sight(at)
        self.refresh()

    def _bring_into_sight(self, place: int) -> None:
        drawn, height = self._drawn, self._height
        drawn.measure_up(place, height)
        drawn.measure_down(place, height)
        self._put_at(self.scroll_offset.y)
        top, bottom, y = drawn.tops[place], drawn.tops[place + 1], self.scroll_offset.y
        if top < y or bottom - top > height:
            self.scroll_to(y=top, animate=False)
        elif bottom > y + height:
            self.scroll_to(y=bottom - height, animate=False)

    def action_toggle_row(self) -> None:
        row = self.selected_row() or self._last_openable()
        if row is not None:
            self.toggle(row.key)

    def toggle(self, key: str) -> None:
        drawn = self._drawn
        place = drawn.place_of(key)
        if place is None or not _is_openable(self.rows[place]):
            return
        self._cursor = key
        row = self.rows[place]
        # The line that was opened stays where it is; what it shows grows below it.
        anchor = self._anchor() or (self.rows[drawn.place_at(self.scroll_offset.y)].key, 0)
        drawn.toggle(row)
        closes_at_end = self.following and not drawn.is_open(row)
        drawn.forget_height(place)
        self._unfold()
        if drawn.place_of(anchor[0]) is None:
            anchor = (key, 0)
        self._settle(None if closes_at_end else anchor)
        self.following = self.scroll_offset.y >= self.max_scroll_y
        self.post_message(self.Moved(following=self.following, new_count=self.new_count))

    def _last_openable(self) -> Row | None:
        last = self._drawn.place_at(self.scroll_offset.y + self._height - 1) if self.rows else -1
        return next((self.rows[at] for at in range(last, -1, -1) if _is_openable(self.rows[at])), None)

    def action_choose(self) -> None:
        row = self.selected_row()
        if row is not None:
            self.post_message(self.Chosen(row))

    def action_ask(self, what: Wish) -> None:
        row = self.selected_row()
        if row is not None:
            self.post_message(self.Wanted(row, what))

    def action_to_end(self) -> None:
        self.go_to_end()

    def action_to_start(self) -> None:
        self._cursor = None
        self.scroll_to(y=0, animate=False)
        self.post_message(self.OlderWanted())

    def on_click(self, event: events.Click) -> None:
        if not self.rows:
            return
        on_pill = event.y == self.size.height - 1 and event.x >= self.size.width - len(pill_of(self.new_count)) - 1
        if not self.following and on_pill:
            self.go_to_end()
        else:
            self.toggle(self.rows[self._drawn.place_at(self.scroll_offset.y + event.y)].key)

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self.refresh()

    # -- lines

    def render_line(self, y: int) -> Strip:
        strip = self._line(y)
        if self.following or y < self.size.height - 1:
            return strip
        # While the reader is further up: what is new below, and the way there.
        width, palette = self.scrollable_content_region.width, palette_of(self.app.theme)
        return with_pill(strip.adjust_cell_length(width, self._drawn.base), self.new_count, palette)

    def _line(self, y: int) -> Strip:
        width, palette, base = self.size.width, palette_of(self.app.theme), self._drawn.base
        if not self.rows:
            return self._notice_line(y, width, palette)
        found = self._drawn.line(self.scroll_offset.y + y)
        if found is None:
            return Strip.blank(width, base)
        row, strip = found
        if self._pulse and is_turning(strip):
            strip = turn_picture(strip, self._pulse)
        if self._found.pattern and belongs(row, self._found.message):
            strip = mark_found(strip, self._found.pattern, Style(color=palette.paper, bgcolor=palette.wait, bold=True))
        if not self.has_focus or row.key != self._cursor:
            return strip
        mark = Segment("▌", base + Style(color=palette.live))
        return Strip([mark, *strip.crop(1)])

    def _turn_marks(self) -> None:
        """The next picture of the marks in sight; nothing is drawn where none is."""
        if not self.rows or TEXTUAL_ANIMATIONS == "none":
            return
        lines = [y for y in range(self.size.height) if self._is_turning(y)]
        if lines:
            self._pulse = (self._pulse + 1) % len(PULSE)
            self.refresh(*(Region(0, y, self.size.width, 1) for y in lines))

    def _is_turning(self, y: int) -> bool:
        found = self._drawn.line(self.scroll_offset.y + y)
        return found is not None and is_turning(found[1])

    def _notice_line(self, y: int, width: int, palette: Palette) -> Strip:
        lines = [part for line in self._notice.split("\n") for part in wrap(line, max(1, width - 4)) or [""]]
        at = y - (self.size.height - len(lines)) // 2
        style = Style(color=palette.ink if at == 0 and len(lines) > 1 else palette.ink_faint, bgcolor=palette.paper)
        said = Segment(lines[at], style) if 0 <= at < len(lines) else Segment("", style)
        left = Segment(" " * ((width - said.cell_length) // 2), style)
        return Strip([left, said]).adjust_cell_length(width, style)


def _is_openable(row: Row) -> bool:
    if isinstance(row, TextRow):
        special = special_of(row.block)
        return bool(row.block.citations) or (special is not None and is_openable(special))
    return isinstance(row, _OPENABLE)
