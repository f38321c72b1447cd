"""Repair of a damaged SQLite store in place: tables and indexes that follow from the events are made anew from them.

Called on the writer's thread when SQLite meets a malformed page, and at no other time: a healthy file costs nothing. Rows that
can be read are copied, the others are derived from their conversation's events; what is lost of the events themselves is lost
for that conversation alone. The pages of the damaged tables are not used again, because
their tree cannot be walked to free them; `palaver salvage` finds on them what was not readable here.

Must never drop a row that can be read and not be derived, or run twice for the same damage.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

import apsw
from msgspec.structs import replace

from palaver.errors import LogCorrupt
from palaver.journal import Journal
from palaver.log import listings, runs
from palaver.log.segments import Stored, segment_row
from palaver.log.sqlite.commit import listing_row
from palaver.log.sqlite.damaged_tables import Gap, walk
from palaver.log.sqlite.database import DAMAGE, one_view_of_damage, open_reading
from palaver.log.sqlite.queries import read_segments
from palaver.log.sqlite.salvage import names_in, open_remnants
from palaver.log.sqlite.salvage_store import Kept

logger = Journal(__name__)

EVERY_S = 600.0
"""Between two looks at a whole store: one mends all that can be mended, and a damaged conversation is read again and again."""
LEAF_ROWS = 64
"""More segments than one page of 4 KiB holds: what costs more of them is an inner page, whose leaves are still there."""

Derive = Callable[[str, Sequence[Stored]], Kept | None]
"""The rows that follow from a conversation's events; None: nothing can be told from them."""

_Row = tuple[int | float | str | bytes | None, ...]

SEARCH = ("words", "words_data", "words_idx", "words_docsize", "words_config")
OF_CONVERSATIONS = ("listings", "snapshots", "messages", "claims", "documents", "runs")
"""Tables whose rows belong to a conversation, which the column of that name gives by its number."""


@dataclass
class Repair:
    """Repairs of one store. Made once for a server; every method runs on the writer's thread."""

    path: Path
    derive: Derive
    _looked_at_s: float | None = field(default=None)

    def run(self, connection: apsw.Connection) -> None:
        """Look at everything beside the events and make anew what is damaged; a second call soon after does nothing.

        Raises nothing: what cannot be mended is met again by whoever asks for it.
        """
        now_s = time.monotonic()
        if self._looked_at_s is not None and now_s - self._looked_at_s < EVERY_S:
            return
        self._looked_at_s = now_s
        logger.warning(
            "the database file is damaged; looking for what can be rebuilt from the events", file=str(self.path)
        )
        try:
            # Each reads what the one before it has mended.
            steps = (_Mending.mend_segments, _Mending.mend_heads, _Mending.mend_derived)
            mended = _mend_free_pages(connection) + [table for step in steps for table in self._mend(connection, step)]
        except (apsw.Error, OSError, LogCorrupt, *DAMAGE) as failure:
            logger.error(
                "the damaged database file could not be repaired; stop the server and run `palaver salvage`",
                file=str(self.path),
                reason=str(failure),
            )
            return
        if mended:
            logger.warning(
                "damaged tables were rebuilt; `palaver verify` says what is left",
                tables=", ".join(mended),
                took_s=round(time.monotonic() - now_s, 1),
            )
        else:
            logger.warning("nothing but events is damaged; `palaver verify` says whose", file=str(self.path))

    def _mend(self, connection: apsw.Connection, mend: "Callable[[_Mending], None]") -> Sequence[str]:
        is_search_damaged = _is_search_damaged(connection)
        with closing(open_reading(self.path)) as old, one_view_of_damage(old), _transaction(connection):
            mending = _Mending(connection, old, self.path, self.derive, is_search_damaged)
            mend(mending)
        return mending.mended


