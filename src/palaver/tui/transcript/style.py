"""What drawing depends on beside the row: the room, the colours, the day, and who is who. Pure data."""

from dataclasses import dataclass, field

from palaver.tui.people import People
from palaver.tui.text import words
from palaver.tui.text.markdown import Ink, ink_of
from palaver.tui.text.safe import visible
from palaver.tui.theme import Palette

COLUMN = 100
"""Longer lines tire the eye; code, diffs and output may be wider than text, never wider than this either."""
LONG_LINES = 16
"""A longer message is a document: it opens on demand."""


@dataclass(slots=True)
class Look:
    width: int
    palette: Palette
    now_ms: int
    people: People = field(default_factory=People)

    @property
    def column(self) -> int:
        return min(COLUMN, self.width)

    @property
    def ink(self) -> Ink:
        return ink_of(self.palette)

    def name_of(self, agent: str | None) -> str:
        return visible(self.people.names.get(agent or "", agent or "")) or words.NAME
