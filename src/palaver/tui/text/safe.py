"""Text of models, tools and other people made harmless for a terminal, with nothing hidden. Pure.

Called by whoever puts words that are not our own on the screen: rows, docks, screens. Three strengths: `visible` for what a
person judges by its looks (a command awaiting approval), `prose` for what a person reads, `parse_colours` for the output of
terminals, where colours are kept and every other escape is read and never obeyed.

What must never happen: a control character other than newline and tab leaves here, a mark reorders or hides what stands
beside it, markup in the text becomes style. `Scrubber` and `Colours` give the same for a text that comes in pieces.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from textual.content import Content

from palaver.client.safe_text import Scrubber, one_line, prose, visible

__all__ = [
    "Colour",
    "Colours",
    "Pen",
    "Run",
    "Scrubber",
    "apply_codes",
    "colour_content",
    "limit_lines",
    "one_line",
    "parse_colours",
    "prose",
    "show_text",
    "visible",
]

LINE_CHARACTERS = 4_000
"""A longer line is cut in its middle: one line of a minified file would fill hours of scrolling."""


def limit_lines(text: str, limit: int = LINE_CHARACTERS) -> str:
    """No line longer than a person can use; what was left out is counted where it stood."""
    if len(text) <= limit:
        return text
    return "\n".join(_cut(line, limit) for line in text.split("\n"))


def _cut(line: str, limit: int) -> str:
    if len(line) <= limit:
        return line
    half = limit // 2
    return f"{line[:half]} ⟨… {len(line) - 2 * half:,} more characters …⟩ {line[-half:]}"


def show_text(text: str, style: str = "") -> Content:
    """Text for a widget: hidden characters as signs, and brackets are brackets, never markup."""
    return Content.styled(visible(text), style) if style else Content(visible(text))


# -- the output of terminals

Colour = Literal["red", "green", "yellow", "blue", "magenta", "cyan", "grey"]

_NAMED: tuple[Colour | None, ...] = (None, "red", "green", "yellow", "blue", "magenta", "cyan", None)
"""Black and white are the reader's own colour: on one of the two themes they would hide the text."""

_STYLES: dict[Colour, str] = {
    "red": "$bad",
    "green": "$good",
    "yellow": "$wait",
    "blue": "$live",
    "magenta": "$code-word",
    "cyan": "$code-name",
    "grey": "$ink-faint",
}


@dataclass(frozen=True, slots=True)
class Pen:
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    colour: Colour | None = None

    @property
    def style(self) -> str:
        """In Textual's words, from the theme: readable on light and on dark."""
        words = [name for name in ("bold", "dim", "italic", "underline") if getattr(self, name)]
        return " ".join([*words, _STYLES[self.colour]] if self.colour else words)


@dataclass(frozen=True, slots=True)
class Run:
    text: str
    pen: Pen = Pen()


_TOKEN = re.compile(
    "(?P<csi>(?:\x1b\\[|\x9b)(?P<codes>[0-?]{0,64})(?P<between>[ -/]{0,8})(?P<last>[@-~]))"
    "|(?P<string>(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])(?P<body>[^\x07\x1b\x9c\n]{0,4096})(?:\x07|\x1b\\\\|\x9c))"
    "|(?P<other>\x1b(?:[ -/]{1,8}[0-~]|[0-OQ-WYZ\\\\`-~]))"
    "|(?P<line>\n)|(?P<back>\r)|(?P<quiet>[\x00\x07\x08])"
    "|(?P<words>[^\x00\x07\x08\n\r\x1b\x90\x98\x9b\x9d-\x9f]+)"
)
# What may still become one of these when more comes.
_BEGUN = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{0,4096}\x1b?|\x1b[ -/]{0,8}"
)


