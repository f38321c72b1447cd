"""Scrolling part of a card that knows whether its end has been in sight: what a person allows was there to be read.

Mounted by the request cards. Long texts are laid out piece by piece, as the person comes to them. `reading` says how far that
was; whether that suffices is `core/text/approval_text.py`'s to say.
"""

from collections.abc import Iterable, Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.css.query import NoMatches
from textual.errors import NoWidget
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from palaver.core.text.approval_text import Kind, Reading, Shown

PIECE_LINES = 300
"""Laid out within a moment, and more than a few screens."""

_STYLES: dict[Kind, str] = {
    "plain": "bold",
    "add": "$good on $good-soft",
    "cut": "$bad on $bad-soft",
    "same": "$ink-soft",
    "head": "bold $ink-soft",
    "label": "$ink",
    "note": "bold $wait",
    "fold": "$wait",
}
_SIGNS: dict[Kind, str] = {"add": "+ ", "cut": "- ", "same": "  ", "note": "⚠ "}


def line_content(line: Shown) -> Content:
    """What was folded stands in another colour than what will run."""
    style = _STYLES[line.kind]
    pieces = [(piece.expandtabs(4), "$wait" if at % 2 else style) for at, piece in enumerate(line.pieces)]
    return Content.assemble((_SIGNS.get(line.kind, ""), style), *pieces)


class Reader(VerticalScroll, can_focus=False):
    class Moved(Message):
        """More of it has been in sight than before, or less is left."""

    def __init__(self, lines: Sequence[Shown] = (), *, classes: str | None = None, id: str | None = None) -> None:
        super().__init__(classes=classes, id=id)
        self._lines = tuple(lines)
        self._laid_out = min(PIECE_LINES, len(self._lines))
        self._reached = 0
        self._is_read = False

    def compose(self) -> ComposeResult:
        if self._lines:
            yield _piece(self._lines[:PIECE_LINES])

    @property
    def reading(self) -> Reading:
        self._look()
        rows = self._rows
        if rows is None or self._is_read:
            return Reading(rows, rows or 0)
        return Reading(rows + len(self._lines) - self._laid_out, self._reached)

    @property
    def _rows(self) -> int | None:
        """None: not on the screen."""
        return self.virtual_size.height if self._sight_rows else None

    @property
    def _sight_rows(self) -> int:
        """Rows of it that the screen shows, without what is cut off by what it stands in."""
        try:
            return self.screen.find_widget(self).visible_region.height if self.is_attached else 0
        except (NoWidget, NoMatches):
            return 0

    def _look(self) -> None:
        rows = self._rows
        if rows is None:
            return
        self._reached = max(self._reached, round(self.scroll_y) + self._sight_rows)
        self._is_read = self._is_read or (self._laid_out == len(self._lines) and self._reached >= rows)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._look()
        if self._laid_out < len(self._lines) and new_value >= self.max_scroll_y - 1:
            self.call_next(self._lay_out_more)
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        self.post_message(self.Moved())

    async def _lay_out_more(self) -> None:
        start = self._laid_out
        self._laid_out = min(start + PIECE_LINES, len(self._lines))
        await self.mount(_piece(self._lines[start : self._laid_out]))
        self.post_message(self.Moved())


def _piece(lines: Iterable[Shown]) -> Widget:
    return Static(Content("\n").join(line_content(line) for line in lines), classes="exact")
