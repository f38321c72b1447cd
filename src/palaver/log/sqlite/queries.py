"""Questions about events, as a read connection answers them: each an index lookup, whatever the length of the log."""

from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from itertools import chain
from typing import Any

import apsw

from palaver.errors import LogCorrupt
from palaver.log.base import Head, Segment, Used
from palaver.log.segments import SPAN, Stored, decode_runs, in_commit_order
from palaver.log.sqlite.damaged_tables import walk
from palaver.log.sqlite.database import one_view, one_view_of_damage


def read(connection: apsw.Connection, conversation: str, after: int, limit_bytes: int) -> Sequence[Segment]:
    """Up to a hole, and LogCorrupt at it: a view that is folded around missing events would be wrong and not look it."""
    rows = connection.execute(
        "SELECT c.head, s.first, s.last, s.pos, s.body, s.compacted FROM conversations c "
        "LEFT JOIN segments s ON s.conversation = c.number AND s.last > ?2 WHERE c.name = ?1 ORDER BY s.last",
        (conversation, after),
    )
    found: list[Segment] = []
    size, head = 0, 0
    with closing(rows):
        for row in rows:
            head, first, last, pos, body, compacted = row
            if first is None:
                break
            size += len(body)
            if found and (size > limit_bytes or first > found[-1].last + 1):
                break
            if not found and first > after + 1:
                raise _missing(conversation, after + 1, first - 1)
            found.append(Segment(first, last, pos, body, bool(compacted)))
    if not found and after < head:
        raise _missing(conversation, after + 1, head)
    return found


def _missing(conversation: str, first: int, last: int) -> LogCorrupt:
    return LogCorrupt(
        f"The events {first} to {last} of this conversation are lost to a damaged disk. Restore it from a backup, or save what "
        "is left with `palaver salvage`.",
        conversation=conversation,
    )


def read_all(connection: apsw.Connection, after_pos: int, limit_bytes: int) -> Sequence[tuple[str, Segment]]:
    with one_view(connection):  # A compaction in between could hide an event.
        near, behind = (
            _reaching_over(connection, after_pos),
            read_segments(connection, "s.pos > ? ORDER BY s.pos", after_pos),
        )
        with closing(near), closing(behind):
            return in_commit_order(chain(near, behind), after_pos, limit_bytes)


def read_all_readable(connection: apsw.Connection, after_pos: int, limit_bytes: int) -> Sequence[tuple[str, Segment]]:
    """The same without what lies on damaged pages."""
    with one_view_of_damage(connection):
        near: list[tuple[str, Stored]] = []
        with suppress(apsw.CorruptError):
            near.extend(_reaching_over(connection, after_pos))
        behind = map(_with_name, walk(connection, f"{_STORED} s.pos > ? ORDER BY s.pos", after_pos, key=_POS))
        return in_commit_order(chain(near, behind), after_pos, limit_bytes)


def _reaching_over(connection: apsw.Connection, after_pos: int) -> Generator[tuple[str, Stored]]:
    """Segments that begin at or before a position and go on behind it: the one it lies in, and compacted ones nearby."""
    positions = connection.execute(
        "SELECT pos FROM segments WHERE compacted = 1 AND pos > ?1 - ?2 AND pos <= ?1 AND last_pos > ?1 "
        "UNION SELECT max(pos) FROM segments WHERE pos <= ?1 ORDER BY 1",
        (after_pos, SPAN),
    )
    for (pos,) in list(positions):
        yield from read_segments(connection, "s.pos = ?", pos)


_STORED = """
SELECT c.name, s.first, s.last, s.pos, coalesce(s.last_pos, s.pos + s.last - s.first), s.body, s.chain, s."check", s.runs
FROM segments s JOIN conversations c ON c.number = s.conversation WHERE
"""
_POS = 3
"""The column of a segment's position."""


def read_segments(connection: apsw.Connection, where: str, *bindings: int) -> Generator[tuple[str, Stored]]:
    """Segments as they lie there, with the names of their conversations. `where` is SQL over `s`, never a caller's text."""
    rows = connection.execute(_STORED + where, bindings)
    with closing(rows):
        yield from map(_with_name, rows)


def _with_name(row: tuple[Any, ...]) -> tuple[str, Stored]:
    name, first, last, pos, last_pos, body, chain_value, check, runs = row
    return name, Stored(first, last, pos, last_pos, body, chain_value, check, decode_runs(runs))


def head(connection: apsw.Connection, conversation: str) -> Head | None:
    row = connection.execute("SELECT head, chain FROM conversations WHERE name = ?", (conversation,)).fetchone()
    return Head(*row) if row else None


def find_used(connection: apsw.Connection, conversation: str, client_request_id: str) -> Used | None:
    row = connection.execute(
        "SELECT u.body_hash, u.first, u.last FROM conversations c JOIN claims u ON u.conversation = c.number "
        "WHERE c.name = ? AND u.client_request_id = ?",
        (conversation, client_request_id),
    ).fetchone()
    return Used(*row) if row else None
