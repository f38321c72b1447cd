"""Makes the rows of one conversation and remembers them between two looks.

Called by the conversation screen whenever the view changed; says the same as the page's `rowbook.ts`. Messages that did not
change are not looked at again: making goes on from the last place before the first change where nothing was left open, so
a token costs the same in a long conversation as in a short one. Pure but for what it remembers; must never change a state.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from palaver.schema.view import FileChange, Message, State, ToolBlock
from palaver.tui.transcript import message_rows, turn_end_rows
from palaver.tui.transcript.calls import is_exploring
from palaver.tui.transcript.message_rows import Beside, is_steered
from palaver.tui.transcript.row_cache import KeptRows, is_same
from palaver.tui.transcript.rows import (
    ChangesRow,
    CompressedRange,
    CompressedRow,
    DayRow,
    GroupRow,
    NewRow,
    Row,
    SwitchRow,
    ThinkingRow,
    ToolRow,
    ranges_of_compressions,
)
from palaver.tui.transcript.work import WorkFold

SHORTEST_DAY_MS = 22 * 3_600_000
"""Every local day is longer than this; a message this far after midnight needs no calendar."""

Member = ToolRow | ThinkingRow


@dataclass(frozen=True, slots=True)
class _Work:
    """What a turn did to files so far."""

    turn: str | None = None
    seq: int = 0
    ts: int = 0
    changes: tuple[FileChange, ...] = ()


class _Place(NamedTuple):
    """The making of rows, before one of the messages: what is done, and what the next one needs to know."""

    row_count: int
    day_ms: float
    previous: Message | None
    work: _Work
    is_new: bool


class RowBook:
    def __init__(self, day_of: Callable[[int], int], seen_seq: int | None = None) -> None:
        """`day_of` gives a time's midnight; what began after `last_read_seq` is new to the reader, None: nothing is. What comes
        while he looks is not: the first view says how far the conversation was by then."""
        self._day_of = day_of
        self._seen_seq = seen_seq
        self._opened_seq: int | None = None
        self._kept = KeptRows()
        self._work_fold = WorkFold(self._kept)
        self._state: State | None = None
        self._beside = Beside({}, {}, {})
        self._message_of_call: dict[str, int] = {}
        self._made: list[Row] = []
        self._places: list[_Place | None] = []
        # Looking around, until something else comes.
        self._run: list[Member] = []
        self._day_ms: float = 0
        self._previous: Message | None = None
        self._work = _Work()
        self._is_new = False
        self._ranges: list[CompressedRange] = []
        self._last: tuple[Row, ...] = ()

    def rows(self, state: State) -> tuple[Row, ...]:
        """The same tuple when nothing in it changed."""
        if self._opened_seq is None and state.seq:
            self._opened_seq = state.seq
        begin = self._go_back(state)
        self._state = state
        for at in range(begin, len(state.messages)):
            # A run that is open may still grow: only where none is can making begin again.
            self._places.append(None if self._run else self._here())
            self._add(state.messages[at], at)
        flat = (*self._made, *self._close_run(), *self._end(state))
        rows = self._work_fold.fold(flat, state.turn.id if state.turn else None)
        if not is_same(rows, self._last):
            self._last = rows
        return self._last

    # -- where to go on from

    def _here(self) -> _Place:
        return _Place(len(self._made), self._day_ms, self._previous, self._work, self._is_new)

    def _go_back(self, state: State) -> int:
        """Takes back what depends on a change. The message to go on with."""
        known = self._state
        if known is None or known.compressions is not state.compressions:
            self._ranges = ranges_of_compressions(state.compressions)
            at = 0
        elif (known.offset == 0) != (state.offset == 0):
            at = 0
        else:
            at = self._first_change(known, state)
        if known is None or not _beside_is_same(known, state):
            beside = Beside.of(state)
            places = (self._message_of_call.get(call) for call in beside.changed(self._beside))
            at = min([at, *(place for place in places if place is not None)])
            self._beside = beside
        while at > 0 and (at >= len(self._places) or self._places[at] is None):
            at -= 1
        place = self._places[at] if at and at < len(self._places) else None
        # Above the first message at hand there may be more of its day, so only the true beginning gets a divider.
        start = _Place(0, -math.inf if state.offset == 0 else math.inf, None, _Work(), False)
        self._resume(place or start)
        del self._places[at:]
        return at

    def _resume(self, place: _Place) -> None:
        del self._made[place.row_count :]
        self._day_ms, self._previous, self._work = place.day_ms, place.previous, place.work
        self._is_new = place.is_new
        self._run = []

    @staticmethod
    def _first_change(known: State, state: State) -> int:
        for at, (one, other) in enumerate(zip(known.messages, state.messages, strict=False)):
            if one is not other:
                return at
        return min(len(known.messages), len(state.messages))

    # -- one message

    def _add(self, message: Message, at: int) -> None:
        if not message_rows.has_rows(message):
            return
        self._take_up_work(message)
        if self._previous is not None:
            self._end_turn(self._previous, message)
            for row in self._horizons(self._previous.seq, message.seq):
                self._put(row)
        self._divide(message)
        if message.status == "superseded":
            self._put(self._kept.keep(message_rows.attempt_row(message)))
        elif message.role == "assistant":
            self._announce_switch(message)
            for block in message.blocks:
                if isinstance(block, ToolBlock):
                    self._message_of_call[block.call] = at
            for row in message_rows.block_rows(message, self._beside):
                self._put(self._kept.keep(row))
        else:
            self._put(self._kept.keep(self._message_row(message, at)))
        self._previous = message

    def _announce_switch(self, message: Message) -> None:
        if message.switch is not None:
            row = SwitchRow(key=f"switch:{message.id}", seq=message.seq, ts=message.ts, switch=message.switch)
            self._put(self._kept.keep(row))

    def _horizons(self, after: int, up_to: float) -> list[Row]:
        """The ends of what the model is shown less of, between two messages."""
        if not self._ranges:
            return []
        return [
            self._kept.keep(
                CompressedRow(key=f"compressed:{reach.horizon}", seq=reach.horizon, ts=reach.stages[-1].ts, range=reach)
            )
            for reach in self._ranges
            if after < reach.horizon <= up_to
        ]

    def _take_up_work(self, message: Message) -> None:
        # What is told in between belongs to no turn, and ends none.
        turn = message.turn or (self._work.turn if message.role == "event" else None)
        # A copy (a branch, an import) has no turns: there a person's words end what came before.
        if turn != self._work.turn or (turn is None and message.role == "user"):
            for row in self._changes():
                self._put(row)
            self._work = _Work(turn)
        if message.role != "assistant":
            return
        fresh = tuple(change for block in message.blocks if isinstance(block, ToolBlock) for change in block.changes)
        if fresh:
            self._work = _Work(turn, message.seq, message.ts, (*self._work.changes, *fresh))

    def _changes(self) -> list[Row]:
        work = self._work
        if not work.changes:
            return []
        key = f"changes:{work.turn or work.seq}"
        return [self._kept.keep(ChangesRow(key=key, seq=work.seq, ts=work.ts, changes=work.changes))]

    def _put(self, row: Row) -> None:
        """Runs of looking around become one row; any edit, command, text or message of a person ends them."""
        looks = isinstance(row, ToolRow) and is_exploring(row.block.name)
        if looks or (self._run and isinstance(row, ThinkingRow)):
            self._run.append(row)  # type: ignore[arg-type]
            return
        if self._run:
            self._made.extend(self._close_run())
            self._run = []
        self._made.append(row)

    def _divide(self, message: Message) -> None:
        is_new = self._seen_seq is not None and self._seen_seq < message.seq <= (self._opened_seq or 0)
        if is_new and not self._is_new and self._previous is not None:
            self._put(self._kept.keep(NewRow(key="new", seq=message.seq, ts=message.ts)))
        self._is_new = is_new
        if self._day_ms <= message.ts < self._day_ms + SHORTEST_DAY_MS:
            return
        day_ms = self._day_of(message.ts)
        if day_ms != self._day_ms and self._day_ms != math.inf:
            self._put(self._kept.keep(DayRow(key=f"day:{message.id}", seq=message.seq, ts=message.ts, day_ms=day_ms)))
        self._day_ms = day_ms

    def _message_row(self, message: Message, at: int) -> Row:
        if message_rows.is_of_person(message):
            return message_rows.user_row(
                message, is_steered=self._state is not None and is_steered(self._state.messages, at)
            )
        return message_rows.note_row(message, self._agent_of_exchange(message.exchange))

    def _agent_of_exchange(self, exchange: str | None) -> str | None:
        if exchange is None or self._state is None:
            return None
        return next((known.agent for known in self._state.exchanges if known.id == exchange), None)

    # -- groups

    def _close_run(self) -> list[Row]:
        """What the open run would be if it ended here. Thinking after its last call is no part of it."""
        tools = [place for place, row in enumerate(self._run) if isinstance(row, ToolRow)]
        if len(tools) < 2:
            return list(self._run)
        end = tools[-1] + 1
        return [self._group(tuple(self._run[:end])), *self._run[end:]]

    def _group(self, members: tuple[Member, ...]) -> Row:
        first = members[0]
        row = GroupRow(
            key=f"group:{first.key}",
            seq=first.seq,
            ts=first.ts,
            message_id=first.message_id,
            turn=members[-1].turn,
            is_first=first.is_first,
            agent=first.agent,
            model=first.model,
            message_status=members[-1].message_status,
            members=members,
        )
        return self._kept.keep(row)

    # -- how turns ended

    def _end_turn(self, before: Message, after: Message) -> None:
        """Between two messages: whether a turn ended here in a way that should be seen."""
        if before.turn != after.turn and (mark := turn_end_rows.end_of(before, is_last=False)):
            self._put(self._kept.keep(mark))

    def _end(self, state: State) -> list[Row]:
        at_work = state.turn is not None and state.turn.id == self._work.turn
        rows: list[Row] = [] if at_work else self._changes()
        mark = turn_end_rows.end_of(self._previous, is_last=state.turn is None) if self._previous else None
        if mark is None and state.last_turn is not None and not turn_end_rows.left_something(state, state.last_turn.id):
            # A turn that left no message is marked at the end while nothing else is there.
            mark = turn_end_rows.turn_end(state.last_turn, self._previous, is_last=state.turn is None)
        if mark is not None:
            rows.append(self._kept.keep(mark))
        if self._previous is not None:
            rows += self._horizons(self._previous.seq, math.inf)
        return rows


def _beside_is_same(one: State, other: State) -> bool:
    return one.requests is other.requests and one.subagents is other.subagents and one.exchanges is other.exchanges
