"""Collapsible work of a turn: a summary row hides its tool calls, thinking and interim text; the final text stays below it.

Called by the row book with the flat rows of a conversation, and by the transcript, which shows what an open row hides. The
same rule as the page's (`web/src/model/turnwork.ts`): what must be seen is never hidden, which is a call that did not end
well or did not end yet, a question, a plan, another agent, the summary of a finished task, a structured answer. A turn
without a call has no summary. Pure but for what it remembers: only the turns from the first change on are folded again.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from palaver.schema.view import ToolBlock
from palaver.tui.transcript.calls import ToolKind, kind_of
from palaver.tui.transcript.row_cache import KeptRows
from palaver.tui.transcript.row_heights import common
from palaver.tui.transcript.rows import (
    Fold,
    GroupRow,
    Row,
    TextRow,
    ThinkingRow,
    ToolRow,
    UserRow,
    WorkRow,
    special_of,
)

Foldable = TextRow | ThinkingRow | ToolRow | GroupRow

_STANDS_OUT: Final[frozenset[ToolKind]] = frozenset({"ask", "task", "message", "finish"})


class WorkFold:
    def __init__(self, kept: KeptRows) -> None:
        self._kept = kept
        self._flat: tuple[Row, ...] = ()
        self._live_turn: str | None = None
        self._made: list[Row] = []
        # Where each turn begins: among the flat rows, and among those that were made.
        self._begins: list[int] = []
        self._counts: list[int] = []

    def fold(self, rows: tuple[Row, ...], live_turn: str | None) -> tuple[Row, ...]:
        """All rows as they stand while every summary is closed. `live_turn` is the one that runs."""
        at = self._go_back(common(self._flat, rows) if live_turn == self._live_turn else 0)
        self._flat, self._live_turn = rows, live_turn
        while at < len(rows):
            self._begins.append(at)
            self._counts.append(len(self._made))
            end = _end_of_turn(rows, at)
            self._made += self._fold(rows[at:end])
            at = end
        return tuple(self._made)

    def _go_back(self, same: int) -> int:
        """The flat row to go on with: what is new may belong to the turn before the first change."""
        place = bisect_left(self._begins, same) - 1 if same else 0
        at, count = (self._begins[place], self._counts[place]) if same else (0, 0)
        del self._made[count:], self._begins[place:], self._counts[place:]
        return at

    def _fold(self, rows: tuple[Row, ...]) -> Sequence[Row]:
        places = [at for at, row in enumerate(rows) if isinstance(row, Foldable)]
        calls = tuple(call for at in places for call in _calls_in(rows[at]))
        if not calls:
            return rows
        hidden = _hide(rows, places, calls)
        last = max((at for at in places if rows[at].key in hidden), default=-1)
        work = self._work(rows, places[0], last + 1, hidden, calls)
        return [*rows[: places[0]], work, *(row for row in rows[places[0] :] if row.key not in hidden)]

    def _work(
        self, rows: tuple[Row, ...], begin: int, end: int, hidden: set[str], calls: tuple[ToolBlock, ...]
    ) -> WorkRow:
        first = rows[begin]
        assert isinstance(first, Foldable)
        is_live = first.turn is not None and first.turn == self._live_turn
        over_ms = max(call.finished_at or 0 for call in calls)
        row = WorkRow(
            key=f"work:{first.turn or first.key}",
            seq=first.seq,
            ts=first.ts,
            message_id=first.message_id,
            turn=first.turn,
            is_first=first.is_first,
            agent=first.agent,
            model=first.model,
            message_status=first.message_status,
            calls=calls,
            members=rows[begin:end],
            hidden=tuple(row for row in rows[begin:end] if row.key in hidden),
            is_live=is_live,
            duration_ms=None if is_live or not over_ms else over_ms - first.ts,
        )
        return self._kept.keep(row)


def unfold(rows: Sequence[Row], is_open: Callable[[Fold], bool]) -> tuple[Sequence[Row], frozenset[str]]:
    """The rows with what every open one hides, and the keys of those that belong to one that was opened.

    The very same sequence when none is open.
    """
    if not any(isinstance(row, Fold) and is_open(row) for row in rows):
        return rows, frozenset()
    shown: list[Row] = []
    inner: set[str] = set()
    placed: set[str] = set()
    for row in rows:
        if row.key in placed:
            continue
        shown += _with_members(row, is_open)
        if isinstance(row, Fold) and is_open(row):
            below = [member.key for member in _with_members(row, is_open) if not isinstance(member, UserRow)]
            placed.update(member.key for member in row.members)
            # Work that goes on is not marked off: what it will have been is not known yet.
            inner.update([] if isinstance(row, WorkRow) and row.is_live else below[1:])
    return tuple(shown), frozenset(inner)


def _with_members(row: Row, is_open: Callable[[Fold], bool]) -> Iterator[Row]:
    yield row
    if isinstance(row, Fold) and is_open(row):
        for member in row.members:
            yield from _with_members(member, is_open)


def _end_of_turn(rows: Sequence[Row], at: int) -> int:
    """Where the next turn begins. What is said in between by a person or nobody in particular ends none."""
    turn: str | None = None
    is_known = False
    for end in range(at, len(rows)):
        row = rows[end]
        # A copy has no turns: there a person's words end what came before.
        if isinstance(row, UserRow) and end > at and turn is None:
            return end
        if isinstance(row, Foldable):
            if is_known and row.turn != turn:
                return end
            turn, is_known = row.turn, True
    return len(rows)


def _hide(rows: Sequence[Row], places: Sequence[int], calls: Sequence[ToolBlock]) -> set[str]:
    last_plan = next((call for call in reversed(calls) if kind_of(call.name) == "plan"), None)
    last_call = max(at for at in places if isinstance(rows[at], ToolRow | GroupRow))
    last_text = max((at for at in places if isinstance(rows[at], TextRow)), default=-1)
    # The final text: what was said after the last call, else what was said last.
    answer = last_call + 1 if last_text > last_call else last_text
    return {
        rows[at].key
        for at in places
        if not (isinstance(rows[at], TextRow) and at >= answer) and not _stands_out(rows[at], last_plan)
    }


def _stands_out(row: Row, last_plan: ToolBlock | None) -> bool:
    if isinstance(row, TextRow):
        return special_of(row.block) is not None
    return any(call is last_plan or call.status != "ok" or kind_of(call.name) in _STANDS_OUT for call in _calls_in(row))


def _calls_in(row: Row) -> list[ToolBlock]:
    match row:
        case ToolRow():
            return [row.block]
        case GroupRow():
            return [tool.block for tool in row.tools]
        case _:
            return []