def _mend_free_pages(connection: apsw.Connection) -> list[str]:
    """The list of pages that are free for new rows: without it nothing can be written, here neither."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("CREATE TABLE takes_a_page (number)")
    except apsw.CorruptError:
        is_damaged = True
    else:
        is_damaged = False
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    if not is_damaged:
        return []
    # Writes the whole file anew, which nothing less does for this list.
    connection.execute("VACUUM")
    return ["free pages"]


def _is_search_damaged(connection: apsw.Connection) -> bool:
    try:
        # The zero: without comparing every word of every text with the index.
        connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 0)")
    except DAMAGE:
        return True
    return False


@contextmanager
def _transaction(connection: apsw.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        # A definition that was taken out is back in the file, and not yet in memory.
        connection.execute("PRAGMA writable_schema = RESET")
        raise


@dataclass
class _Mending:
    """One transaction of a repair: `old` sees the store as it was before, `new` writes.

    Damage is met on `old` alone: after an error SQLite would fail the COMMIT on `new`.
    """

    new: apsw.Connection
    old: apsw.Connection
    path: Path
    derive: Derive
    is_search_damaged: bool
    mended: list[str] = field(default_factory=list[str])
    _derived: dict[int, Kept | None] = field(default_factory=dict[int, Kept | None])

    def mend_segments(self) -> None:
        gaps: list[Gap] = []
        for _ in walk(self.old, "SELECT pos FROM segments NOT INDEXED WHERE pos > ? ORDER BY pos", 0, gaps):
            pass
        indexes = [name for name, asked in _SEGMENT_INDEXES.items() if not self._is_index_readable(asked)]
        if any(self._is_large(gap) for gap in gaps) or (gaps and indexes):
            self._rebuild_segments(gaps)
        else:
            for name in indexes:
                self._rebuild_index(name)

    def mend_heads(self) -> None:
        if self._is_damaged("store"):
            self._rebuild_store()
        if self._is_damaged("conversations"):
            self._rebuild_conversations()

    def mend_derived(self) -> None:
        for table in OF_CONVERSATIONS:
            if self._is_damaged(table):
                self._rebuild_of_conversations(table)
        if self._is_damaged("blobs"):
            self._rebuild_blobs()
        shadows = SEARCH[1:]
        if "documents" in self.mended or self.is_search_damaged or any(self._is_damaged(one) for one in shadows):
            with self._recreate_tables(*SEARCH):
                pass
            self.new.execute("INSERT INTO words (words) VALUES ('rebuild')")

    # -- what is damaged

    def _is_damaged(self, table: str) -> bool:
        try:
            lines = [str(line) for (line,) in self.old.execute(f"PRAGMA integrity_check('{table}')")]
            return lines != ["ok"] or not self._is_decodable(table)
        except DAMAGE:
            return True

    def _is_decodable(self, table: str) -> bool:
        """Raises what `DAMAGE` names."""
        if check := _CHECKS.get(table):
            for (body,) in self.old.execute(f"SELECT body FROM {table}"):  # noqa: S608 - a name of our own
                check(body)
        return True

    # -- tables and their definitions

    @contextmanager
    def _recreate_tables(self, *tables: str) -> Iterator[None]:
        """Empty tables in the place of damaged ones; within, without indexes and triggers, which are made at the end."""
        marks = ", ".join("?" * len(tables))
        asked = f"SELECT type, sql FROM sqlite_schema WHERE tbl_name IN ({marks}) AND sql IS NOT NULL"  # noqa: S608 - marks
        parts = list(self.new.execute(asked, tables))
        self._forget(f"tbl_name IN ({marks})", *tables)
        for kind, sql in parts:
            # The tables behind a virtual one are made with it.
            if kind == "table" and (len(tables) == 1 or sql.startswith("CREATE VIRTUAL")):
                self.new.execute(sql)
        yield
        for kind, sql in parts:
            if kind != "table":
                self.new.execute(sql)
        self.mended.append(tables[0])

    def _forget(self, where: str, *names: str) -> None:
        """Take definitions out of the schema. DROP would walk the damaged tree."""
        self.new.execute("PRAGMA writable_schema = ON")
        self.new.execute(f"DELETE FROM sqlite_schema WHERE {where}", names)  # noqa: S608 - names of our own
        self.new.execute("PRAGMA writable_schema = RESET")

    def _insert(self, table: str, rows: Sequence[_Row], *, or_: str = "ABORT") -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self.new.executemany(f"INSERT OR {or_} INTO {table} VALUES ({marks})", rows)  # noqa: S608 - a name of our own

    # -- events

    def _is_index_readable(self, asked: str) -> bool:
        try:
            for _ in self.old.execute(f"SELECT {asked}"):
                pass
        except DAMAGE:
            return False
        return True

    def _is_large(self, gap: Gap) -> bool:
        """Whether it is more than a leaf, or where the next event is to be written."""
        return gap.end is None or len(self._segments_in(gap)) > LEAF_ROWS

    def _segments_in(self, gap: Gap) -> list[int]:
        """The number of the conversation of each segment that is lost there, as the index says."""
        rows = self.old.execute(
            "SELECT conversation FROM segments INDEXED BY segments_last WHERE +pos >= ? AND +pos < ?",
            (gap.first, _END if gap.end is None else gap.end),
        )
        try:
            return [number for (number,) in rows]
        except DAMAGE:
            return []

    def _rebuild_segments(self, gaps: Sequence[Gap]) -> None:
        """Segments that SQLite reaches are copied. Conversations that it does not reach all of, and whose pages hold them whole
        for their chain to prove, are taken from there."""
        hit = {number for gap in gaps for number in self._segments_in(gap)}
        with self._recreate_tables("segments"), open_remnants(self.path) as remnants:
            whole = {
                number: name
                for name, number in remnants.numbers.items()
                if (not hit or number in hit) and remnants.of(name).is_whole
            }
            for row in walk(self.old, "SELECT * FROM segments NOT INDEXED WHERE pos > ? ORDER BY pos", 0):
                if row[_CONVERSATION] not in whole:
                    self._insert("segments", [row])
            for number, name in whole.items():
                self._insert("segments", [segment_row(number, one) for one in remnants.of(name).segments])

    def _rebuild_index(self, name: str) -> None:
        sql = self.new.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).get
        self._forget("name = ?", name)
        self.new.execute(sql)
        self.mended.append(name)

    # -- heads

    def _rebuild_store(self) -> None:
        """Under a new epoch, so that no cursor of the old one is taken for a place in this one."""
        position = self.old.execute(
            "SELECT max((SELECT coalesce(max(pos + last - first), 0) FROM segments WHERE pos = (SELECT max(pos) FROM segments)), "
            "(SELECT coalesce(max(last_pos), 0) FROM segments WHERE compacted = 1))"
        ).get
        with self._recreate_tables("store"):
            self._insert("store", [(1, token_hex(8), position)])

    def _rebuild_conversations(self) -> None:
        with self._recreate_tables("conversations"):
            number = 0
            while number := self.old.execute(
                "SELECT min(conversation) FROM segments WHERE conversation > ?", (number,)
            ).get:
                if row := self._old_conversation(number) or self._conversation(number):
                    self._insert("conversations", [row], or_="IGNORE")

    def _old_conversation(self, number: int) -> _Row | None:
        try:
            return self.old.execute("SELECT * FROM conversations WHERE number = ?", (number,)).fetchone()
        except DAMAGE:
            return None

    def _conversation(self, number: int) -> _Row | None:
        """Its row as the events say: each names its conversation, and the last segment holds the chain's value."""
        asked = "FROM segments WHERE conversation = ? ORDER BY last"
        try:
            last, chain = self.old.execute(f"SELECT last, chain {asked} DESC LIMIT 1", (number,)).get
            named = names_in(self.old.execute(f"SELECT body {asked} LIMIT 1", (number,)).get)
        except DAMAGE:
            return None
        # Zero: the next compaction looks at all of it again.
        return (number, named.most_common(1)[0][0], last, chain, 0) if named else None

    # -- what follows from the events of a conversation

    def _rebuild_of_conversations(self, table: str) -> None:
        numbers = list(self.new.execute("SELECT number, name FROM conversations ORDER BY number"))
        with self._recreate_tables(table):
            unreadable = [(number, name) for number, name in numbers if not self._copy(table, number)]
            for number, name in unreadable:
                self._insert_derived(table, number, name)
        if unreadable and table == "messages":
            # It may be older than these messages. Without one the events are read from the beginning.
            self.new.executemany(
                "DELETE FROM snapshots WHERE conversation = ?", [(number,) for number, _ in unreadable]
            )
        logger.warning(
            "rebuilding a damaged table", table=table, conversations=len(numbers), derived_from_events=len(unreadable)
        )

    def _copy(self, table: str, number: int) -> bool:
        """False: its rows are damaged, or there are none where each conversation has one."""
        try:
            rows = list(
                self.old.execute(f"SELECT * FROM {table} WHERE conversation = ?", (number,))  # noqa: S608 - a name of our own
            )
            for row in rows if table in _CHECKS else ():
                _CHECKS[table](row[_BODY[table]])
        except DAMAGE:
            return False
        self._insert(table, rows)
        return bool(rows) or table != "listings"

    def _insert_derived(self, table: str, number: int, name: str) -> None:
        kept = self._derive(number, name)
        if kept is None:
            return
        match table:
            case "listings" if kept.listing is not None:
                self._insert(table, [listing_row(number, replace(kept.listing, pos=kept.segments[-1].last_pos))])
            case "claims":
                self._insert(table, kept.claim_rows(number), or_="IGNORE")
            case "documents":
                self._insert(table, [(None, *row) for row in kept.document_rows(number)])
            case "runs":
                self.new.executemany(runs.UPSERT, kept.run_rows(number))
            case "messages":
                self._insert(table, kept.message_rows(number))
            case _:
                pass  # A snapshot is made when the conversation is used next.

    def _derive(self, number: int, name: str) -> Kept | None:
        if number not in self._derived:
            segments: list[Stored] = []
            try:
                for _, segment in read_segments(self.old, "s.conversation = ? ORDER BY s.last", number):
                    if segment.first != (segments[-1].last if segments else 0) + 1:
                        break
                    segments.append(segment)
            except DAMAGE:
                pass  # As far as they go: a list with its row is better than one without.
            self._derived[number] = self.derive(name, segments) if segments else None
        return self._derived[number]

    # -- the types of blobs

    def _rebuild_blobs(self) -> None:
        """By the beginning of their ids. A blob whose row is lost is served without a type."""
        with self._recreate_tables("blobs"):
            for beginning in (f"{number:03x}" for number in range(0x1000)):
                try:
                    rows = list(
                        self.old.execute("SELECT * FROM blobs WHERE id >= ? AND id < ?", (beginning, f"{beginning}g"))
                    )
                except DAMAGE:
                    continue
                self._insert("blobs", rows)


_END = (1 << 63) - 1
"""Behind every row."""
_CONVERSATION = 1
"""The column of a segment's conversation."""

_CHECKS: dict[str, Callable[[bytes], object]] = {"listings": listings.decode_listing, "runs": runs.decode_run}
_BODY = {"listings": 8, "runs": 5}
"""Which column holds the JSON."""

_SEGMENT_INDEXES = {
    "segments_last": "conversation, last FROM segments INDEXED BY segments_last",
    "segments_compacted": "pos, last_pos FROM segments INDEXED BY segments_compacted WHERE compacted = 1",
}
"""How each is read from end to end without a look at the table."""
