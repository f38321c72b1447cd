"""A full disk: a clear refusal, nothing half-written, reads and stops still work, and no restart afterwards."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.errors import StorageFull
from palaver.log.base import Append, Appended, Document, Snapshot
from palaver.log.sqlite.reserve import RESERVE_BYTES
from palaver.log.sqlite.store import SqliteLog, open_sqlite_log
from tests.unit.log.disks import Disk, RealDisk, small_disk
from tests.unit.log.stores import WAIT_S, append, line, read_lines, row

pytestmark = pytest.mark.anyio

LARGE = b'{"text":"%s"}' % (b"x" * 100_000)


@pytest.fixture
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Disk]:
    with small_disk(tmp_path) as found:
        request.node.add_report_section("setup", "disk", f"The disk of this test is {found.kind}.")
        yield found


async def begun(log: SqliteLog) -> None:
    document = Document("m", 1, "user", "tea")
    await log.append(Append("a", 0, [line("a", 1)], row("a"), [document]))


async def until_full(log: SqliteLog, conversation: str, after: int, *, urgent: bool = False) -> int:
    """Append large events until there is no more room; answers the head."""
    for seq in range(after, 1_000):
        try:
            await log.append(Append(conversation, seq, [LARGE], urgent=urgent))
        except StorageFull:
            return seq
    raise AssertionError("the disk was never full")


async def test_a_full_disk_refuses_appends_and_nothing_of_them_is_written(disk: Disk) -> None:
    async with open_sqlite_log(disk.directory) as log:
        await begun(log)
        await disk.fill(log)
        seq = await until_full(log, "b", 0)
        position = await log.position()
        with pytest.raises(StorageFull, match="make room"):
            await log.append(
                Append("a", 1, [LARGE] * 5, row("a", title="new"), [Document("n", 2, "user", "coffee")]),
            )
        assert await log.position() == position
        head = await log.head("a")
        assert head
        assert head.seq == 1
        listing = await log.listing("a")
        assert listing
        assert listing.title == "About a"
        assert list(await log.search("coffee")) == []
        assert len(await read_lines(log, "b")) == seq


async def test_a_full_disk_still_answers_every_question(disk: Disk) -> None:
    async with open_sqlite_log(disk.directory) as log:
        await begun(log)
        await disk.fill(log)
        await until_full(log, "b", 0)
        assert await read_lines(log, "a") == [line("a", 1)]
        assert [found.message for found in await log.search("tea")] == ["m"]
        assert (await log.list()).total == 1
        assert (await log.verify()).damages in ([], ())


async def test_appends_go_on_when_there_is_room_again_without_a_restart(disk: Disk) -> None:
    async with open_sqlite_log(disk.directory) as log:
        await begun(log)
        await disk.fill(log)
        seq = await until_full(log, "b", 0)
        await disk.make_room(log)
        assert (await append(log, "a", 1, 3)).first == 2
        assert (await log.append(Append("b", seq, [LARGE]))).first == seq + 1
        await log.save_snapshot("a", Snapshot(4, b"head"))
        assert (await log.verify()).damages in ([], ())
    async with open_sqlite_log(disk.directory) as log:
        assert len(await read_lines(log, "a")) == 4
        assert len(await read_lines(log, "b")) == seq + 1


async def test_a_small_append_beside_a_large_one_is_not_refused_with_it(disk: Disk) -> None:
    async with open_sqlite_log(disk.directory) as log:
        await begun(log)
        await disk.fill(log)
        seq = await until_full(log, "b", 0)
        await disk.make_room(log)
        huge = Append("b", seq, [b'{"text":"%s"}' % (b"x" * (12 << 20))])
        if not isinstance(disk, RealDisk):
            await disk.fill(log)
        outcomes = await asyncio.wait_for(
            asyncio.gather(log.append(huge), append(log, "a", 1), return_exceptions=True), WAIT_S
        )
        assert isinstance(outcomes[0], StorageFull)
        if isinstance(disk, RealDisk):
            assert isinstance(outcomes[1], Appended)


async def test_urgent_appends_have_a_reserve_that_is_put_back_later(disk: Disk) -> None:
    async with open_sqlite_log(disk.directory) as log:
        await begun(log)
        reserve = disk.directory / "reserve"
        assert reserve.stat().st_size == RESERVE_BYTES
        await disk.fill(log)
        await until_full(log, "b", 0)
        if not isinstance(disk, RealDisk):
            # The reserve is spent, but a limit on pages is not moved by free space.
            with pytest.raises(StorageFull):
                await log.append(Append("a", 1, [LARGE], urgent=True))
            assert not reserve.exists()
            return
        stopped = await log.append(Append("a", 1, [line("a", 2)], row("a", title="stopped"), urgent=True))
        assert stopped == Appended(2, 2, await log.position())
        assert not reserve.exists()
        # What is left now is for stops alone, however small the others are.
        with pytest.raises(StorageFull):
            await append(log, "c", 0)
        for seq in range(2, 40):
            await log.append(Append("a", seq, [line("a", seq + 1)], urgent=True))
        await disk.make_room(log)
        assert (await append(log, "a", 40)).first == 41
        assert reserve.stat().st_size == RESERVE_BYTES
        assert (await log.verify()).damages in ([], ())


async def test_a_blob_that_does_not_fit_leaves_nothing_behind(disk: Disk) -> None:
    if not isinstance(disk, RealDisk):
        return  # Blobs are files: a limit on the database's pages does not concern them.
    async with open_sqlite_log(disk.directory) as log:
        await disk.fill(log)
        with pytest.raises(StorageFull):
            await log.blobs.put(b"x" * (1 << 20), "text/plain")
        assert [path for path in disk.directory.glob("blobs/**/*") if path.is_file()] == []
        await disk.make_room(log)
        ref = await log.blobs.put(b"x" * (1 << 20), "text/plain")
        assert await log.blobs.get(ref.id) is not None


async def test_a_log_on_a_full_disk_can_be_opened_read_and_stopped(disk: Disk) -> None:
    if not isinstance(disk, RealDisk):
        return  # The limit is forgotten when the database is closed.
    async with open_sqlite_log(disk.directory) as log:
        await begun(log)
    disk.fill_now()
    async with open_sqlite_log(disk.directory) as log:
        assert await read_lines(log, "a") == [line("a", 1)]
        await until_full(log, "b", 0)
        assert (await log.append(Append("a", 1, [line("a", 2)], urgent=True))).first == 2
        await disk.make_room(log)
        assert (await append(log, "a", 2)).first == 3