class Colours:
    """Reads terminal output in any pieces. A carriage return writes its line anew, as a progress bar wants it."""

    def __init__(self) -> None:
        self._lines: list[Run] = []
        self._line: list[Run] = []
        self._pen = Pen()
        self._held = ""
        self._returned = False
        self._scrubber = Scrubber()

    @property
    def runs(self) -> tuple[Run, ...]:
        """What is there so far; a sequence that has only begun is not."""
        return _join_runs([*self._lines, *self._line])

    def feed(self, piece: str) -> None:
        text = self._held + piece
        self._held = ""
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None and _BEGUN.fullmatch(text, at):
                self._held = text[at:]
                return
            if found is None:
                self._write(text[at])
                at += 1
            else:
                self._take(found)
                at = found.end()

    def finish(self) -> tuple[Run, ...]:
        """Nothing more comes: what only began is shown as it stands."""
        rest, self._held = self._held, ""
        if rest:
            self._write(rest)
        return self.runs

    def _take(self, found: re.Match[str]) -> None:
        match found.lastgroup:
            case "words":
                self._write(found[0])
            case "line":
                self._lines += [*self._line, Run("\n", self._pen)]
                self._line, self._returned = [], False
            case "back":
                self._returned = True
            case _ if found["string"] is not None:
                self._write(_describe_sequence(found["string"], found["body"]))
            case _ if found["csi"] is not None and found["last"] == "m" and not found["between"]:
                self._pen = apply_codes(self._pen, found["codes"])
            case _:
                pass

    def _write(self, words: str) -> None:
        if self._returned:
            self._line, self._returned = [], False
        if said := self._scrubber.feed(words):
            self._line.append(Run(said, self._pen))


def parse_colours(text: str) -> tuple[Run, ...]:
    """The output of a terminal as runs of one pen each."""
    reader = Colours()
    reader.feed(text)
    return reader.finish()


def colour_content(text: str) -> Content:
    return Content.assemble(*((run.text, run.pen.style) for run in parse_colours(text)))


def _describe_sequence(introducer: str, body: str) -> str:
    """A string meant for the terminal itself, told instead of obeyed: a link by its address, the rest by its kind."""
    if introducer[:2] != "\x1b]" and introducer[0] != "\x9d":
        return "⟨control string⟩"
    kind, _, rest = body.partition(";")
    if kind != "8":
        return f"⟨OSC {visible(kind[:8])}⟩"
    address = rest.partition(";")[2]
    return f"⟨{visible(address)}⟩" if address else ""


def _join_runs(runs: list[Run]) -> tuple[Run, ...]:
    joined: list[Run] = []
    pieces: list[str] = []
    for run in runs:
        if joined and joined[-1].pen == run.pen:
            pieces.append(run.text)
            continue
        if joined:
            joined[-1] = Run("".join(pieces), joined[-1].pen)
        joined.append(run)
        pieces = [run.text]
    if joined:
        joined[-1] = Run("".join(pieces), joined[-1].pen)
    return tuple(joined)


@lru_cache(maxsize=512)
def apply_codes(pen: Pen, codes: str) -> Pen:
    """The pen after an SGR sequence. Backgrounds, inversion, blinking and hiding are not taken over."""
    if codes[:1] in ("<", "=", ">", "?"):
        return pen
    numbers = [int(code) if code.isdecimal() else 0 for code in re.split("[;:]", codes)]
    at = 0
    while at < len(numbers):
        code = numbers[at]
        if code in (38, 48):
            palette = numbers[at + 2] if numbers[at + 1 : at + 2] == [5] and at + 2 < len(numbers) else None
            at += 2 if numbers[at + 1 : at + 2] == [5] else 4
            if code == 38:
                pen = replace(pen, colour=_colour(palette) if palette is not None else None)
        else:
            pen = _apply_code(pen, code)
        at += 1
    return pen


def _colour(palette: int) -> Colour | None:
    if palette == 8:
        return "grey"
    return _NAMED[palette % 8] if palette < 16 else None


def _apply_code(pen: Pen, code: int) -> Pen:
    match code:
        case 0:
            return Pen()
        case 1:
            return replace(pen, bold=True)
        case 2:
            return replace(pen, dim=True)
        case 3:
            return replace(pen, italic=True)
        case 4:
            return replace(pen, underline=True)
        case 22:
            return replace(pen, bold=False, dim=False)
        case 23:
            return replace(pen, italic=False)
        case 24:
            return replace(pen, underline=False)
        case 39:
            return replace(pen, colour=None)
        case _ if 30 <= code <= 37:
            return replace(pen, colour=_colour(code - 30))
        case _ if 90 <= code <= 97:
            return replace(pen, colour=_colour(code - 82))
        case _:
            return pen
