"""The lines of a text by what they say, so that a passage is found without going through all of them.

Made once a file by `hunks.py`. `Effort` is what one call may spend on comparing: a patch of many hunks against a file of many
equal lines would otherwise take hours.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from palaver.errors import TooLarge
from palaver.tools.thread_pool import check_stop

COMPARED_LINES = 5_000_000
"""By one call: a second or two. A patch of thousands of hunks needs some hundred thousand."""
LOOK_AFTER = 10_000
"""Compared lines between two looks whether anybody still waits."""

Alike = Callable[[str], str]


class Effort:
    """What is left of the lines that one call may compare."""

    def __init__(self, lines: int = COMPARED_LINES) -> None:
        self._left = lines
        self._next_look = lines

    def spend(self, lines: int) -> None:
        """Raises TooLarge or Stopped."""
        self._left -= lines
        if self._left < self._next_look:
            check_stop()
            self._next_look = self._left - LOOK_AFTER
        if self._left < 0:
            raise TooLarge(
                "The patch needs too many comparisons: it is large, and its lines occur often in the files. Nothing was changed. "
                "Give more lines of context, or make several smaller patches."
            )


class LineIndex:
    def __init__(self, lines: Sequence[str], effort: Effort) -> None:
        self._lines = lines
        self._effort = effort
        self._places: dict[Alike, dict[str, list[int]]] = {}

    def matches(self, expected: Sequence[str], begin: int, alike: Alike, near: int | None = None) -> Iterator[int]:
        """The places from `begin` on where these lines stand: in their order, or the nearest to a place first."""
        wanted = [alike(line) for line in expected]
        places, offset = self._rarest(wanted, alike)
        first = bisect_left(places, begin + offset)
        ordered = range(first, len(places)) if near is None else _outwards(places, first, near + offset)
        last = len(self._lines) - len(wanted)
        for at in ordered:
            place = places[at] - offset
            self._effort.spend(len(wanted))
            if place <= last and all(alike(self._lines[place + n]) == line for n, line in enumerate(wanted)):
                yield place

    def _rarest(self, wanted: Sequence[str], alike: Alike) -> tuple[Sequence[int], int]:
        """The places of the line that occurs least, and which one it is."""
        known = self._known(alike)
        self._effort.spend(len(wanted))
        offset = min(range(len(wanted)), key=lambda at: len(known.get(wanted[at], ())))
        return known.get(wanted[offset], ()), offset

    def _known(self, alike: Alike) -> dict[str, list[int]]:
        if alike not in self._places:
            self._effort.spend(len(self._lines))
            known: dict[str, list[int]] = {}
            for place, line in enumerate(self._lines):
                known.setdefault(alike(line), []).append(place)
            self._places[alike] = known
        return self._places[alike]


def _outwards(places: Sequence[int], first: int, target: int) -> Iterator[int]:
    """The indexes of ascending numbers from `first` on, those of the numbers nearest to a target first."""
    above = max(bisect_left(places, target), first)
    below = above - 1
    while below >= first or above < len(places):
        is_below = below >= first and (above >= len(places) or target - places[below] <= places[above] - target)
        yield below if is_below else above
        if is_below:
            below -= 1
        else:
            above += 1
