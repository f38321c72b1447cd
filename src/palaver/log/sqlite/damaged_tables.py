"""Walk through a SQLite table around its damaged pages: the rows that can be read, and the ranges of keys that cannot.

Used by `repair.py` and by the store-wide reading of events. Finds the end of a damage by asking: a look-up of a key on a
damaged page fails, one behind it does not. Of two damages close to each other, what lies between may be taken for damaged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apsw

_LAST_KEY = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Gap:
    """Keys of rows that cannot be read."""

    first: int
    end: int | None
    """The first key that can be looked up again; None: the table's end is damaged."""

    def holds(self, key: int) -> bool:
        return self.first <= key and (self.end is None or key < self.end)


def walk(
    connection: apsw.Connection, sql: str, after: int, gaps: list[Gap] | None = None, *, key: int = 0
) -> Iterator[tuple[Any, ...]]:
    """The readable rows behind a key. `sql` asks for them in order, with that key to be bound; `key` is its column."""
    while True:
        try:
            for row in connection.execute(sql, (after,)):
                after = row[key]
                yield row
        except apsw.CorruptError:
            end = _next_readable(connection, sql, after + 1)
            if gaps is not None:
                gaps.append(Gap(after + 1, end))
            if end is None:
                return
            after = end - 1
        else:
            return


def _next_readable(connection: apsw.Connection, sql: str, failing: int) -> int | None:
    """The first key from which a row can be read again; None: there is none."""
    step = 1
    while not _is_readable(connection, sql, failing + step):
        failing += step
        step *= 2
        if failing + step >= _LAST_KEY:
            return None
    readable = failing + step
    while readable - failing > 1:
        middle = (failing + readable) // 2
        if _is_readable(connection, sql, middle):
            readable = middle
        else:
            failing = middle
    return readable


def _is_readable(connection: apsw.Connection, sql: str, at: int) -> bool:
    try:
        connection.execute(f"{sql} LIMIT 1", (at - 1,)).fetchall()
    except apsw.CorruptError:
        return False
    return True
