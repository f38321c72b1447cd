"""Every store there is, behind one handle: what the contract tests run over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from palaver.log.base import Append, Appended, EventLog, Run
from palaver.log.memory import MemoryLog
from palaver.log.sqlite.store import SqliteLog
from palaver.schema.view import Listing

Kind = Literal["memory", "sqlite"]
KINDS: tuple[Kind, ...] = ("memory", "sqlite")

WAIT_S = 30.0
"""Every wait of a test ends by then; none is expected to come near it."""


WITHOUT_RUNS = (
    "DROP INDEX listings_deleted; DROP TABLE runs; DROP INDEX listings_newest; DROP INDEX listings_root;"
    "CREATE INDEX listings_newest ON listings (updated_at, conversation, archived, project) WHERE deleted = 0;"
    "ALTER TABLE listings DROP COLUMN child; ALTER TABLE listings DROP COLUMN root"
)
"""Takes a database of today back to the layout before there were runs."""


class Store:
    """One log and its place. `reopen` is a restart."""

    def __init__(self, kind: Kind, path: Path, log: EventLog) -> None:
        self.kind: Kind = kind
        self.path = path
        self.log = log

    async def reopen(self) -> EventLog:
        """A memory log has nothing to come back from: it stays what it is."""
        if self.kind == "sqlite":
            await self.log.close()
            self.log = await SqliteLog.open(self.path)
        return self.log

    @asynccontextmanager
    async def opened_backup(self, path: Path) -> AsyncIterator[EventLog]:
        log: EventLog = MemoryLog.restore_from(path) if self.kind == "memory" else await SqliteLog.open(path)
        try:
            yield log
        finally:
            await log.close()


@asynccontextmanager
async def open_store(kind: Kind, path: Path) -> AsyncIterator[Store]:
    log: EventLog = MemoryLog() if kind == "memory" else await SqliteLog.open(path)
    store = Store(kind, path, log)
    try:
        yield store
    finally:
        await asyncio.wait_for(store.log.close(), WAIT_S)


def line(conversation: str, seq: int, text: str = "") -> bytes:
    return b'{"type":"draft.set","seq":%d,"conversation":"%s","text":"%s"}' % (
        seq,
        conversation.encode(),
        text.encode(),
    )


def lines(conversation: str, after: int, count: int) -> list[bytes]:
    return [line(conversation, after + number) for number in range(1, count + 1)]


async def append(log: EventLog, conversation: str, after: int, count: int = 1) -> Appended:
    return await log.append(Append(conversation, after, lines(conversation, after, count)))


def row(conversation: str, **fields: object) -> Listing:
    blank = Listing(
        id=conversation,
        title=f"About {conversation}",
        agent="default",
        project=None,
        status="idle",
        created_at=1,
        updated_at=1,
        seq=1,
    )
    return replace(blank, **fields)


def run(id: str, conversation: str, **fields: object) -> Run:
    blank = Run(
        run=id,
        conversation=conversation,
        project="/p",
        agent="default",
        backend="scripted",
        parent=None,
        trigger="message",
        exchange=None,
        status="running",
        detail=None,
        started_at=1,
    )
    return replace(blank, **fields)


async def read_lines(log: EventLog, conversation: str, after: int = 0) -> list[bytes]:
    """The whole log behind a cursor, as the feed reads it: page by page."""
    found: list[bytes] = []
    while segments := await log.read(conversation, after, 1):
        for segment in segments:
            found.extend(segment.body.split(b"\n")[:-1])
            after = segment.last
    return found
