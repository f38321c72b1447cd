"""What a deleted conversation leaves in a SQLite store: its events, and nothing in the index of the search."""

from pathlib import Path

import apsw
import pytest

from palaver.log.base import Append, Document
from palaver.log.sqlite import SqliteLog, open_sqlite_log
from palaver.log.upkeep import FORGOTTEN_AT_ONCE
from tests.unit.log.stores import line, row

pytestmark = pytest.mark.anyio

MESSAGES = 2 * FORGOTTEN_AT_ONCE + 3


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


async def test_words_of_a_deleted_conversation_are_taken_out_of_the_index(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path) as log:
        await said(log, "kept")
        await said(log, "gone")
        await log.append(Append("gone", 1, [line("gone", 2)], listing=row("gone", deleted=True)))
        found = await log.search("tide", limit=2 * MESSAGES)
        events = await log.read("gone", 0)
    assert {one.conversation for one in found} == {"kept"}
    assert events[-1].last == 2
    assert indexed(tmp_path) == {"kept": MESSAGES}


async def test_pages_of_a_deleted_conversation_are_used_again(tmp_path: Path) -> None:
    async def pages(log: SqliteLog, name: str, deleted: bool) -> None:
        words = " ".join(f"w{number:05}" for number in range(3_000))
        documents = [Document(f"m{number}", 1, "user", words) for number in range(FORGOTTEN_AT_ONCE)]
        await log.append(Append(name, 0, [line(name, 1)], listing=row(name), documents=documents))
        if deleted:
            await log.append(Append(name, 1, [line(name, 2)], listing=row(name, deleted=True)))

    sizes: dict[bool, int] = {}
    for deleted in (True, False):
        folder = tmp_path / str(deleted)
        async with open_sqlite_log(folder) as log:
            for number in range(10):
                await pages(log, f"c{number}", deleted)
        sizes[deleted] = (folder / "palaver.db").stat().st_size
    assert sizes[True] < sizes[False] / 2
