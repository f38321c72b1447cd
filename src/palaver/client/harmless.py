"""Text of models, tools and other people made harmless for a terminal, with nothing hidden. Pure, and without any library.

Called by whoever writes words that are not our own to a terminal: the command line, and the terminal UI beneath its own
widgets. `visible` is for what a person judges by its looks (a command awaiting approval, a title in a list), `prose` for what
a person reads; `Scrubber` is `prose` for a text that comes in pieces.

What must never happen: a control character other than newline and tab leaves here, or a mark reorders or hides what stands
beside it.
"""

import re

# C0 but tab and newline, DEL, C1; then what reorders, hides or takes no room: soft hyphen, ALM, Hangul fillers, Mongolian
# separator, zero-width marks, embeddings, isolates, invisible operators, line and paragraph separators, BOM, annotation
# marks, variation selectors, marks of shorthand and music, tags; and halves of surrogate pairs, which no terminal can be
# sent.
_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e01ef"
)
_ANY_HIDDEN = re.compile(f"[{_HIDDEN}]")

# Joiners and emoji selectors belong to scripts and emoji; between plain letters they only hide.
_PROSE = re.compile(f"\r\n|(?<=[^\x00-\x7f])[\u200c\u200d\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f|[{_HIDDEN}]")
_JOINING = frozenset("\u200c\u200d\ufe0e\ufe0f")

_CONTROL = re.compile("(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]")

ONE_LINE_CHARACTERS = 300
"""More than the widest terminal shows in one row."""


def _sign(character: str) -> str:
    code = ord(character)
    # Unicode has a picture for each of the old control characters.
    return chr(0x2400 + code) if code < 0x20 else f"⟨{code:04X}⟩"


def visible(text: str) -> str:
    """Every hidden character as a sign: what a person approves is what stands there."""
    return _ANY_HIDDEN.sub(lambda found: _sign(found[0]), text)


def prose(text: str) -> str:
    """As `visible`, but scripts and emoji keep their joiners, and a line may end as on Windows."""
    return _PROSE.sub(_said, text)


def plain_output(text: str) -> str:
    """The output of a program: its colours and cursor movements are dropped, everything else hidden is shown."""
    return prose(_CONTROL.sub("", text))


def _said(found: re.Match[str]) -> str:
    character = found[0]
    if character == "\r\n":
        return "\n"
    before = found.string[found.start() - 1 : found.start()]
    joins = character in _JOINING and (
        before > "\x7f" or (character == "\ufe0f" and before != "" and before in "0123456789#*")
    )
    return character if joins and not _ANY_HIDDEN.fullmatch(before) else _sign(character)


class Scrubber:
    """`prose` for a text in pieces: what came out, joined, is `prose` of what went in, joined."""

    def __init__(self) -> None:
        self._before = ""
        self._held = ""

    def feed(self, piece: str) -> str:
        text = self._held + piece
        # Whether a carriage return ends a line is known only with the next character.
        self._held = "\r" if text.endswith("\r") else ""
        return self._scrubbed(text.removesuffix("\r") if self._held else text)

    def finish(self) -> str:
        rest, self._held = self._held, ""
        return self._scrubbed(rest)

    def _scrubbed(self, text: str) -> str:
        if not _ANY_HIDDEN.search(text):
            self._before = text[-1:] or self._before
            return text
        said = prose(self._before + text)[len(prose(self._before)) :]
        self._before = text[-1]
        return said


def one_line(text: str, limit: int = ONE_LINE_CHARACTERS) -> str:
    """For a row of a list: the first line that says anything, cut."""
    line = next((stripped for one in text[: limit * 20].splitlines() if (stripped := one.strip())), "")
    said = visible(line.replace("\t", " "))
    return said if len(said) <= limit else f"{said[: limit - 1]}…"
