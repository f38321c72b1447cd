"""The runs of a server: every turn there is, in one table, found by its conversation, its project and whom it works for.

Written by the commit in the append's own transaction; the SQLite store asks its read connection through the functions
below. Ordered as they began to be recorded, whatever the wall clock says. A row keeps its `Run` as JSON, as the list does.
"""

from collections.abc import Sequence

import apsw
import msgspec
from msgspec.structs import replace

from palaver.errors import Invalid
from palaver.log.base import Run

UPSERT = (
    "INSERT INTO runs (run, conversation, project, parent, body) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (run) DO UPDATE SET body = excluded.body, parent = coalesce(excluded.parent, parent)"
)

_KEPT = "FROM runs r LEFT JOIN listings l ON l.conversation = r.conversation WHERE coalesce(l.deleted, 0) = 0"
"""What was deleted is in no list."""

_LAST = (1 << 63) - 1
"""Behind every row."""

_run = msgspec.json.Decoder(Run)


def unknown_run(run: str) -> Invalid:
    return Invalid("`before`: no such run. Leave it out to begin with the newest.", run=run)


def page(
    connection: apsw.Connection, conversation: str | None, project: str | None, limit: int, before: str | None
) -> Sequence[Run]:
    last = _LAST if before is None else connection.execute("SELECT number FROM runs WHERE run = ?", (before,)).get
    if last is None:
        raise unknown_run(before or "")
    narrowed, wanted = "", list[str]()
    if conversation is not None:
        narrowed += " AND r.conversation = (SELECT number FROM conversations WHERE name = ?)"
        wanted.append(conversation)
    if project is not None:
        narrowed += " AND r.project = ?"
        wanted.append(project)
    rows = connection.execute(
        f"SELECT r.body, r.parent {_KEPT}{narrowed} AND r.number < ? ORDER BY r.number DESC LIMIT ?",
        (*wanted, last, limit),
    )
    return [_with_parent(*row) for row in rows]


def one(connection: apsw.Connection, run: str) -> Run | None:
    row = connection.execute(f"SELECT r.body, r.parent {_KEPT} AND r.run = ?", (run,)).fetchone()
    return _with_parent(*row) if row else None


def children(connection: apsw.Connection, run: str) -> Sequence[Run]:
    rows = connection.execute(f"SELECT r.body, r.parent {_KEPT} AND r.parent = ? ORDER BY r.number", (run,))
    return [_with_parent(*row) for row in rows]


def _with_parent(body: bytes, parent: str | None) -> Run:
    """An end does not say again whom the run works for; its column remembers."""
    return replace(decode_run(body), parent=parent)


def decode_run(body: bytes) -> Run:
    return _run.decode(body)
