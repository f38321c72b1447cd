"""One commit: the appends of one moment as a handful of SQL statements.

Called by the writer within a transaction. All appends are judged before anything is written, so one that is refused takes
nothing down with it; then each table gets its rows in one go. Nothing here looks into a line, and no SQL is run per event.
"""

import apsw
import msgspec
from msgspec.structs import replace

from palaver.log.base import GENESIS, Append, Appended, chain_hash_through
from palaver.log.listings import is_child, is_unfinished, is_waiting
from palaver.log.refusals import body_of, claim_used, head_moved
from palaver.log.runs import UPSERT
from palaver.schema.view import Listing

REMEMBERED = 20_000
"""Heads kept in memory: more conversations than are ever active at once, in about five megabytes."""

_Row = tuple[int | str | bytes | None, ...]

_encoder = msgspec.json.Encoder()


_Head = tuple[int, int, bytes]
"""A conversation's number, the seq of its latest event, and the chain's value after it."""


class Heads:
    """Where each conversation and the store itself stand. Only the writer moves them, so memory is as good as the disk."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._known: dict[str, _Head] = {}
        self.position = int(connection.execute("SELECT position FROM store").get)
        self.numbers = int(connection.execute("SELECT coalesce(max(number), 0) FROM conversations").get)

    def find(self, name: str) -> _Head | None:
        known = self._known.get(name)
        if known is None:
            row = self._connection.execute(
                "SELECT number, head, chain FROM conversations WHERE name = ?", (name,)
            ).fetchone()
            if row is None:
                return None
            known = row
            self._remember({name: row})
        return known

    def move(self, moved: dict[str, _Head], position: int, numbers: int) -> None:
        self._remember(moved)
        self.position, self.numbers = position, numbers

    def _remember(self, heads: dict[str, _Head]) -> None:
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known.update(heads)


class Commit:
    """Gathers appends, then writes them all. Thrown away when the transaction fails; `done` when it succeeded."""

    def __init__(self, connection: apsw.Connection, heads: Heads) -> None:
        self._connection = connection
        self._heads = heads
        self._position = heads.position
        self._numbers = heads.numbers
        self._moved: dict[str, _Head] = {}
        self._new: set[str] = set()
        self._segments: list[_Row] = []
        self._listings: list[_Row] = []
        self._claims: dict[tuple[int, str], _Row] = {}
        self._removed: list[_Row] = []
        self._documents: list[_Row] = []
        self._runs: list[_Row] = []

    def take(self, append: Append) -> Appended:
        """Raises HeadMoved or ValueError; then the append is no part of this commit."""
        name, lines = append.conversation, append.lines
        head = self._moved.get(name) or self._heads.find(name) or (self._numbers + 1, 0, GENESIS)
        number, seq, chain = head
        if append.after != seq:
            raise head_moved(append, seq)
        body = body_of(append)
        for claim in append.claims:
            if self._is_used(number, claim.client_request_id):
                raise claim_used(append, claim.client_request_id)
        if number > self._numbers:
            self._numbers = number
            self._new.add(name)
        first, last, pos = seq + 1, seq + len(lines), self._position + 1
        chain = chain_hash_through(chain, lines)
        self._segments.append((pos, number, first, last, chain, body))
        self._moved[name] = (number, last, chain)
        self._position += len(lines)
        if append.listing is not None:
            self._listings.append(listing_row(number, replace(append.listing, pos=self._position)))
        for claim in append.claims:
            key = (number, claim.client_request_id)
            self._claims[key] = (*key, claim.body_hash, first, last)
        if append.documents or append.removed_documents:
            self._index(number, append)
        self._runs.extend((run.run, number, run.project, run.parent, _encoder.encode(run)) for run in append.runs)
        return Appended(first, last, pos)

    def _is_used(self, number: int, client_request_id: str) -> bool:
        if (number, client_request_id) in self._claims:
            return True
        found = self._connection.execute(
            "SELECT 1 FROM claims WHERE conversation = ? AND client_request_id = ?", (number, client_request_id)
        )
        return found.fetchone() is not None

    def _index(self, number: int, append: Append) -> None:
        # What an earlier append of this commit added is not in the table yet when rows are removed.
        removed = set(append.removed_documents)
        if removed:
            self._removed.extend((number, message) for message in removed)
            self._documents = [row for row in self._documents if row[0] != number or row[1] not in removed]
        self._documents.extend(
            (number, document.message, document.seq, document.role, document.text, document.ts)
            for document in append.documents
        )

    def write(self) -> bool:
        """False: every append was refused, there is nothing to commit."""
        if not self._moved:
            return False
        many = self._connection.executemany
        known = [head for name, head in self._moved.items() if name not in self._new]
        if known:
            many("UPDATE conversations SET head = ?2, chain = ?3 WHERE number = ?1", known)
        if self._new:
            rows = [(name, *self._moved[name]) for name in self._new]
            many("INSERT INTO conversations (name, number, head, chain) VALUES (?, ?, ?, ?)", rows)
        many(
            "INSERT INTO segments (pos, conversation, first, last, chain, compacted, body) VALUES (?, ?, ?, ?, ?, 0, ?)",
            self._segments,
        )
        if self._listings:
            many("INSERT OR REPLACE INTO listings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._listings)
        if self._claims:
            many("INSERT INTO claims VALUES (?, ?, ?, ?, ?)", self._claims.values())
        if self._removed:
            many("DELETE FROM documents WHERE conversation = ? AND message = ?", self._removed)
        if self._documents:
            many(
                "INSERT INTO documents (conversation, message, seq, role, text, ts) VALUES (?, ?, ?, ?, ?, ?)",
                self._documents,
            )
        if self._runs:
            many(UPSERT, self._runs)
        self._connection.execute("UPDATE store SET position = ?", (self._position,))
        return True

    def done(self) -> None:
        self._heads.move(self._moved, self._position, self._numbers)


def listing_row(number: int, listing: Listing) -> _Row:
    return (
        number,
        listing.pos,
        listing.updated_at,
        int(listing.archived),
        int(listing.deleted),
        int(is_waiting(listing)),
        int(is_unfinished(listing)),
        listing.project,
        _encoder.encode(listing),
        int(is_child(listing)),
        listing.root,
    )
