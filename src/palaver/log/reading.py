"""Questions about events, as a read connection answers them: each an index lookup, whatever the length of the log."""

from collections.abc import Generator, Sequence
from contextlib import closing
from itertools import chain

import apsw

from palaver.log.base import Head, Segment, Used
from palaver.log.database import one_view
from palaver.log.segments import SPAN, Stored, decode_runs, in_commit_order


def read(connection: apsw.Connection, conversation: str, after: int, limit_bytes: int) -> Sequence[Segment]:
    rows = connection.execute(
        "SELECT s.first, s.last, s.pos, s.body, s.compacted FROM conversations c "
        "JOIN segments s ON s.conversation = c.number WHERE c.name = ? AND s.last > ? ORDER BY s.last",
        (conversation, after),
    )
    found: list[Segment] = []
    size = 0
    with closing(rows):
        for first, last, pos, body, compacted in rows:
            size += len(body)
            if found and size > limit_bytes:
                break
            found.append(Segment(first, last, pos, body, bool(compacted)))
    return found


def read_all(connection: apsw.Connection, after_pos: int, limit_bytes: int) -> Sequence[tuple[str, Segment]]:
    with one_view(connection):  # A compaction in between could hide an event.
        near, behind = _reaching_over(connection, after_pos), stored(connection, "s.pos > ? ORDER BY s.pos", after_pos)
        with closing(near), closing(behind):
            return in_commit_order(chain(near, behind), after_pos, limit_bytes)


def _reaching_over(connection: apsw.Connection, after_pos: int) -> Generator[tuple[str, Stored]]:
    """Segments that begin at or before a position and go on behind it: the one it lies in, and compacted ones nearby."""
    positions = connection.execute(
        "SELECT pos FROM segments WHERE compacted = 1 AND pos > ?1 - ?2 AND pos <= ?1 AND last_pos > ?1 "
        "UNION SELECT max(pos) FROM segments WHERE pos <= ?1 ORDER BY 1",
        (after_pos, SPAN),
    )
    for (pos,) in list(positions):
        yield from stored(connection, "s.pos = ?", pos)


_STORED = """
SELECT c.name, s.first, s.last, s.pos, coalesce(s.last_pos, s.pos + s.last - s.first), s.body, s.chain, s."check", s.runs
FROM segments s JOIN conversations c ON c.number = s.conversation WHERE
"""


def stored(connection: apsw.Connection, where: str, *bindings: int) -> Generator[tuple[str, Stored]]:
    """Segments as they lie there, with the names of their conversations. `where` is SQL over `s`, never a caller's text."""
    rows = connection.execute(_STORED + where, bindings)
    with closing(rows):
        for name, first, last, pos, last_pos, body, chain_value, check, runs in rows:
            yield name, Stored(first, last, pos, last_pos, body, chain_value, check, decode_runs(runs))


def head(connection: apsw.Connection, conversation: str) -> Head | None:
    row = connection.execute("SELECT head, chain FROM conversations WHERE name = ?", (conversation,)).fetchone()
    return Head(*row) if row else None


def used(connection: apsw.Connection, conversation: str, client_request_id: str) -> Used | None:
    row = connection.execute(
        "SELECT u.body_hash, u.first, u.last FROM conversations c JOIN claims u ON u.conversation = c.number "
        "WHERE c.name = ? AND u.client_request_id = ?",
        (conversation, client_request_id),
    ).fetchone()
    return Used(*row) if row else None
