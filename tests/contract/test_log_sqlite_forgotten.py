"""What a deleted conversation leaves in a SQLite store: its events, and nothing in the index of the search."""

import asyncio
import threading
from pathlib import Path

import apsw
import pytest

from palaver.log.base import Append, Document
from palaver.log.sqlite import maintenance
from palaver.log.sqlite.maintenance import FORGOTTEN_AT_ONCE, FORGOTTEN_BYTES, forget_words
from palaver.log.sqlite.store import SqliteLog, open_sqlite_log
from tests.unit.log.stores import line, row

pytestmark = pytest.mark.anyio

MESSAGES = 10 * FORGOTTEN_AT_ONCE + 3
WAIT_S = 20.0


async def said(log: SqliteLog, conversation: str) -> None:
    documents = [Document(f"m{number}", 1, "user", f"tide {number}") for number in range(MESSAGES)]
    listing = row(conversation)
    await log.append(Append(conversation, 0, [line(conversation, 1)], listing=listing, documents=documents))


def indexed(path: Path) -> dict[str, int]:
    database = apsw.Connection(str(path / "palaver.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        # The index must know of its rows no more than the table does.
        database.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
        counted = (
            "SELECT name, count(*) FROM documents d JOIN conversations c ON c.number = d.conversation GROUP BY name"
        )
        return dict(database.execute(counted))
    finally:
        database.close()


async def forgotten(path: Path) -> None:
    """Once no deleted conversation has a word in the index."""
    async with asyncio.timeout(WAIT_S):
        while await asyncio.to_thread(left, path):
            pass


def left(path: Path) -> int:
    database = apsw.Connection(str(path / "palaver.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        counted = "SELECT count(*) FROM documents d JOIN listings l USING (conversation) WHERE l.deleted = 1"
        return int(database.execute(counted).get)
    finally:
        database.close()


def holding_the_writer(log: SqliteLog) -> tuple[threading.Event, "asyncio.Task[None]"]:
    """The writer does nothing else until the event is set."""
    go_on = threading.Event()

    def hold(_: apsw.Connection) -> None:
        go_on.wait(WAIT_S)

    return go_on, asyncio.create_task(log._writer.run(hold))


async def delete(log: SqliteLog, conversation: str) -> None:
    await log.append(Append(conversation, 1, [line(conversation, 2)], listing=row(conversation, deleted=True)))


async def test_words_of_a_deleted_conversation_are_taken_out_of_the_index(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path) as log:
        await said(log, "kept")
        await said(log, "gone")
        await delete(log, "gone")
        found = await log.search("tide", limit=2 * MESSAGES)
        await forgotten(tmp_path)
        events = await log.read("gone", 0)
    assert {one.conversation for one in found} == {"kept"}
    assert events[-1].last == 2
    assert indexed(tmp_path) == {"kept": MESSAGES}


async def test_deletion_is_answered_and_counts_before_its_words_are_gone(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path) as log:
        await said(log, "gone")
        await said(log, "next")
        await delete(log, "gone")
        # Answered; from here on the writer takes nothing more out.
        go_on, held = holding_the_writer(log)
        try:
            found = await log.search("tide", limit=2 * MESSAGES)
            recalled = await log.recall("tide 3", project=None)
            in_between = left(tmp_path)
        finally:
            go_on.set()
        await held
        await forgotten(tmp_path)
    assert {one.conversation for one in found} == {"next"}
    assert "gone" not in {one.conversation for one in recalled}
    assert in_between > 0


async def test_appends_are_committed_between_the_steps(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path) as log:
        await said(log, "gone")
        await delete(log, "gone")
        await log.append(Append("other", 0, [line("other", 1)], listing=row("other")))
        in_between = left(tmp_path)
        await forgotten(tmp_path)
    assert in_between > 0


async def test_forgetting_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path) as log:
        await said(log, "kept")
        await said(log, "gone")
        await delete(log, "gone")
    # Closed at once: not all of it can be gone by now.
    assert left(tmp_path) > 0
    async with open_sqlite_log(tmp_path) as log:
        found = await log.search("tide", limit=2 * MESSAGES)
        await forgotten(tmp_path)
    assert {one.conversation for one in found} == {"kept"}
    assert indexed(tmp_path) == {"kept": MESSAGES}


async def test_defect_with_one_conversation_does_not_keep_the_next_from_being_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def forget(connection: apsw.Connection, conversation: str) -> bool:
        if conversation == "broken":
            loop.call_soon_threadsafe(failed.set)
            raise ValueError("A defect.")
        return forget_words(connection, conversation)

    monkeypatch.setattr(maintenance, "forget_words", forget)
    async with open_sqlite_log(tmp_path) as log:
        await said(log, "broken")
        await said(log, "gone")
        await delete(log, "broken")
        async with asyncio.timeout(WAIT_S):
            await failed.wait()
        await delete(log, "gone")
        async with asyncio.timeout(WAIT_S):
            while await asyncio.to_thread(left, tmp_path) > MESSAGES:
                pass
    monkeypatch.undo()
    # The next start takes up what was left.
    async with open_sqlite_log(tmp_path):
        await forgotten(tmp_path)


async def test_long_messages_are_forgotten_in_smaller_steps(tmp_path: Path) -> None:
    long = "tide " * (FORGOTTEN_BYTES // 5 + 1)
    documents = [Document(f"m{number}", 1, "user", long) for number in range(3)]
    async with open_sqlite_log(tmp_path) as log:
        await log.append(Append("gone", 0, [line("gone", 1)], listing=row("gone"), documents=documents))
        more = [await log._writer.run(lambda connection: forget_words(connection, "gone")) for _ in range(3)]
    assert more == [True, True, False]
    assert indexed(tmp_path) == {}


async def test_pages_of_a_deleted_conversation_are_used_again(tmp_path: Path) -> None:
    async def pages(log: SqliteLog, name: str, deleted: bool) -> None:
        words = " ".join(f"w{number:05}" for number in range(3_000))
        documents = [Document(f"m{number}", 1, "user", words) for number in range(FORGOTTEN_AT_ONCE)]
        await log.append(Append(name, 0, [line(name, 1)], listing=row(name), documents=documents))
        if deleted:
            await delete(log, name)
            await forgotten(folder)

    sizes: dict[bool, int] = {}
    for deleted in (True, False):
        folder = tmp_path / str(deleted)
        async with open_sqlite_log(folder) as log:
            for number in range(10):
                await pages(log, f"c{number}", deleted)
        sizes[deleted] = (folder / "palaver.db").stat().st_size
    assert sizes[True] < sizes[False] / 2
