"""How the SQLite store writes: many appends a commit, no answer before it, and nobody dragged down by a neighbour."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from palaver.errors import LogUnavailable
from palaver.log.base import Append, Appended, Document, Snapshot
from palaver.log.sqlite.store import SqliteLog
from palaver.log.sqlite.writer import CHECKPOINT_PAGES
from tests.unit.log.stores import WAIT_S, append, line, lines, read_lines

pytestmark = pytest.mark.anyio


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[SqliteLog]:
    opened = await SqliteLog.open(tmp_path / "data")
    yield opened
    await asyncio.wait_for(opened.close(), WAIT_S)


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """The interpreter changes threads as often as it can: the writer takes whatever is there at any moment."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_threads")
async def test_appends_of_one_moment_share_one_commit(log: SqliteLog) -> None:
    before = log.commits
    await asyncio.wait_for(asyncio.gather(*(append(log, f"c{number}", 0, 3) for number in range(100))), WAIT_S)
    assert log.commits == before + 1


async def test_fifty_busy_conversations_need_far_fewer_commits_than_appends(log: SqliteLog) -> None:
    async def owner(name: str) -> None:
        for after in range(40):
            await append(log, name, after)

    before = log.commits
    await asyncio.wait_for(asyncio.gather(*(owner(f"c{number}") for number in range(50))), WAIT_S)
    assert log.commits - before < 50 * 40 / 10
    assert await log.position() == 50 * 40


async def test_snapshots_share_the_commit_of_the_appends_beside_them(log: SqliteLog) -> None:
    await append(log, "a", 0)
    before = log.commits
    both = asyncio.gather(append(log, "b", 0), log.save_snapshot("a", Snapshot(1, b"head")), append(log, "a", 1))
    await asyncio.wait_for(both, WAIT_S)
    assert log.commits == before + 1


async def test_work_that_fails_takes_none_of_its_commit_down(log: SqliteLog) -> None:
    unstorable = Append("odd", 0, [line("odd", 1)], documents=[Document("m", 1, "user", "half a pair: \ud83e")])
    outcomes = await asyncio.wait_for(
        asyncio.gather(
            append(log, "a", 0),
            log.append(unstorable),
            log.save_snapshot("nobody", Snapshot(1, b"head")),
            append(log, "b", 0),
            return_exceptions=True,
        ),
        WAIT_S,
    )
    assert [isinstance(outcome, Exception) for outcome in outcomes] == [False, True, True, False]
    assert await log.head("odd") is None
    assert await log.position() == 2
    assert await log.append(Append("odd", 0, [line("odd", 1)])) == Appended(1, 1, 3)
    assert (await log.verify()).damages in ([], ())


async def test_an_append_given_up_before_its_turn_is_not_written(log: SqliteLog) -> None:
    task = asyncio.create_task(append(log, "a", 0))
    await asyncio.sleep(0)  # It has handed its work over to this turn of the loop, not yet to the writer.
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await append(log, "b", 0) == Appended(1, 1, 1)
    assert await log.head("a") is None


async def test_close_finishes_what_was_accepted_and_refuses_the_rest(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path / "data")
    accepted = [asyncio.create_task(append(log, f"c{number}", 0)) for number in range(20)]
    await asyncio.sleep(0)
    await asyncio.wait_for(log.close(), WAIT_S)
    assert [await task for task in accepted] == [Appended(1, 1, number) for number in range(1, 21)]
    with pytest.raises(LogUnavailable):
        await append(log, "late", 0)
    with pytest.raises(LogUnavailable):
        await log.read("c0", 0)
    await log.close()
    again = await SqliteLog.open(tmp_path / "data")
    assert await again.position() == 20
    await again.close()


async def test_the_write_ahead_log_starts_over_instead_of_growing(log: SqliteLog, tmp_path: Path) -> None:
    page = b"x" * 60_000
    for number in range(300):
        await log.append(Append(f"c{number}", 0, [page]))
    assert (tmp_path / "data" / "palaver.db-wal").stat().st_size < 2 * CHECKPOINT_PAGES * 4096
    assert (tmp_path / "data" / "palaver.db").stat().st_size > 2_000 * 4096


async def test_a_closed_log_leaves_one_database_file_behind(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path / "data")
    await append(log, "a", 0)
    await log.read("a", 0)
    await log.close()
    assert not list((tmp_path / "data").glob("palaver.db-*"))


async def test_more_heads_than_are_remembered_keep_their_places(
    log: SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.log.sqlite.commit.REMEMBERED", 3)
    for after in range(0, 6, 2):
        for number in range(8):
            await append(log, f"c{number}", after, 2)
    for number in range(8):
        assert await read_lines(log, f"c{number}") == lines(f"c{number}", 0, 6)
    assert len(log._writer._heads._known) <= 3
