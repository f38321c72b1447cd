"""The live turn: text that grows, drawn at the price of its last paragraph, and the beat at which the screen follows it.

Called by the drawing of a text that still streams and by the conversation screen. The rule of the open tail, as on the page: a
top-level block is closed, drawn once and never touched again when complete lines show that a later block has begun; only
what follows is read again. What is drawn here is what `markdown.draw` draws of the whole text, at every moment.
"""

import asyncio
import re
from collections.abc import Callable

from palaver.tui.text import markdown
from palaver.tui.text.markdown import Line
from palaver.tui.theme import Palette

BEAT_S = 0.1
"""Ten times a second is as often as reading gains from, and leaves the machine to the agent."""


_DEFINITION = re.compile(r"^ {0,3}(?:[>*+-] *)*\[[^\]\n]+\]:", re.MULTILINE)
"""A link's address given apart from it: it may change any block, so such a text is always read whole."""


class GrowingText:
    """One text block while it streams."""

    def __init__(self, width: int, palette: Palette) -> None:
        self._width = width
        self._palette = palette
        self._text = ""
        self._closed = 0
        self._lines: list[Line] = []

    def draw(self, text: str) -> list[Line]:
        """All lines of the text so far. A text that is no continuation begins anew."""
        if not text.startswith(self._text):
            self._closed, self._lines = 0, []
        self._text = text
        if _DEFINITION.search(text):
            return markdown.draw(text, self._width, self._palette)
        source = markdown.safe_source(text[self._closed :])
        blocks = markdown.blocks_of(source)
        complete = source.count("\n")
        begun = [block.map[0] for block in blocks if block.map is not None]
        # A block on a line that is not whole yet may still turn out to be part of the one before.
        opened_at = max((line for line in begun if line < complete), default=0)
        if opened_at:
            closing = [block for block in blocks if block.map is not None and block.map[0] < opened_at]
            self._take(markdown.draw_blocks(closing, self._width, self._palette))
            self._closed += _offset_of_line(text[self._closed :], opened_at)
            blocks = [block for block in blocks if block.map is not None and block.map[0] >= opened_at]
        tail = markdown.draw_blocks(blocks, self._width, self._palette)
        return [*self._lines, *([[]] if self._lines and tail else []), *tail]

    def _take(self, lines: list[Line]) -> None:
        self._lines = [*self._lines, *([[]] if self._lines and lines else []), *lines]


def _offset_of_line(text: str, number: int) -> int:
    at = 0
    for _ in range(number):
        at = text.index("\n", at) + 1
    return at


class Beat:
    """Calls back at most once a beat, and always once more after the last news. Owned by a widget that ends it."""

    def __init__(self, flush: Callable[[], None], beat_s: float = BEAT_S) -> None:
        self._flush = flush
        self._beat_s = beat_s
        self._handle: asyncio.TimerHandle | None = None
        self._has_news = False

    def news(self) -> None:
        """The first is shown at once, those that follow within a beat together at its end."""
        if self._handle is not None:
            self._has_news = True
            return
        self._handle = asyncio.get_running_loop().call_later(self._beat_s, self._beat)
        self._flush()

    def _beat(self) -> None:
        self._handle = None
        if self._has_news:
            self._has_news = False
            self.news()

    def end(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._has_news = False
