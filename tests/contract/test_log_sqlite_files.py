"""The data directory of the SQLite store: private, held by one process, refused when it is not ours, cheap to open."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from palaver.errors import ConfigurationError
from palaver.log import listings, runs
from palaver.log.base import Append, Document
from palaver.log.sqlite import migrations, queries, snapshots
from palaver.log.sqlite.database import open_reading
from palaver.log.sqlite.fulltext import prepare, search
from palaver.log.sqlite.store import SqliteLog, open_sqlite_log
from tests.unit.log.stores import WAIT_S, WITHOUT_RUNS, append, line, row, run

pytestmark = pytest.mark.anyio


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def complaint_of_another_process(directory: Path) -> str:
    opener = subprocess.run(
        [sys.executable, "-m", "tests.unit.log.appender", str(directory)],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert opener.returncode != 0
    return opener.stderr


@contextmanager
def held_by_another_process(directory: Path) -> Iterator[int]:
    """Until the end of the block, when it is killed."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.unit.log.appender", str(directory)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        try:
            yield holder.pid
        finally:
            holder.kill()
            holder.communicate(timeout=WAIT_S)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_directories_and_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "data"
    before = os.umask(0)
    try:
        async with open_sqlite_log(directory) as log:
            await append(log, "a", 0)
            await log.blobs.put(b"tea", "text/plain")
            await log.backup(tmp_path / "copy")
            found = {path: mode(path) for top in (directory, tmp_path / "copy") for path in [top, *top.rglob("*")]}
    finally:
        os.umask(before)
    assert {path.name for path in found} >= {
        "palaver.db",
        "palaver.db-wal",
        "palaver.db-shm",
        "palaver.lock",
        "reserve",
    }
    assert [path for path, seen in found.items() if seen != (0o700 if path.is_dir() else 0o600)] == []


async def test_a_directory_that_was_open_to_others_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    async with open_sqlite_log(tmp_path / "data"):
        assert mode(tmp_path / "data") == 0o700


async def test_the_database_is_set_up_to_survive_power_loss(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path / "data") as log:
        settings = await log._writer.run(
            lambda connection: [
                connection.pragma(name) for name in ("journal_mode", "synchronous", "page_size", "wal_autocheckpoint")
            ]
        )
        strict = await log._readers.ask(
            lambda connection: (
                connection.execute(
                    "SELECT count(*) FROM pragma_table_list WHERE type = 'table' AND strict = 0 "
                    "AND name NOT LIKE 'sqlite_%' AND schema = 'main'"
                ).get
            )
        )
    assert settings == ["wal", 2, 4096, 0]
    assert strict == 0


