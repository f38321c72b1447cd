"""The new store of a salvage: proven segments put in as they are, with the lists and indexes that belong to them.

Called by `conversation/recovery/salvage.py`, which folds the events. Numbers, positions and chains stay what they were, so that
what `palaver verify` proves of the new store is what was written to the old one.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw
import msgspec
from msgspec.structs import replace

from palaver.log.base import Document, Run, StoredMessage
from palaver.log.runs import UPSERT
from palaver.log.segments import Stored, segment_row
from palaver.log.sqlite.commit import listing_row
from palaver.log.sqlite.database import one_view, open_writing
from palaver.log.sqlite.reserve import Reserve
from palaver.schema.view import Listing


@dataclass(frozen=True, slots=True)
class UsedClaim:
    client_request_id: str
    body_hash: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A conversation, or a project's stream, to be put into the new store."""

    conversation: str
    segments: Sequence[Stored]
    listing: Listing | None = None
    documents: Sequence[Document] = ()
    claims: Sequence[UsedClaim] = ()
    runs: Sequence[Run] = ()
    messages: Sequence[StoredMessage] = ()
    """As a snapshot keeps them. A new store has none: they are made when the conversation is used."""

    def message_rows(self, number: int) -> list[tuple[int, int, bytes]]:
        return [(number, one.seq, one.body) for one in self.messages]

    def claim_rows(self, number: int) -> list[tuple[int, str, str, int, int]]:
        return [(number, one.client_request_id, one.body_hash, one.first, one.last) for one in self.claims]

    def document_rows(self, number: int) -> list[tuple[int, str, int, str, str, int]]:
        return [(number, one.message, one.seq, one.role, one.text, one.ts) for one in self.documents]

    def run_rows(self, number: int) -> list[tuple[str, int, str | None, str | None, bytes]]:
        return [(one.run, number, one.project, one.parent, msgspec.json.encode(one)) for one in self.runs]


@contextmanager
def open_new_store(directory: Path) -> Iterator["NewStore"]:
    """Raises ConfigurationError, LogUnavailable, apsw.Error."""
    directory.mkdir(mode=0o700, parents=True)
    with closing(open_writing(directory / "palaver.db", Reserve(directory))) as connection:
        yield NewStore(connection)


class NewStore:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._number = 0
        self._position = 0

    def add(self, kept: Kept) -> None:
        """All of it or nothing."""
        self._number += 1
        self._position = max(self._position, *(segment.last_pos for segment in kept.segments))
        with one_view(self._connection):
            self._write(kept, self._number)

    def _write(self, kept: Kept, number: int) -> None:
        many, end = self._connection.executemany, kept.segments[-1]
        self._connection.execute(
            "INSERT INTO conversations (name, number, head, chain) VALUES (?, ?, ?, ?)",
            (kept.conversation, number, end.last, end.chain),
        )
        many(
            "INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [segment_row(number, one) for one in kept.segments],
        )
        if kept.listing is not None:
            row = listing_row(number, replace(kept.listing, pos=end.last_pos))
            self._connection.execute("INSERT INTO listings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        many("INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?, ?)", kept.claim_rows(number))
        many(
            "INSERT INTO documents (conversation, message, seq, role, text, ts) VALUES (?, ?, ?, ?, ?, ?)",
            kept.document_rows(number),
        )
        many(UPSERT, kept.run_rows(number))
        self._connection.execute("UPDATE store SET position = ?", (self._position,))
