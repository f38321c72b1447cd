"""Hunks: pieces of a patch, and where they fit in a text.

Used by `patch.py`; read from a patch's text by `patch_text.py`. Pure. The lines a hunk expects are looked for exactly, then
without regard to white space at the ends of lines, then to indentation (added lines are then indented as the file is). A
hunk that fits nowhere, or in several places with nothing to tell them apart, is an error that says what stands there:
better none than the wrong one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from palaver.errors import Conflict, NotFound, TooLarge
from palaver.tools.files.line_index import Alike, Effort, LineIndex

SHOWN_LINES = 12
"""Of what a failed hunk expected, and of what stands there instead."""
PLACES_SHOWN = 5
HUNKS = 10_000
"""In one file: more is a new file, not a change."""
COMPARED_LINES = 20
"""Of a failed hunk, when looking for the place it may have meant."""

Op = Literal[" ", "-", "+"]


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines to keep, take away and add, in order. Lines carry no newline."""

    lines: tuple[tuple[Op, str], ...]
    name: str
    """How an error calls it."""
    anchors: tuple[str, ...] = ()
    """Lines to find first, one behind the other: what follows `@@` where it is no line number."""
    at_line: int | None = None
    """Where a diff says it stands, counted from 1. Nearness to it decides between several places."""
    at_end: bool = False
    """It ends where the file ends."""
    newline_at_end: bool | None = None
    """What the patch says of the file's last newline, if it does."""

    def expected(self) -> list[str]:
        return [text for op, text in self.lines if op != "+"]


@dataclass(slots=True)
class _Text:
    lines: list[str]
    newline_at_end: bool
    windows: bool
    """Lines end in CR LF, and those that are added shall too."""


def apply(text: str, hunks: Sequence[Hunk], path: str, effort: Effort | None = None) -> str:
    """The text with every hunk in its place. Raises NotFound or Conflict for the first that has none.

    `effort` is for all files of a call together; raises TooLarge once it is spent.
    """
    if len(hunks) > HUNKS:
        raise TooLarge(f"The patch of {path} has {len(hunks):,} hunks; {HUNKS:,} are the most. Make several patches.")
    effort = effort or Effort()
    old = _split(text)
    effort.spend(len(old.lines))
    index = LineIndex(old.lines, effort)
    new: list[str] = []
    newline = old.newline_at_end
    done = 0
    shift = 0
    for hunk in hunks:
        place, fitted = _Place(hunk, old.lines, index, path).find(done, shift)
        if hunk.at_line is not None:
            shift = place - _wanted(hunk)
        new += old.lines[done:place]
        done = place
        for op, line in fitted:
            match op:
                case " ":
                    new.append(old.lines[done])
                    done += 1
                case "-":
                    done += 1
                case "+":
                    new.append(f"{line}\r" if old.windows and not line.endswith("\r") else line)
        if done == len(old.lines) and fitted:
            newline = _newline(hunk, newline)
    new += old.lines[done:]
    return "\n".join(new) + ("\n" if new and newline else "")


def _newline(hunk: Hunk, before: bool) -> bool:
    if hunk.newline_at_end is not None:
        return hunk.newline_at_end
    return True if hunk.lines[-1][0] == "+" else before


def _split(text: str) -> _Text:
    if not text:
        return _Text([], newline_at_end=True, windows=False)
    lines = text.split("\n")
    newline = lines[-1] == ""
    if newline:
        lines.pop()
    crlf = sum(line.endswith("\r") for line in lines)
    return _Text(lines, newline, windows=crlf * 2 > len(lines))


# -- finding the place


def _exact(line: str) -> str:
    return line


