"""What drawing depends on beside the row: the room, the colours, the day, and who is who. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from palaver.schema.base import Origin
from palaver.tui import words
from palaver.tui.markdown import Ink, ink_of
from palaver.tui.safe import visible
from palaver.tui.theme import Palette

COLUMN = 100
"""Longer lines tire the eye; code, diffs and output may be wider than text, never wider than this either."""
LONG_LINES = 16
"""A longer message is a document: it opens on demand."""


@dataclass(frozen=True, slots=True)
class People:
    """Who is who: agents by id, and which user reads here."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    me: str | None = None


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


def face_of(origin: Origin | None) -> str | None:
    """The face a thing came through, in words; None when it is a client like this one."""
    face = origin.face if origin else "native"
    return None if face in ("native", "web", "agents") else words.FACES.get(face, visible(face))
