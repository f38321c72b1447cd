"""Line diffs in bounded time: `difflib` with a budget, and a coarser answer once it is spent.

Used for previews and records of changes (`tools/proposal.py`) and for the diffs of the terminal UI. Pure. With texts chosen
for it `difflib` takes minutes over a few thousand lines; here it stops after a fixed number of comparisons, and everything
between the first and the last difference counts as taken out and put in. Either answer is a true diff.
"""

from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher

COMPARISONS = 5_000_000
"""About half a second; five thousand lines with twenty changes take a tenth of it."""
CONTEXT_LINES = 3
"""Unchanged lines kept around a change, as every diff tool does."""


class _BudgetSpent(Exception):
    pass


class LineMatcher(SequenceMatcher[str]):
    """`SequenceMatcher` for lines, whose matching blocks are found in bounded time."""

    def __init__(
        self, before: Sequence[str], after: Sequence[str], *, autojunk: bool = True, comparisons: int = COMPARISONS
    ) -> None:
        super().__init__(None, before, after, autojunk)
        self._before, self._after = before, after
        self._comparisons = comparisons
        self._blocks: list[Match] | None = None

    def get_matching_blocks(self) -> list[Match]:
        if self._blocks is None:
            try:
                self._blocks = super().get_matching_blocks()
            except _BudgetSpent:
                self._blocks = _ends_in_common(self._before, self._after)
        return self._blocks

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        # One for each line, and one for each place where that line stands in the other text.
        places: dict[str, list[int]] = self.b2j  # type: ignore[attr-defined]
        self._comparisons -= sum(1 + len(places.get(line, ())) for line in self._before[alo:ahi])
        if self._comparisons < 0:
            raise _BudgetSpent
        return super().find_longest_match(alo, ahi, blo, bhi)


def _ends_in_common(before: Sequence[str], after: Sequence[str]) -> list[Match]:
    """The lines that both begin with and that both end with, and difflib's mark of the end."""
    shorter = min(len(before), len(after))
    head = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    tail = next((at for at in range(shorter - head) if before[-1 - at] != after[-1 - at]), shorter - head)
    blocks = (Match(0, 0, head), Match(len(before) - tail, len(after) - tail, tail))
    return [*(block for block in blocks if block.size), Match(len(before), len(after), 0)]


def unified_diff(before: Sequence[str], after: Sequence[str], source: str, target: str) -> Iterator[str]:
    """As `difflib.unified_diff`: lines with their ends, nothing where nothing differs."""
    for place, group in enumerate(LineMatcher(before, after).get_grouped_opcodes(CONTEXT_LINES)):
        if not place:
            yield f"--- {source}\n"
            yield f"+++ {target}\n"
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
        for word, old_from, old_to, new_from, new_to in group:
            if word == "equal":
                yield from (f" {line}" for line in before[old_from:old_to])
            else:
                yield from (f"-{line}" for line in before[old_from:old_to])
                yield from (f"+{line}" for line in after[new_from:new_to])


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
