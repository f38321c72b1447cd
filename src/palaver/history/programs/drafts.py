"""Drafts of messages while their file is read: a list on disk of which only the last is in memory.

Used by `foreign.py`. A draft may be changed long after it was made, when the result of one of its calls comes; so each keeps
its place in the scratch database until the file is at its end.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from palaver.history.programs.scratch import Scratch
from palaver.schema.base import Usage
from palaver.schema.view import Block, Role


@dataclass(slots=True)
class Draft:
    """A message while its file is still being read."""

    role: Role
    ts: int
    blocks: list[Block] = field(default_factory=list[Block])
    key: str = ""
    model: str | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    interrupted: bool = False
    hidden: bool = False


_decoder = msgspec.json.Decoder(Draft)


class DraftStore:
    """Drafts in their order. A place is never given twice, also when its draft was taken away."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._list = scratch.number()
        self._next = 1
        self._last: tuple[int, Draft] | None = None
        scratch.execute(
            "CREATE TABLE IF NOT EXISTS drafts (list INTEGER, place INTEGER, role TEXT, ts INTEGER, filled INTEGER, "
            "body BLOB, PRIMARY KEY (list, place))"
        )
        scratch.execute(
            "CREATE TABLE IF NOT EXISTS calls (list INTEGER, call TEXT, place INTEGER, block INTEGER, "
            "PRIMARY KEY (list, call)) WITHOUT ROWID"
        )

    @property
    def last(self) -> Draft | None:
        """May be changed as it is; any other is changed by `put`."""
        return self._last[1] if self._last else None

    def append(self, draft: Draft) -> None:
        self._keep_last()
        self._last = (self._next, draft)
        self._next += 1

    def pop(self) -> Draft | None:
        """Takes the last one away."""
        gone = self.last
        if self._last is not None:
            self._scratch.execute("DELETE FROM drafts WHERE list = ? AND place = ?", (self._list, self._last[0]))
            found = self._scratch.execute(
                "SELECT place, body FROM drafts WHERE list = ? ORDER BY place DESC LIMIT 1", (self._list,)
            )
            self._last = (found[0][0], _decoder.decode(found[0][1])) if found else None
        return gone

    def at(self, place: int) -> Draft | None:
        """None: it was taken away."""
        if self._last is not None and self._last[0] == place:
            return self._last[1]
        found = self._scratch.execute("SELECT body FROM drafts WHERE list = ? AND place = ?", (self._list, place))
        return _decoder.decode(found[0][0]) if found else None

    def put(self, place: int, draft: Draft) -> None:
        """A draft that was changed, back in its place."""
        if self._last is None or self._last[0] != place:
            self._store(place, draft)

    def last_answer(self) -> int | None:
        """The place of the latest one by an agent."""
        if self._last is not None and self._last[1].role == "assistant":
            return self._last[0]
        found = self._scratch.execute(
            "SELECT place FROM drafts WHERE list = ? AND role = 'assistant' ORDER BY place DESC LIMIT 1", (self._list,)
        )
        return int(found[0][0]) if found else None

    # -- calls

    def note_call(self, call: str, block: int) -> None:
        """A call is the block of that number in the last draft."""
        place = self._last[0] if self._last else 0
        self._scratch.execute("INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?)", (self._list, call, place, block))

    def call(self, call: str) -> tuple[int, int] | None:
        """Where a call was made: the place of its draft, and the number of its block."""
        found = self._scratch.execute("SELECT place, block FROM calls WHERE list = ? AND call = ?", (self._list, call))
        return found[0] if found else None

    # -- at the end

    def finish(self) -> tuple[int, int, int]:
        """How many say something, and the first and the last of their times. Nothing may be added after."""
        self._keep_last()
        self._last = None
        self._scratch.execute("DELETE FROM calls WHERE list = ?", (self._list,))
        self._scratch.execute("DELETE FROM drafts WHERE list = ? AND NOT filled", (self._list,))
        ((count, began, ended),) = self._scratch.execute(
            "SELECT count(*), min(nullif(ts, 0)), max(ts) FROM drafts WHERE list = ?", (self._list,)
        )
        return count, began or 0, ended or 0

    def walk(self, skip: int = 0) -> Iterator[Draft]:
        """One after another. Nothing is held in between: it may be left at any time, and begun again."""
        place = 0
        while found := self._scratch.execute(
            "SELECT place, body FROM drafts WHERE list = ? AND place > ? ORDER BY place LIMIT 1 OFFSET ?",
            (self._list, place, skip),
        ):
            (place, body), skip = found[0], 0
            yield _decoder.decode(body)

    def _keep_last(self) -> None:
        if self._last is not None:
            self._store(*self._last)

    def _store(self, place: int, draft: Draft) -> None:
        values: tuple[Any, ...] = (place, draft.role, draft.ts, bool(draft.blocks), msgspec.json.encode(draft))
        self._scratch.execute("INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?, ?, ?)", (self._list, *values))
