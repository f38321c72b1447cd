"""Repair of a damaged SQLite store: what it rebuilds is what was there, and what it cannot rebuild is named."""

import asyncio
import logging
import shutil
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from palaver.conversation.index_rows import claims_of, documents_of, listing_of, runs_of
from palaver.conversation.recovery.load import snapshot_of
from palaver.conversation.recovery.reconstruction import reconstruct
from palaver.core.fold.evolve import fold
from palaver.errors import LogCorrupt
from palaver.log.base import Append
from palaver.log.sqlite.inspect import verify_directory
from palaver.log.sqlite.page_carver import PAGE_BYTES
from palaver.log.sqlite.store import open_sqlite_log
from palaver.schema.events import encode_event
from palaver.schema.view import State
from tests.attacks.test_damaged_store import events_of, quiet
from tests.unit.log.stores import append

pytestmark = pytest.mark.anyio

NAMES = [f"talk-{number:06}" for number in range(60)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("store") / "data"

    async def write() -> None:
        async with open_sqlite_log(directory) as log:
            for name in NAMES:
                events = events_of(name)
                state = fold(State(), events)
                lines = [encode_event(event) for event in events]
                documents, claims, runs = (
                    documents_of(state, events),
                    claims_of(events),
                    runs_of(State(), state, events),
                )
                await log.append(Append(name, 0, lines, listing_of(state), documents, claims=claims, runs=runs))
                await log.save_snapshot(name, snapshot_of(state, 0))

    asyncio.run(write())
    return directory


@pytest.fixture
def data(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "data")


def ask(data: Path, sql: str) -> list[Any]:
    with closing(apsw.Connection(str(data / "palaver.db"))) as connection:
        return list(connection.execute(sql))


def zero_leaf(data: Path, tree: str) -> set[str]:
    """Overwrites the leaf in the middle of a table or an index; answers the conversations that it names."""
    pages = ask(data, f"SELECT pageno FROM dbstat WHERE name = '{tree}' AND pagetype = 'leaf' ORDER BY path")
    page = pages[len(pages) // 2][0]
    was = (data / "palaver.db").read_bytes()[(page - 1) * PAGE_BYTES : page * PAGE_BYTES]
    write_page(data, page, bytes(PAGE_BYTES))
    return {name for name in NAMES if name.encode() in was}


def write_page(data: Path, page: int, body: bytes) -> None:
    with (data / "palaver.db").open("r+b") as file:
        file.seek((page - 1) * PAGE_BYTES)
        file.write(body)


REBUILT = {
    # The position of a row that is made anew is that of its conversation's last event.
    "listings": "SELECT conversation, json_set(CAST(body AS TEXT), '$.pos', 0) FROM listings ORDER BY 1",
    "messages": "SELECT conversation, seq, body FROM messages ORDER BY 1, 2",
    "claims": "SELECT conversation, client_request_id, body_hash, first FROM claims ORDER BY 1, 2",
    "documents": "SELECT conversation, message, role, text FROM documents ORDER BY 1, 2",
    "runs": "SELECT run, conversation, project, parent, body FROM runs ORDER BY 1",
    "conversations": "SELECT number, name, head, chain FROM conversations ORDER BY 1",
}


@pytest.mark.parametrize("table", REBUILT)
async def test_rebuilt_rows_are_those_that_were_lost(data: Path, table: str) -> None:
    before = ask(data, REBUILT[table])
    zero_leaf(data, table)
    async with open_sqlite_log(data, reconstruct) as log:
        await look_at_everything(log)
    assert ask(data, REBUILT[table]) == before
    assert verify_directory(data, quiet).damages in ((), [])


async def look_at_everything(log: Any) -> None:
    await log.list(limit=100)
    await log.search("question", limit=200)
    await log.runs(limit=1000)
    for name in NAMES:
        await log.load_snapshot(name, 100)
        await log.used(name, f"made-{name}")
        await log.search("question", conversation=name)


async def test_repair_says_what_it_found_and_what_it_rebuilt(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    zero_leaf(data, "listings")
    with caplog.at_level(logging.WARNING):
        async with open_sqlite_log(data, reconstruct) as log:
            assert len((await log.list(limit=100)).items) == len(NAMES)
    told = {entry.message: vars(entry).get("facts", {}) for entry in caplog.records}
    assert told["damaged tables were rebuilt; `palaver verify` says what is left"]["tables"] == "listings"
    rebuilt = told["rebuilding a damaged table"]
    assert rebuilt["conversations"] == len(NAMES)
    assert 0 < rebuilt["derived_from_events"] < len(NAMES)


async def test_healthy_store_is_never_repaired(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with open_sqlite_log(data, reconstruct) as log:
        await look_at_everything(log)
    assert "damaged" not in caplog.text


async def test_row_that_is_no_json_is_rebuilt(data: Path) -> None:
    ask(data, "UPDATE listings SET body = x'7b7b' WHERE conversation = 7")
    async with open_sqlite_log(data, reconstruct) as log:
        assert {row.id for row in (await log.list(limit=100)).items} == set(NAMES)


async def test_damaged_list_of_free_pages_keeps_nobody_from_writing(data: Path) -> None:
    ask(data, "CREATE TABLE dropped AS SELECT * FROM messages")
    ask(data, "DROP TABLE dropped")
    ask(data, "PRAGMA wal_checkpoint(TRUNCATE)")
    trunk = int.from_bytes((data / "palaver.db").read_bytes()[32:36], "big")
    write_page(data, trunk, Random(1).randbytes(PAGE_BYTES))
    async with open_sqlite_log(data, reconstruct) as log:
        for number in range(200):
            await append(log, f"new-{number}", 0, 20)
    assert verify_directory(data, quiet).damages in ((), [])


@pytest.mark.parametrize(("first", "where"), [(1, "first = 1"), (34, "first = 34"), (67, "first = 67")])
async def test_missing_events_are_an_error_and_never_read_over(tmp_path: Path, first: int, where: str) -> None:
    async with open_sqlite_log(tmp_path / "data") as log:
        for after in (0, 33, 66):
            await append(log, "a", after, 33)
        await append(log, "b", 0, 3)
    ask(tmp_path / "data", f"DELETE FROM segments WHERE conversation = 1 AND {where}")
    async with open_sqlite_log(tmp_path / "data", reconstruct) as log:
        for after in range(0, first - 1, 33):
            assert [segment.first for segment in await log.read("a", after, 1)] == [after + 1]
        with pytest.raises(LogCorrupt, match=f"events {first} to {first + 32} .*palaver salvage"):
            await log.read("a", first - 1)
        assert await log.read("b", 0)
        assert await log.read("a", 99) in ((), [])


async def test_bus_goes_on_behind_damaged_events(data: Path) -> None:
    lost = zero_leaf(data, "segments")
    async with open_sqlite_log(data, reconstruct) as log:
        seen, position = set[str](), 0
        while found := await log.read_all(position):
            seen |= {name for name, _ in found}
            last = found[-1][1]
            position = last.pos + last.last - last.first
    assert lost
    assert seen == set(NAMES) - lost


@pytest.mark.parametrize("tree", ["documents", "runs", "listings_waiting", "words_data"])
async def test_verify_names_the_damaged_table(data: Path, tree: str) -> None:
    zero_leaf(data, tree)
    damages = verify_directory(data, quiet).damages
    assert damages
    assert {damage.conversation for damage in damages} == {""}
    assert any(tree.split("_", maxsplit=1)[0] in damage.what for damage in damages), damages
