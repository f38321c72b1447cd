"""Care for a SQLite store while it is in use: compaction, what is forgotten, verify and backup.

`store.py` calls these on a reader's connection or on a thread of their own, `index_cleanup.py` what is forgotten. Only
`replace_segments` and `forget_words` write, on the writer's.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw
import msgspec

from palaver.errors import LogCorrupt
from palaver.log.base import GENESIS, Damage, Head
from palaver.log.blobs import PARTIAL, BlobCheck
from palaver.log.compaction import SMALL_BYTES, Compacted, compact
from palaver.log.directory import sync_directory
from palaver.log.listings import decode_listing
from palaver.log.segments import Stored, segment_row
from palaver.log.sqlite.database import one_view, open_reading
from palaver.log.sqlite.queries import read_segments
from palaver.log.verify import Audit

# -- compaction


@dataclass(frozen=True, slots=True)
class Plan:
    """What a compaction shall change. Made beside the writer, which has better things to do than to read."""

    conversation: int
    gone: Sequence[Stored]
    new: Sequence[Stored]
    dropped: int
    settled: int


def plan_compaction(connection: apsw.Connection, conversation: str, through: int) -> Plan | None:
    """None: nothing to do. Raises LogCorrupt."""
    row = connection.execute(
        "SELECT number, head, settled FROM conversations WHERE name = ?", (conversation,)
    ).fetchone()
    if row is None or through <= row[2]:
        return None
    number, head, settled = row
    segments = [*_small_one_before(connection, number, settled), *_range(connection, number, settled, through)]
    if not segments:
        return None
    before = connection.execute(
        "SELECT chain FROM segments WHERE conversation = ? AND last = ?", (number, segments[0].first - 1)
    ).get
    result = _compact(conversation, segments, before or GENESIS, min(through, head))
    old, new = set(segments), set(result.segments)
    return Plan(
        number,
        [segment for segment in segments if segment not in new],
        [segment for segment in result.segments if segment not in old],
        result.dropped,
        result.settled,
    )


def _range(connection: apsw.Connection, number: int, after: int, through: int) -> list[Stored]:
    rows = read_segments(
        connection,
        "s.conversation = ? AND s.last > ? AND s.first <= ? ORDER BY s.last",
        number,
        after,
        through,
    )
    return [segment for _, segment in rows]


def _small_one_before(connection: apsw.Connection, number: int, settled: int) -> list[Stored]:
    rows = read_segments(connection, "s.conversation = ? AND s.last <= ? ORDER BY s.last DESC LIMIT 1", number, settled)
    return [segment for _, segment in rows if len(segment.body) < SMALL_BYTES]


def _compact(conversation: str, segments: Sequence[Stored], before: bytes, through: int) -> Compacted:
    try:
        return compact(segments, before, through)
    except LogCorrupt as fault:
        raise LogCorrupt(
            f"Conversation {conversation} is damaged: {fault.message}", conversation=conversation
        ) from None


def replace_segments(connection: apsw.Connection, plan: Plan) -> None:
    connection.executemany("DELETE FROM segments WHERE pos = ?", [(segment.pos,) for segment in plan.gone])
    connection.executemany(
        "INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [segment_row(plan.conversation, segment) for segment in plan.new],
    )
    connection.execute("UPDATE conversations SET settled = ? WHERE number = ?", (plan.settled, plan.conversation))


# -- what is forgotten

FORGOTTEN_AT_ONCE = 16
FORGOTTEN_BYTES = 16 << 10
"""Of a deleted conversation, in one step: to take so much text out of the index costs some thousandths of a second, which is
what whoever is committed with it waits."""
NOT_FORGOTTEN_AT_ONCE = 100


def forget_words(connection: apsw.Connection, conversation: str) -> bool:
    """Takes some messages of a conversation out of the search's index, whose pages later writes use. Whether more are left."""
    rows = connection.execute(
        "SELECT d.number, octet_length(d.text) FROM documents d JOIN conversations c ON c.number = d.conversation "
        "WHERE c.name = ? LIMIT ?",
        (conversation, FORGOTTEN_AT_ONCE + 1),
    )
    found = list(rows)
    chosen, taken_bytes = list[tuple[int]](), 0
    for number, size_bytes in found[:FORGOTTEN_AT_ONCE]:
        taken_bytes += size_bytes
        if chosen and taken_bytes > FORGOTTEN_BYTES:
            break
        chosen.append((number,))
    connection.executemany("DELETE FROM documents WHERE number = ?", chosen)
    return len(chosen) < len(found)