async def test_a_second_opener_is_told_who_holds_the_directory(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    async with open_sqlite_log(directory) as log:
        await append(log, "a", 0)
        with pytest.raises(ConfigurationError, match=rf"process {os.getpid()}\b.*--data"):
            await SqliteLog.open(directory)
        assert f"in use by process {os.getpid()}" in complaint_of_another_process(directory)
        await append(log, "a", 1)
    async with open_sqlite_log(directory) as log:
        assert await log.position() == 2


async def test_a_killed_holder_leaves_the_directory_free(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with held_by_another_process(directory) as pid, pytest.raises(ConfigurationError, match=rf"process {pid}\b"):
        await SqliteLog.open(directory)
    async with open_sqlite_log(directory) as log:
        assert await log.position() > 0


async def test_a_database_of_a_newer_release_is_refused_and_left_alone(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    async with open_sqlite_log(directory) as log:
        await append(log, "a", 0)
    connection = apsw.Connection(str(directory / "palaver.db"))
    version = connection.pragma("user_version")
    connection.pragma("user_version", version + 1)
    connection.close()
    with pytest.raises(ConfigurationError, match="newer release"):
        await SqliteLog.open(directory)
    connection = apsw.Connection(str(directory / "palaver.db"))
    assert connection.pragma("user_version") == version + 1
    connection.pragma("user_version", version)
    connection.close()
    async with open_sqlite_log(directory) as log:
        assert await log.position() == 1


async def test_what_is_not_our_database_is_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    connection = apsw.Connection(str(foreign / "palaver.db"))
    connection.execute("CREATE TABLE recipes (cake TEXT)")
    connection.close()
    text = tmp_path / "text"
    text.mkdir()
    (text / "palaver.db").write_bytes(b"Dear diary, " * 1000)
    (tmp_path / "file").write_text("no directory")
    for directory in (foreign, text, tmp_path / "file"):
        with pytest.raises(ConfigurationError, match="--data"):
            await SqliteLog.open(directory)
    assert (text / "palaver.db").read_bytes() == b"Dear diary, " * 1000


def test_layouts_are_numbered_without_a_gap() -> None:
    assert sorted(migrations._scripts()) == list(range(1, len(migrations._scripts()) + 1))


async def test_a_database_from_before_there_were_runs_is_brought_to_the_layout_of_today(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    async with open_sqlite_log(directory) as log:
        await log.append(Append("a", 0, [line("a", 1)], row("a")))
    connection = apsw.Connection(str(directory / "palaver.db"))
    connection.execute(f"{WITHOUT_RUNS}; PRAGMA user_version = 2")
    connection.close()
    async with open_sqlite_log(directory) as log:
        assert [listing.id for listing in (await log.list()).items] == ["a"]
        assert await log.runs() == []
        await log.append(Append("a", 1, [line("a", 2)], row("a"), runs=[run("t1", "a")]))
        assert await log.runs() == [run("t1", "a")]
        assert (await log.verify()).damages == []


async def test_no_question_reads_more_than_it_needs(tmp_path: Path) -> None:
    """Plans, not times: every search goes by an index, and nothing is sorted that could have been found in order."""
    directory = tmp_path / "data"
    async with open_sqlite_log(directory) as log:
        for number in range(30):
            name = f"c{number}"
            text = Document("m", 1, "user", "tea")
            listed = row(name, open_requests=number % 2, root="c1" if number % 10 == 2 else None)
            ran = run(f"t{number}", name, parent="t1" if number % 10 == 2 else None)
            await log.append(Append(name, 0, [line(name, 1)], listed, [text], runs=[ran]))
    connection = open_reading(directory / "palaver.db")
    prepare(connection)
    asked: list[str] = []

    def plan(_: apsw.Cursor, sql: str, bindings: "apsw.Bindings | None") -> bool:
        if sql.startswith(("SELECT", "\nSELECT")):
            connection.set_exec_trace(None)
            asked.extend(step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings))
            connection.set_exec_trace(plan)
        return True

    connection.set_exec_trace(plan)
    queries.read(connection, "c1", 0, 1)
    queries.read_all(connection, 3, 1)
    queries.head(connection, "c1")
    queries.find_used(connection, "c1", "one")
    snapshots.load(connection, "c1", 10)
    snapshots.before(connection, "c1", 5, 10)
    listings.one(connection, "c1")
    first = listings.page(connection, 5, None, None, False, False, None)
    listings.page(connection, 5, first.next_cursor, "/p", None, True, None)
    listings.list_changed(connection, 3, 10)
    listings.waiting(connection)
    listings.list_unfinished(connection)
    runs.one(connection, "t1")
    runs.children(connection, "t1")
    for conversation, project, before in (
        (None, None, None),
        ("c1", None, "t9"),
        (None, "/p", "t9"),
        ("c1", "/p", None),
    ):
        runs.page(connection, conversation, project, 5, before)
    search(connection, "tea", 5, None)
    search(connection, "tea", 5, "c1")
    connection.set_exec_trace(None)
    connection.close()
    scans = [step for step in asked if step.startswith("SCAN") and "USING" not in step and "VIRTUAL TABLE" not in step]
    assert asked
    assert scans == []
    assert [step for step in asked if "TEMP B-TREE" in step] == []


async def test_opening_and_closing_again_and_again_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path / "data") as log:
        await append(log, "a", 0)
    before = open_descriptors()
    for after in range(1, 20):
        async with open_sqlite_log(tmp_path / "data") as log:
            await asyncio.wait_for(append(log, "a", after), WAIT_S)
            await log.search("tea")
    assert open_descriptors() == before
