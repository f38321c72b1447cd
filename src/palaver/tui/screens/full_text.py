"""A long text in full, on a screen of its own: an output that a row shows in part, a message of which the beginning is at hand.

What is kept beside the events is read from the server. It is text of models and programs: made harmless before it is shown.
"""

from typing import ClassVar

from rich.cells import chop_cells
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Log

from palaver.client.client import Client
from palaver.client.safe_text import plain_output
from palaver.tui.docks.keyline import Key
from palaver.tui.intents import Copy
from palaver.tui.screens.frame import Sheet
from palaver.tui.text import words
from palaver.tui.text.screens import WholeText
from palaver.tui.transcript.full_text import Whole

SHOWN_CHARACTERS = 4 * 1024 * 1024
"""More than anybody reads on a screen; what follows is counted."""
COPIED_CHARACTERS = 1024 * 1024
"""A terminal that is handed more for its clipboard may choke on it."""


class WholeScreen(Sheet):
    DEFAULT_CSS = """
    WholeScreen Log { height: 1fr; background: $paper; color: $ink; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g,end", "to_end", show=False),
        Binding("G,home", "to_start", show=False),
        Binding("y", "copy", show=False),
    ]

    def __init__(self, client: Client, whole: Whole) -> None:
        super().__init__()
        self._client = client
        self._whole = whole
        self._text = ""

    def compose_body(self) -> ComposeResult:
        yield Log(highlight=False, auto_scroll=False)

    def on_mount(self) -> None:
        self.query_one(Log).focus()
        self.title_is(self._whole.title)
        if self._whole.blob is None:
            self._show(self._whole.text)
        else:
            self.say(WholeText.LOADING)
            self.read(self._load)

    async def _load(self) -> None:
        blob = self._whole.blob
        assert blob is not None
        held = await self._client.blob(blob.id)
        self._show(held.decode(errors="replace"))

    def _show(self, text: str) -> None:
        left = len(text) - SHOWN_CHARACTERS
        self._text = text[:SHOWN_CHARACTERS]
        self._draw()
        self.say(WholeText.cut(words.size(SHOWN_CHARACTERS), words.size(len(text))) if left > 0 else "")
        size = words.size(len(text.encode(errors="replace")))
        self.title_is(
            words.join(self._whole.title, words.count(self._text.removesuffix("\n").count("\n") + 1, "line"), size)
        )

    def _draw(self) -> None:
        shown = self.query_one(Log)
        at = shown.scroll_offset.y
        shown.clear()
        width = max(20, shown.scrollable_content_region.width or self.size.width - 3)
        lines = plain_output(self._text).expandtabs(8).removesuffix("\n").split("\n")
        shown.write_lines([part for line in lines for part in chop_cells(line, width) or [""]], scroll_end=False)
        shown.scroll_to(y=at, animate=False)

    def on_resize(self, event: events.Resize) -> None:
        if self._text:
            self.call_after_refresh(self._draw)

    def keys(self) -> list[Key]:
        return [
            Key("PgUp PgDn", WholeText.SCROLL),
            Key("G", WholeText.END, self.action_to_end),
            Key("Y", WholeText.COPY, self.action_copy),
        ]

    def action_to_end(self) -> None:
        self.query_one(Log).scroll_end(animate=False)

    def action_to_start(self) -> None:
        self.query_one(Log).scroll_home(animate=False)

    def action_copy(self) -> None:
        if len(self._text) > COPIED_CHARACTERS:
            self.say(WholeText.TOO_MUCH, is_bad=True)
        elif self._text:
            self.post_message(Copy(self._text))
