"""Folded views as the SQLite store keeps them: a head row, and a row for each message, found by its place.

Saving writes what changed; loading reads the last messages. Neither depends on how many there are.
"""

from collections.abc import Sequence

import apsw

from palaver.log.base import Snapshot, StoredMessage
from palaver.log.refusals import snapshot_ahead
from palaver.log.sqlite.database import one_view


def save(connection: apsw.Connection, conversation: str, snapshot: Snapshot) -> None:
    row = connection.execute(
        "SELECT c.number, c.head, coalesce(s.seq, 0) FROM conversations c "
        "LEFT JOIN snapshots s ON s.conversation = c.number WHERE c.name = ?",
        (conversation,),
    ).fetchone()
    number, head, newest = row or (0, 0, 0)
    if snapshot.seq > head or not number:
        raise snapshot_ahead(conversation, snapshot.seq, head)
    if snapshot.seq < newest:
        return
    connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", (number, snapshot.seq, snapshot.head))
    if snapshot.replace_all:
        connection.execute("DELETE FROM messages WHERE conversation = ?", (number,))
    connection.executemany(
        "INSERT INTO messages VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET body = excluded.body",
        ((number, message.seq, message.body) for message in snapshot.messages),
    )


def load(connection: apsw.Connection, conversation: str, tail: int) -> Snapshot | None:
    with one_view(connection):
        row = connection.execute(
            "SELECT c.number, s.seq, s.head FROM conversations c JOIN snapshots s ON s.conversation = c.number "
            "WHERE c.name = ?",
            (conversation,),
        ).fetchone()
        if row is None:
            return None
        number, seq, head = row
        return Snapshot(seq, head, _last(connection, number, _NEVER, tail))


def before(connection: apsw.Connection, conversation: str, before_seq: int, limit: int) -> Sequence[StoredMessage]:
    row = connection.execute("SELECT number FROM conversations WHERE name = ?", (conversation,)).fetchone()
    return _last(connection, row[0], before_seq, limit) if row else ()


_NEVER = (1 << 63) - 1
"""A seq that no event will have."""


def _last(connection: apsw.Connection, number: int, before_seq: int, count: int) -> list[StoredMessage]:
    rows = connection.execute(
        "SELECT seq, body FROM messages WHERE conversation = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
        (number, before_seq, max(0, count)),
    )
    return [StoredMessage(seq, body) for seq, body in reversed(list(rows))]