def not_forgotten(connection: apsw.Connection) -> Sequence[str]:
    """Deleted conversations whose words are still in the index: some of them."""
    rows = connection.execute(
        "SELECT c.name FROM listings l JOIN conversations c ON c.number = l.conversation WHERE l.deleted = 1 "
        "AND EXISTS (SELECT 1 FROM documents d WHERE d.conversation = l.conversation) LIMIT ?",
        (NOT_FORGOTTEN_AT_ONCE,),
    )
    return [name for (name,) in rows]


# -- verify

VERIFY_BATCH = 64
"""Conversations a question: the threads that read are free for others in between."""


@dataclass(frozen=True, slots=True)
class Audited:
    conversations: int
    events: int
    damages: Sequence[Damage]
    last: int
    """The number of the last conversation looked at; 0: there are no more."""


def audit_after(connection: apsw.Connection, number: int, blobs: BlobCheck) -> Audited:
    rows = connection.execute(
        "SELECT number, name FROM conversations WHERE number > ? ORDER BY number LIMIT ?", (number, VERIFY_BATCH)
    )
    numbered = list(rows)
    audits = [_audit(connection, found, name, blobs) for found, name in numbered]
    return _sum(audits, numbered[-1][0] if numbered else 0)


def audit_one(connection: apsw.Connection, conversation: str, blobs: BlobCheck) -> Audited:
    row = connection.execute("SELECT number FROM conversations WHERE name = ?", (conversation,)).fetchone()
    return _sum([_audit(connection, row[0], conversation, blobs)] if row else [], 0)


def _sum(audits: Sequence[Audit], last: int) -> Audited:
    damages = [damage for audit in audits for damage in audit.damages]
    return Audited(len(audits), sum(audit.events for audit in audits), damages, last)


def _audit(connection: apsw.Connection, number: int, name: str, blobs: BlobCheck) -> Audit:
    audit = Audit(name, blobs.fault)
    try:
        _check_listing(connection, number, audit)
        with one_view(connection):
            for _, segment in read_segments(connection, "s.conversation = ? ORDER BY s.last", number):
                audit.segment(segment)
            audit.head(
                Head(*connection.execute("SELECT head, chain FROM conversations WHERE number = ?", (number,)).get)
            )
    except (apsw.Error, TypeError, ValueError) as error:
        # A changed byte may also make a number of a text, or a text that is none.
        audit.unreadable(str(error))
    return audit


def _check_listing(connection: apsw.Connection, number: int, audit: Audit) -> None:
    body = connection.execute("SELECT body FROM listings WHERE conversation = ?", (number,)).get
    try:
        if body is not None:
            decode_listing(body)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        audit.listing_unreadable(str(error))


# -- backup


def backup(database: Path, blobs: Path, target: Path) -> None:
    """A copy beside `target`, put in its place once it is whole: what has the name is a backup."""
    partial = target.with_name(target.name + PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700, parents=True)
    try:
        _copy_database(database, partial / database.name)
        # After the database: every blob that an event in the copy names was on disk before that event was.
        _copy_blobs(blobs, partial / blobs.name)
        sync_directory(partial)
        partial.replace(target)
        sync_directory(target.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _copy_database(source: Path, target: Path) -> None:
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with (
        closing(open_reading(source)) as reading,
        closing(apsw.Connection(str(target))) as copy,
        copy.backup("main", reading, "main") as copying,
    ):
        # In one step: between two steps an append would make it begin again.
        copying.step(-1)


def _copy_blobs(source: Path, target: Path) -> None:
    target.mkdir(mode=0o700)
    for folder in sorted(source.iterdir()):
        if not folder.is_dir():
            continue
        copy = target / folder.name
        copy.mkdir(mode=0o700)
        for blob in folder.iterdir():
            if not blob.name.endswith(PARTIAL):
                _link_or_copy(blob, copy / blob.name)
        sync_directory(copy)
    sync_directory(target)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        # A blob never changes, so both may share it. Not possible on another disk.
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
        target.chmod(0o600)
