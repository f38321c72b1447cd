"""Damage to the write-ahead log of a killed server: nobody but `salvage` touches it, so that what can be saved stays.

A bit in every kind of frame and field, noise and zeros, against `verify`, a start and `backup`. What an ordinary crash leaves
behind is no damage and needs nobody's attention.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import unpack_from

import pytest

from palaver.conversation.recovery.salvage import salvage
from palaver.errors import ConfigurationError, LogCorrupt
from palaver.log.sqlite.inspect import backup_directory, verify_directory
from palaver.log.sqlite.store import SqliteLog, open_sqlite_log
from palaver.log.sqlite.wal_damage import FRAME_BYTES, FRAME_HEADER_BYTES, HEADER_BYTES, find_wal_damage
from tests.attacks.test_damaged_store import NAMES, contents, fill, quiet
from tests.flows.terminal import palaver

pytestmark = pytest.mark.anyio


@pytest.fixture
async def killed(tmp_path: Path) -> Path:
    """The data directory of a server that was killed: all that it committed is in the write-ahead log alone."""
    live, directory = tmp_path / "live", tmp_path / "data"
    async with open_sqlite_log(live) as log:
        await fill(log)
        shutil.copytree(live, directory)
    return directory


def wal_of(directory: Path) -> Path:
    return directory / "palaver.db-wal"


def commits_of(wal: bytes) -> list[int]:
    """The numbers of the frames that end a commit, from 0."""
    frames = range((len(wal) - HEADER_BYTES) // FRAME_BYTES)
    return [number for number in frames if unpack_from(">I", wal, HEADER_BYTES + number * FRAME_BYTES + 4)[0]]


def places_of(wal: bytes) -> Iterator[tuple[str, int]]:
    """A byte of every field of the header, and of a frame of each kind."""
    for name, at in (("magic", 3), ("order", 0), ("format", 5), ("page size", 10), ("reset", 13)):
        yield f"header {name}", at
    yield from (("header salt", 17), ("header salt 2", 21), ("header checksum", 25), ("header checksum 2", 31))
    commits = commits_of(wal)
    inner = next(number for number in range(20, len(wal)) if number not in commits)
    last = (len(wal) - HEADER_BYTES) // FRAME_BYTES - 1
    for kind, number in (("first", 0), ("inner", inner), ("commit", commits[len(commits) // 2]), ("last", last)):
        start = HEADER_BYTES + number * FRAME_BYTES
        fields = {"page": 3, "commit": 7, "salt": 9, "salt 2": 15, "checksum": 17, "checksum 2": 22}
        for name, at in fields.items():
            yield f"{kind} frame {name}", start + at
        for at in (0, 1, 2_051, 4_095):
            yield f"{kind} frame byte {at}", start + FRAME_HEADER_BYTES + at


PLACES = 9 + 4 * 10


async def saved_of(directory: Path, target: Path) -> tuple[object, ...]:
    shutil.rmtree(target, ignore_errors=True)
    found = await salvage(directory, target, quiet)
    return found.whole, found.events, found.damaged, found.blobs


def files_of(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in ("palaver.db", "palaver.db-wal")}


async def check_that_nobody_touches(directory: Path, tmp_path: Path, place: str) -> tuple[object, ...]:
    """Each in turn, and then the salvage that would have been possible at once. What it saved."""
    before = files_of(directory)
    expected = await saved_of(directory, tmp_path / "before")
    found = verify_directory(directory, quiet)
    assert any("write-ahead log" in damage.what for damage in found.damages), f"{place}: verify says {found.damages}"
    assert files_of(directory) == before, f"{place}: verify"
    with pytest.raises(ConfigurationError, match="palaver salvage"):
        await SqliteLog.open(directory)
    assert files_of(directory) == before, f"{place}: start"
    with pytest.raises(LogCorrupt, match="palaver salvage"):
        backup_directory(directory, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()
    assert files_of(directory) == before, f"{place}: backup"
    assert await saved_of(directory, tmp_path / "after") == expected, place
    return expected


@pytest.mark.parametrize("part", range(7))
async def test_flipped_bit_in_any_frame_is_found_and_left_for_salvage(killed: Path, tmp_path: Path, part: int) -> None:
    pristine = wal_of(killed).read_bytes()
    places = list(places_of(pristine))
    assert len(places) == PLACES
    for place, at in places[part::7]:
        data = bytearray(pristine)
        data[at] ^= 1 << at % 8
        wal_of(killed).write_bytes(data)
        saved = await check_that_nobody_touches(killed, tmp_path, place)
        # A page stands there in several versions, and a bit costs one of one.
        assert isinstance(saved[0], int)
        assert saved[0] >= len(NAMES), place


def zero(start: int, size: int) -> Callable[[bytearray], None]:
    def harm(data: bytearray) -> None:
        data[start : start + size] = bytes(size)

    return harm


def swap(data: bytearray) -> None:
    one, other = (HEADER_BYTES + number * FRAME_BYTES for number in (7, 9))
    first, second = bytes(data[one : one + FRAME_BYTES]), bytes(data[other : other + FRAME_BYTES])
    data[one : one + FRAME_BYTES], data[other : other + FRAME_BYTES] = second, first


HARMS: dict[str, Callable[[bytearray], None]] = {
    "zeroed header": zero(0, HEADER_BYTES),
    "zeroed first frame": zero(HEADER_BYTES, FRAME_BYTES),
    "zeroed header and frame": zero(0, HEADER_BYTES + FRAME_BYTES),
    "zeroed frames": zero(HEADER_BYTES + 5 * FRAME_BYTES, 3 * FRAME_BYTES),
    "zeroed page": zero(HEADER_BYTES + 10 * FRAME_BYTES + FRAME_HEADER_BYTES, 4096),
    "zeroed frame headers": zero(HEADER_BYTES + 10 * FRAME_BYTES, FRAME_HEADER_BYTES),
    "frames in another order": swap,
    "a sector of noise": lambda data: data.__setitem__(slice(8_192, 8_704), os.urandom(512)),
}


@pytest.mark.parametrize("harm", HARMS)
async def test_damage_before_later_commits_is_found_and_left_for_salvage(
    killed: Path, tmp_path: Path, harm: str
) -> None:
    data = bytearray(wal_of(killed).read_bytes())
    HARMS[harm](data)
    wal_of(killed).write_bytes(data)
    await check_that_nobody_touches(killed, tmp_path, harm)


# -- what is no damage


def cut(size: int) -> Callable[[bytes], bytes]:
    return lambda wal: wal[: len(wal) - size]


def torn(kept: int) -> Callable[[bytes], bytes]:
    """The last frame with the beginning of what was to be written, and then what stood there before."""

    def tear(wal: bytes) -> bytes:
        whole = len(wal) - FRAME_BYTES
        before = wal[HEADER_BYTES : HEADER_BYTES + FRAME_BYTES]
        return wal[: whole + kept] + before[kept:]

    return tear


def without_last_commit(wal: bytes) -> bytes:
    """Frames of a transaction that never came to its end."""
    *_, before, last = commits_of(wal)
    return wal[: HEADER_BYTES + max(before + 1, last) * FRAME_BYTES]


CRASHES: dict[str, Callable[[bytes], bytes]] = {
    "as it was killed": lambda wal: wal,
    "empty": lambda wal: b"",
    "half a header": lambda wal: wal[:20],
    "a header alone": lambda wal: wal[:HEADER_BYTES],
    "a header that was never completed": lambda wal: wal[:16] + bytes(16),
    "one byte short": cut(1),
    "half a frame": cut(2_000),
    "a frame header alone": cut(4096),
    "half a frame header": cut(4096 + 12),
    "a torn page": torn(24 + 512),
    "a page that was not written": torn(24),
    "half a torn page": torn(2_072),
    "an unfinished transaction": without_last_commit,
    "zeros behind the end": lambda wal: wal + bytes(10 * FRAME_BYTES),
    "noise behind the end": lambda wal: wal + os.urandom(10 * FRAME_BYTES),
}


@pytest.mark.parametrize("crash", CRASHES)
async def test_end_that_a_crash_leaves_is_no_damage(killed: Path, tmp_path: Path, crash: str) -> None:
    pristine = wal_of(killed).read_bytes()
    wal_of(killed).write_bytes(CRASHES[crash](pristine))
    assert find_wal_damage(killed / "palaver.db") is None
    if len(wal_of(killed).read_bytes()) < HEADER_BYTES + 20 * FRAME_BYTES:
        return  # Of this store nothing was ever in the file itself.
    assert verify_directory(killed, quiet).damages in ((), [])
    backup_directory(killed, tmp_path / "backup")
    assert verify_directory(tmp_path / "backup", quiet).damages in ((), [])
    async with open_sqlite_log(killed) as log:
        assert len((await log.list()).items) == len(NAMES)


async def test_frames_of_an_earlier_log_behind_the_end_are_no_damage(tmp_path: Path) -> None:
    database = tmp_path / "palaver.db"
    connection = sqlite3.connect(database, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("CREATE TABLE t (x)")
        for _ in range(20):
            connection.execute("INSERT INTO t VALUES (zeroblob(3000))")
        connection.execute("PRAGMA wal_checkpoint(restart)")
        for _ in range(3):
            connection.execute("INSERT INTO t VALUES (zeroblob(3000))")
        wal = tmp_path / "palaver.db-wal"
        assert wal.stat().st_size > HEADER_BYTES + 20 * FRAME_BYTES, "the earlier frames are still there"
        assert find_wal_damage(database) is None
        data = bytearray(wal.read_bytes())
        for field in (8, 16, 24 + 100):
            harmed = bytearray(data)
            harmed[HEADER_BYTES + FRAME_BYTES + field] ^= 4
            wal.write_bytes(harmed)
            assert find_wal_damage(database) is not None
        wal.write_bytes(data)
    finally:
        connection.close()


async def test_looking_at_a_killed_servers_store_changes_nothing(killed: Path, tmp_path: Path) -> None:
    before = files_of(killed)
    assert verify_directory(killed, quiet).damages in ((), [])
    backup_directory(killed, tmp_path / "backup")
    assert files_of(killed) == before
    assert await contents(tmp_path / "backup") == await contents(killed)


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop"])
async def test_write_ahead_log_that_is_no_file_is_damage_and_makes_nobody_wait(killed: Path, kind: str) -> None:
    wal = wal_of(killed)
    wal.unlink()
    match kind:
        case "folder":
            wal.mkdir()
        case "pipe":
            os.mkfifo(wal)
        case _:
            wal.symlink_to(wal.name)
    assert verify_directory(killed, quiet).damages
    with pytest.raises(ConfigurationError, match="db-wal"):
        await SqliteLog.open(killed)


async def test_store_behind_a_link_has_its_log_beside_the_file(killed: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "disk"
    elsewhere.mkdir()
    for name in ("palaver.db", "palaver.db-wal"):
        (killed / name).rename(elsewhere / name)
    (killed / "palaver.db").symlink_to(elsewhere / "palaver.db")
    data = bytearray((elsewhere / "palaver.db-wal").read_bytes())
    data[HEADER_BYTES + 50 * FRAME_BYTES + 100] ^= 1
    (elsewhere / "palaver.db-wal").write_bytes(data)
    with pytest.raises(ConfigurationError, match="palaver salvage"):
        await SqliteLog.open(killed)
    assert (await saved_of(killed, tmp_path / "new"))[0] == len(NAMES) + 1


# -- the commands


async def test_commands_exit_1_on_a_damaged_log_and_salvage_still_saves_all(killed: Path, tmp_path: Path) -> None:
    data = bytearray(wal_of(killed).read_bytes())
    data[HEADER_BYTES + 50 * FRAME_BYTES + 100] ^= 1
    wal_of(killed).write_bytes(data)
    code, out, err = await palaver(killed, "verify")
    assert (code, "write-ahead log is damaged at frame 51" in out, "all whole" in err) == (1, True, False)
    code, out, err = await palaver(killed, "backup", str(tmp_path / "backup"))
    assert (code, "palaver salvage" in err) == (1, True)
    code, out, err = await palaver(killed, "serve", "--no-open", "--port", "8499")
    assert code != 0
    assert "palaver salvage" in err
    assert "Traceback" not in err
    assert wal_of(killed).read_bytes() == data
    code, out, err = await palaver(killed, "salvage", "--to", str(tmp_path / "new"))
    assert code == 0, err
    assert f"saved: {len(NAMES) + 1} whole conversations" in out


async def test_salvage_that_loses_something_or_saves_nothing_exits_1(killed: Path, tmp_path: Path) -> None:
    wal_of(killed).write_bytes(b"")
    code, out, err = await palaver(killed, "salvage", "--to", str(tmp_path / "nothing"))
    assert code == 1, out
    assert "No conversation was found" in err
    assert "palaver serve" not in err
