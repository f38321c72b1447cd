"""What only a disk can do to a log: crash, fill up, be opened twice, rot; and what one fsync can carry."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec
import pytest

from palaver.errors import ConfigurationError, StorageFull
from palaver.log.base import Append, Claim, Used
from palaver.log.sqlite import SqliteLog, open_sqlite_log
from tests.contract.log.lines import all_lines, deltas, row, write


async def test_everything_is_there_again_after_a_reopening(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path) as log:
        await write(log, "c", 0, 3, row("c"), claims=[Claim("request", "hash")])
        blob = await log.blobs.put(b"bytes", "text/plain")
        lines, head, epoch = await all_lines(log, "c"), await log.head("c"), log.epoch
    async with open_sqlite_log(tmp_path) as log:
        assert (await all_lines(log, "c"), await log.head("c"), log.epoch) == (lines, head, epoch)
        assert await log.used("c", "request") == Used("hash", 1, 3)
        assert await log.position() == 3
        assert await log.blobs.get(blob.id) == (b"bytes", "text/plain")


async def test_files_are_private_to_their_owner(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path / "data") as log:
        await write(log, "c")
        assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
        assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "data").iterdir())


async def test_second_opener_is_told_who_holds_the_directory(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path):
        code = (
            "import asyncio, sys, pathlib\n"
            "from palaver.log.sqlite import SqliteLog\n"
            "asyncio.run(SqliteLog.open(pathlib.Path(sys.argv[1])))"
        )
        second = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", code, str(tmp_path)), stderr=asyncio.subprocess.PIPE
        )
        _, err = await asyncio.wait_for(second.communicate(), 60)
        assert second.returncode != 0
        assert f"in use by process {os.getpid()}" in err.decode()


async def test_directory_of_a_newer_release_is_refused_with_words(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path) as log:
        await write(log, "c")
    connection = apsw.Connection(str(tmp_path / "palaver.db"))
    connection.pragma("user_version", 9_999)
    connection.close()
    with pytest.raises(ConfigurationError, match="newer"):
        await SqliteLog.open(tmp_path)


async def test_appends_of_one_moment_share_their_commits(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path) as log:
        before = log.commits
        for round_ in range(5):
            await asyncio.gather(*(write(log, f"c{number}", round_) for number in range(50)))
        assert log.commits - before <= 50
        assert len(await log.read_all(0, 1 << 24)) == 250


async def test_flipped_byte_is_found_and_blamed_on_its_conversation_alone(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path) as log:
        for name in ("good", "bad", "fine"):
            await write(log, name, 0, 4)
    connection = apsw.Connection(str(tmp_path / "palaver.db"))
    [(pos, body)] = connection.execute(
        "SELECT pos, body FROM segments WHERE conversation = (SELECT number FROM conversations WHERE name = 'bad')"
    )
    connection.execute("UPDATE segments SET body = ? WHERE pos = ?", (body.replace(b"t3 ", b"t4 "), pos))
    connection.close()
    async with open_sqlite_log(tmp_path) as log:
        verified = await log.verify()
        assert [damage.conversation for damage in verified.damages] == ["bad"]
        assert verified.conversations == 3
        assert not (await log.verify("good")).damages
        assert len(await all_lines(log, "fine")) == 4


WRITER = """
import asyncio, pathlib, sys
from palaver.log.sqlite import open_sqlite_log
from tests.contract.log.lines import write

async def main():
    async with open_sqlite_log(pathlib.Path(sys.argv[1])) as log:
        head = await log.head("c")
        seq = head.seq if head else 0
        while True:
            await write(log, "c", seq, 2)
            seq += 2
            print(seq, flush=True)

asyncio.run(main())
"""


def test_every_acknowledged_append_survives_kill_9(tmp_path: Path) -> None:
    acknowledged = 0
    for kill_after in (1, 7, 20):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )
        assert process.stdout is not None
        for _ in range(kill_after):
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split()
        acknowledged = int(rest[-1]) if rest and rest[-1].isdigit() else acknowledged
        process.wait()
        process.stdout.close()
        assert asyncio.run(_numbers(tmp_path)) >= acknowledged


async def _numbers(directory: Path) -> int:
    """The head, once numbering and chain have been checked."""
    async with open_sqlite_log(directory) as log:
        seqs = [msgspec.json.decode(line)["seq"] for line in await all_lines(log, "c")]
        assert seqs == list(range(1, len(seqs) + 1))
        assert not (await log.verify()).damages
        return len(seqs)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real filesystem of 12 MiB."""
    target = tmp_path / "disk"
    target.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", str(target)], check=False)
    if mounted.returncode:
        pytest.skip("mounting a small filesystem is not permitted here")
    try:
        yield target
    finally:
        subprocess.run(["umount", str(target)], check=True)


async def test_full_disk_refuses_in_words_reads_and_stops_go_on_and_space_heals_it(small_disk: Path) -> None:
    async with open_sqlite_log(small_disk / "data") as log:
        await write(log, "c", 0, 2)
        _fill(small_disk / "filler")
        written = await _append_until_full(log, 2)
        assert len(await all_lines(log, "c")) == written
        await log.append(Append("c", written, deltas(written + 1, 1), urgent=True))
        (small_disk / "filler").unlink()
        await write(log, "c", written + 1, 3)
        assert len(await all_lines(log, "c")) == written + 4
        assert not (await log.verify()).damages


def _fill(path: Path) -> None:
    """Takes all the space there is."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 16))


async def _append_until_full(log: SqliteLog, seq: int) -> int:
    for _ in range(200):
        try:
            await log.append(Append("c", seq, _large(seq + 1)))
        except StorageFull:
            return seq
        seq += 1
    raise AssertionError("a disk of 12 MiB took 40 MB")


def _large(seq: int) -> list[bytes]:
    return [b'{"type":"bench.large","seq":%d,"conversation":"c","x":"%s"}' % (seq, b"x" * 200_000)]
