"""Text of models, tools and other people made harmless for a terminal, with nothing hidden. Pure, and without any library.

Called by whoever writes words that are not our own to a terminal: the command line, and the terminal UI beneath its own
widgets. `visible` is for what a person judges by its looks (a command awaiting approval, a title in a list), `prose` for what
a person reads; `Scrubber` is `prose` for a text that comes in pieces.

What must never happen: a control character other than newline and tab leaves here, or a mark reorders or hides what stands
beside it.
"""

import re
import unicodedata

from palaver.core.text.visible import HIDDEN, sign, visible

__all__ = ["Scrubber", "one_line", "plain_output", "prose", "visible"]

_PROSE = re.compile(f"\r\n|{HIDDEN.pattern}")
# Joiners and emoji selectors belong to scripts and emoji; between plain letters they only hide.
_JOINING = frozenset("\u200c\u200d\ufe0e\ufe0f")
_BRAILLE_BLANK = "\u2800"
"""Part of the spinners and charts that programs draw."""

_CONTROL = re.compile("(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]")

_SPACES = re.compile(r"[^\S\n]+")
"""In a row of a list a space is a space: what it looked like is seen where all of it is shown."""

ONE_LINE_CHARACTERS = 300
"""More than the widest terminal shows in one row."""


def prose(text: str) -> str:
    """As `visible`, but scripts and emoji keep their joiners and spaces, and a line may end as on Windows."""
    return _PROSE.sub(_spell, text)


def plain_output(text: str) -> str:
    """The output of a program: its colours and cursor movements are dropped, everything else hidden is shown."""
    return prose(_CONTROL.sub("", text))


def _spell(found: re.Match[str]) -> str:
    character = found[0]
    if character == "\r\n":
        return "\n"
    if unicodedata.category(character) in ("Zs", "Co") or character == _BRAILLE_BLANK:
        return character
    before = found.string[found.start() - 1 : found.start()]
    joins = character in _JOINING and (
        before > "\x7f" or (character == "\ufe0f" and before != "" and before in "0123456789#*")
    )
    return character if joins and not HIDDEN.fullmatch(before) else sign(character)


class Scrubber:
    """`prose` for a text in pieces: what came out, joined, is `prose` of what went in, joined."""

    def __init__(self) -> None:
        self._before = ""
        self._held = ""

    def feed(self, piece: str) -> str:
        text = self._held + piece
        # Whether a carriage return ends a line is known only with the next character.
        self._held = "\r" if text.endswith("\r") else ""
        return self._scrub(text.removesuffix("\r") if self._held else text)

    def finish(self) -> str:
        rest, self._held = self._held, ""
        return self._scrub(rest)

    def _scrub(self, text: str) -> str:
        if not HIDDEN.search(text):
            self._before = text[-1:] or self._before
            return text
        said = prose(self._before + text)[len(prose(self._before)) :]
        self._before = text[-1]
        return said


def one_line(text: str, limit: int = ONE_LINE_CHARACTERS) -> str:
    """For a row of a list: the first line that says anything, cut."""
    line = next((stripped for one in text.lstrip()[: limit * 20].splitlines() if (stripped := one.strip())), "")
    said = visible(_SPACES.sub(" ", line))
    return said if len(said) <= limit else f"{said[: limit - 1]}…"
