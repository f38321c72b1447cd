"""The conversation list: its order, its cursor, and which rows wait or are unfinished.

The SQLite store asks its read connection through the functions below; the memory store shares the meaning. A row keeps its
`Listing` as JSON beside the few columns that the list is found and sorted by, so a new field needs no migration.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import NamedTuple

import apsw
import msgspec

from palaver.errors import Invalid
from palaver.log.base import Folder, Page
from palaver.schema.view import Listing

_listing = msgspec.json.Decoder(Listing)


class Place(NamedTuple):
    """A row's place in the list, which is sorted by it, downwards."""

    updated_at: int
    number: int
    """The conversation's number in its store: of two that changed in the same millisecond the newer comes first."""


def cursor_of(place: Place) -> str:
    """Names the row a page ended with: the next page begins there, whatever has moved to the top since."""
    return urlsafe_b64encode(b"%d.%d" % place).decode().rstrip("=")


def place_of(cursor: str) -> Place:
    """Raises Invalid."""
    try:
        updated_at, number = urlsafe_b64decode(cursor.encode() + b"===").split(b".")
        return Place(int(updated_at), int(number))
    except ValueError:
        raise Invalid("This cursor is not one of ours. Leave it out to begin with the first page.") from None


def is_waiting(listing: Listing) -> bool:
    return listing.open_requests > 0 and not listing.deleted


def is_child(listing: Listing) -> bool:
    """A subagent's: found below the conversation it works for, not beside it."""
    return listing.parent_kind == "subagent"


def is_unfinished(listing: Listing) -> bool:
    """An open turn must be settled whatever became of the conversation; what a deleted one still expected is void."""
    expects = listing.queue_size > 0 or listing.open_exchanges > 0
    return listing.turn is not None or (expects and not listing.deleted)


# -- as SQL


def one(connection: apsw.Connection, conversation: str) -> Listing | None:
    row = connection.execute(
        "SELECT l.body FROM conversations c JOIN listings l ON l.conversation = c.number WHERE c.name = ?",
        (conversation,),
    ).fetchone()
    return decode_listing(row[0]) if row else None


# A tree is narrowed to only when asked for, so that counting all reads no more than an index.
_COUNT = (
    "SELECT count(*) FROM listings WHERE deleted = 0 AND archived = coalesce(?1, archived) "
    "AND (?2 IS NULL OR project = ?2) AND child <= ?3 AND {in_tree}"
)
_PAGE = (
    "SELECT updated_at, conversation, body FROM listings WHERE deleted = 0 AND archived = coalesce(?1, archived) "
    "AND (?2 IS NULL OR project = ?2) AND child <= ?3 AND {in_tree} AND (updated_at, conversation) < (?5, ?6) "
    "ORDER BY updated_at DESC, conversation DESC LIMIT ?7"
)
_IN_TREE = "(root = ?4 OR conversation = (SELECT number FROM conversations WHERE name = ?4))"


def page(
    connection: apsw.Connection,
    limit: int,
    cursor: str | None,
    project: str | None,
    archived: bool | None,
    children: bool,
    root: str | None,
) -> Page[Listing]:
    behind = place_of(cursor) if cursor is not None else _TOP
    wanted = (None if archived is None else int(archived), project, int(children), root)
    in_tree = _IN_TREE if root is not None else "?4 IS NULL"
    total = connection.execute(_COUNT.format(in_tree=in_tree), wanted).get
    rows = connection.execute(_PAGE.format(in_tree=in_tree), (*wanted, *behind, limit + 1))
    found = [(Place(updated_at, number), body) for updated_at, number, body in rows]
    taken = found[:limit]
    next_cursor = cursor_of(taken[-1][0]) if taken and len(found) > limit else None
    return Page([decode_listing(body) for _, body in taken], next_cursor, total)


_TOP = Place((1 << 63) - 1, (1 << 63) - 1)
"""Above every row."""


def list_changed(connection: apsw.Connection, after_pos: int, limit: int) -> Sequence[Listing]:
    rows = connection.execute("SELECT body FROM listings WHERE pos > ? ORDER BY pos LIMIT ?", (after_pos, limit))
    return [decode_listing(body) for (body,) in rows]


def folders(connection: apsw.Connection) -> Sequence[Folder]:
    rows = connection.execute(
        "SELECT project, count(*), sum(unfinished), sum(waiting), max(updated_at) FROM listings "
        "WHERE deleted = 0 AND project IS NOT NULL GROUP BY project ORDER BY project"
    )
    return [Folder(*row) for row in rows]


def streams(connection: apsw.Connection, prefix: str) -> Sequence[str]:
    # Compared, not matched: a comparison is answered by the index of names.
    rows = connection.execute(
        "SELECT name FROM conversations WHERE name >= ? AND name < ? ORDER BY name", (prefix, f"{prefix}\U0010ffff")
    )
    return [name for (name,) in rows]


def waiting(connection: apsw.Connection) -> Sequence[Listing]:
    rows = connection.execute("SELECT body FROM listings WHERE waiting = 1 ORDER BY updated_at, conversation")
    return [decode_listing(body) for (body,) in rows]


def list_unfinished(connection: apsw.Connection) -> Sequence[str]:
    rows = connection.execute(
        "SELECT c.name FROM listings l JOIN conversations c ON c.number = l.conversation "
        "WHERE l.unfinished = 1 ORDER BY l.conversation"
    )
    return [name for (name,) in rows]


def decode_listing(body: bytes) -> Listing:
    return _listing.decode(body)