_ALIKE: tuple[Alike, ...] = (_exact, str.rstrip, str.strip)
"""From strict to lenient: how two lines are compared."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The search for the place of one hunk."""

    hunk: Hunk
    lines: list[str]
    index: LineIndex
    path: str

    def find(self, begin: int, shift: int) -> tuple[int, tuple[tuple[Op, str], ...]]:
        """Where the hunk fits, from `begin` on, and its lines as they fit there."""
        hunk = self.hunk
        start = self._after_anchors(begin)
        expected = hunk.expected()
        if not expected:
            return _place_of_addition(hunk, self.lines, start, shift), hunk.lines
        near = _wanted(hunk) + shift if hunk.at_line is not None else None
        # Several places are only of interest where nothing tells them apart.
        most = 1 if near is not None or hunk.anchors else PLACES_SHOWN
        for alike in _ALIKE:
            # The line an anchor names may be repeated as the hunk's first.
            for first in dict.fromkeys((start, max(begin, start - 1))):
                if found := list(islice(self._fitting(expected, first, alike, near), most)):
                    place = self._choose(found)
                    return place, _indented(hunk, self.lines, place) if alike is str.strip else hunk.lines
        raise NotFound(_fits_nowhere(hunk, expected, self.lines, begin, self.path))

    def _after_anchors(self, begin: int) -> int:
        for anchor in self.hunk.anchors:
            for alike in _ALIKE:
                place = next(self.index.matches([anchor], begin, alike), None)
                if place is not None:
                    begin = place + 1
                    break
            else:
                raise NotFound(
                    f"{self.hunk.name} of {self.path} is to stand behind {anchor!r}, which is not in the file from there on."
                )
        return begin

    def _fitting(self, expected: list[str], first: int, alike: Alike, near: int | None) -> Iterator[int]:
        for place in self.index.matches(expected, first, alike, near):
            if self.hunk.at_end and place + len(expected) != len(self.lines):
                continue
            if alike is str.strip and _indent(expected, self.lines, place) is None:
                continue
            yield place

    def _choose(self, found: list[int]) -> int:
        if len(found) == 1:
            return found[0]
        places = ", ".join(str(place + 1) for place in found)
        raise Conflict(
            f"{self.hunk.name} of {self.path} fits in more than one place (lines {places}). Give more lines of context, or the"
            " line of the enclosing function or class behind @@."
        )


def _place_of_addition(hunk: Hunk, lines: list[str], start: int, shift: int) -> int:
    if hunk.at_line is not None:
        # A hunk that only adds names the line it stands behind.
        return min(max(hunk.at_line + shift, start), len(lines))
    return start if hunk.anchors and not hunk.at_end else len(lines)


def _wanted(hunk: Hunk) -> int:
    at_line = hunk.at_line or 0
    return max(at_line - 1, 0) if hunk.expected() else at_line


# -- indentation


def _indent(expected: list[str], lines: list[str], place: int) -> tuple[str, str] | None:
    """The one beginning the file has where the hunk has another, if it is the same on every line."""
    found: set[tuple[str, str]] = set()
    for line, there in zip(expected, lines[place : place + len(expected)], strict=False):
        if line.strip():
            ours, theirs = _blanks(line), _blanks(there)
            common = 0
            while common < min(len(ours), len(theirs)) and ours[-1 - common] == theirs[-1 - common]:
                common += 1
            found.add((ours[: len(ours) - common], theirs[: len(theirs) - common]))
    return found.pop() if len(found) == 1 else None


def _indented(hunk: Hunk, lines: list[str], place: int) -> tuple[tuple[Op, str], ...]:
    ours, theirs = _indent(hunk.expected(), lines, place) or ("", "")
    return tuple(
        (op, theirs + text[len(ours) :] if op == "+" and text.strip() and text.startswith(ours) else text)
        for op, text in hunk.lines
    )


def _blanks(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


# -- saying what is wrong


def _fits_nowhere(hunk: Hunk, expected: list[str], lines: list[str], begin: int, path: str) -> str:
    said = f"{hunk.name} of {path} does not fit: these lines are not in the file{' from there on' if begin else ''}:\n"
    said += _shown(expected)
    place = _most_alike(expected, lines)
    if place is None:
        return f"{said}\nNothing like them was found. Read the file again and make the patch anew."
    there = lines[place : place + len(expected)]
    return (
        f"{said}\nMost alike is what stands at line {place + 1}:\n{_shown(there)}\nCopy the lines exactly as they are."
    )


def _most_alike(expected: list[str], lines: list[str]) -> int | None:
    wanted = [line.strip() for line in expected[:COMPARED_LINES]]
    there = [line.strip() for line in lines]
    best, most = None, 0
    for place in range(len(there)):
        pairs = zip(wanted, there[place : place + len(wanted)], strict=False)
        same = sum(line == other and bool(line) for line, other in pairs)
        if same > most:
            best, most = place, same
    return best


def _shown(lines: list[str]) -> str:
    left_out = len(lines) - SHOWN_LINES
    return "\n".join(lines[:SHOWN_LINES]) + (f"\n[… {left_out} more lines …]" if left_out > 0 else "")
