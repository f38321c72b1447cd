"""`SqliteLog`: the `EventLog` on one SQLite file and a folder of blobs. The default store.

Opened by the composition root; called by owners, the feed and faces through `EventLog`. It only routes: what writes goes to
the one writer thread, what reads to the reader threads, and the modules beside this one say how. Its caller's event loop
never waits for a disk.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import apsw

from palaver.errors import LogCorrupt, LogUnavailable
from palaver.journal import Journal
from palaver.log import listings, runs
from palaver.log.base import (
    Append,
    Appended,
    Damage,
    Folder,
    Found,
    Head,
    Page,
    Recalled,
    Run,
    Segment,
    Snapshot,
    StoredMessage,
    Used,
    Verified,
)
from palaver.log.blobs import BlobCheck, FileBlobs
from palaver.log.directory import DATABASE, DataDirectory, sync_directory
from palaver.log.refusals import refuse_occupied
from palaver.log.sqlite import maintenance, queries, snapshots
from palaver.log.sqlite.database import Repairing, log_error, open_writing
from palaver.log.sqlite.fulltext import recall, search
from palaver.log.sqlite.index_cleanup import Forgetting
from palaver.log.sqlite.readers import Readers
from palaver.log.sqlite.repair import Derive, Repair
from palaver.log.sqlite.reserve import Reserve
from palaver.log.sqlite.writer import Writer
from palaver.schema.view import Listing

logger = Journal(__name__)


@asynccontextmanager
async def open_sqlite_log(directory: Path, derive: Derive | None = None) -> AsyncIterator["SqliteLog"]:
    """With `derive` the log repairs itself: see `repair.py`."""
    log = await SqliteLog.open(directory, derive)
    try:
        yield log
    finally:
        await asyncio.shield(log.close())


class SqliteLog:
    """Made by `open`."""

    def __init__(
        self, directory: DataDirectory, connection: apsw.Connection, reserve: Reserve, repair: Repairing | None
    ) -> None:
        self.epoch: str = connection.execute("SELECT epoch FROM store").get
        self._directory = directory
        self._writer = Writer(connection, directory.database, reserve, repair)
        self._readers = Readers(directory.database, self._writer.repair)
        self.blobs = FileBlobs(directory, self._readers, self._writer)
        self._forgetting = Forgetting(self._writer, self._readers)
        self._compacting = asyncio.Lock()

    @classmethod
    async def open(cls, directory: Path, derive: Derive | None = None) -> "SqliteLog":
        """Raises ConfigurationError: held by another process, written by a newer release, not ours, not writable."""
        repair = Repair(directory / DATABASE, derive).run if derive is not None else None
        held, connection, reserve = await asyncio.to_thread(_open, directory, repair)
        try:
            return cls(held, connection, reserve, repair)
        except BaseException:
            connection.close()
            held.release()
            raise

    @property
    def commits(self) -> int:
        """Transactions so far: how well appends share them."""
        return self._writer.commits

    async def close(self) -> None:
        """Finishes what was accepted. May be called twice."""
        await self._forgetting.close()
        await self._readers.close()
        # If this fails the directory stays held: somebody is still writing in it.
        await self._writer.close()
        self._directory.release()

    # -- writing

    async def append(self, append: Append) -> Appended:
        appended: Appended = await self._writer.submit(append)
        if append.listing is not None and append.listing.deleted:
            # Nobody finds a deleted conversation any more, so its words need not be kept twice.
            self._forgetting.forget(append.conversation)
        return appended

    async def save_snapshot(self, conversation: str, snapshot: Snapshot) -> None:
        await self._writer.run(lambda connection: snapshots.save(connection, conversation, snapshot))

    async def compact(self, conversation: str, through: int) -> int:
        async with self._compacting:  # A plan holds as long as nobody else moves segments; appends only add some.
            plan = await self._readers.ask(maintenance.plan_compaction, conversation, through)
            if plan is None:
                return 0
            await self._writer.run(lambda connection: maintenance.replace_segments(connection, plan))
            return plan.dropped

    # -- reading

    async def read(self, conversation: str, after: int, limit_bytes: int = 256 << 10) -> Sequence[Segment]:
        return await self._readers.ask(queries.read, conversation, after, limit_bytes)

    async def read_all(self, after_pos: int, limit_bytes: int = 256 << 10) -> Sequence[tuple[str, Segment]]:
        try:
            return await self._readers.ask(queries.read_all, after_pos, limit_bytes)
        except LogCorrupt as damage:
            # What is lost is lost to its conversation; a bus that stopped here would be lost to all.
            logger.warning("events on damaged pages are left out of the bus", reason=damage.message)
            return await self._readers.ask(queries.read_all_readable, after_pos, limit_bytes)

    async def head(self, conversation: str) -> Head | None:
        return await self._readers.ask(queries.head, conversation)

    async def position(self) -> int:
        return self._writer.position

    async def used(self, conversation: str, client_request_id: str) -> Used | None:
        return await self._readers.ask(queries.find_used, conversation, client_request_id)

    async def load_snapshot(self, conversation: str, tail: int) -> Snapshot | None:
        return await self._readers.ask(snapshots.load, conversation, tail)

    async def messages_before(self, conversation: str, before_seq: int, limit: int) -> Sequence[StoredMessage]:
        return await self._readers.ask(snapshots.before, conversation, before_seq, limit)

    async def listing(self, conversation: str) -> Listing | None:
        return await self._readers.ask(listings.one, conversation)

    async def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        project: str | None = None,
        archived: bool | None = False,
        children: bool = False,
        root: str | None = None,
    ) -> Page[Listing]:
        return await self._readers.ask(listings.page, limit, cursor, project, archived, children, root)

    async def changed(self, after_pos: int, limit: int = 500) -> Sequence[Listing]:
        return await self._readers.ask(listings.list_changed, after_pos, limit)

    async def folders(self) -> Sequence[Folder]:
        return await self._readers.ask(listings.folders)

    async def streams(self, prefix: str) -> Sequence[str]:
        return await self._readers.ask(listings.streams, prefix)

    async def waiting(self) -> Sequence[Listing]:
        return await self._readers.ask(listings.waiting)

    async def unfinished(self) -> Sequence[str]:
        return await self._readers.ask(listings.list_unfinished)

    async def runs(
        self,
        *,
        conversation: str | None = None,
        project: str | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> Sequence[Run]:
        return await self._readers.ask(runs.page, conversation, project, limit, before)

    async def run(self, run: str) -> Run | None:
        return await self._readers.ask(runs.one, run)

    async def children_of_run(self, run: str) -> Sequence[Run]:
        return await self._readers.ask(runs.children, run)

    async def search(self, query: str, *, limit: int = 20, conversation: str | None = None) -> Sequence[Found]:
        return await self._readers.ask(search, query, limit, conversation)

    async def recall(
        self, text: str, *, project: str | None, limit: int = 20, but: str | None = None
    ) -> Sequence[Recalled]:
        return await self._readers.ask(recall, text, project, limit, but)

    # -- care

    async def verify(self, conversation: str | None = None) -> Verified:
        blobs = BlobCheck(self._directory.blobs)
        if conversation is not None:
            found = await self._readers.ask(maintenance.audit_one, conversation, blobs)
            return Verified(found.conversations, found.events, found.damages)
        conversations, events, number, damages = 0, 0, 0, list[Damage]()
        while True:
            found = await self._readers.ask(maintenance.audit_after, number, blobs)
            conversations += found.conversations
            events += found.events
            damages.extend(found.damages)
            number = found.last
            if not number:
                return Verified(conversations, events, damages)

    async def backup(self, target: Path) -> None:
        if refusal := await asyncio.to_thread(refuse_occupied, target):
            raise refusal
        database = self._directory.database
        try:
            await asyncio.to_thread(maintenance.backup, database, self._directory.blobs, target)
        except apsw.Error as error:
            raise log_error(error, target / database.name) from error
        except OSError as error:
            raise LogUnavailable(f"The backup to {target} failed: {error.strerror}. Nothing is left of it.") from error


def _open(path: Path, repair: Repairing | None) -> tuple[DataDirectory, apsw.Connection, Reserve]:
    directory, reserve = DataDirectory(path), Reserve(path)
    try:
        connection = open_writing(directory.database, reserve, repair)
        reserve.kept()
        sync_directory(directory.path)
        return directory, connection, reserve
    except BaseException:
        directory.release()
        raise
