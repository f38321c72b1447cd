"""A disk that fails for a while: no answer that is not true, nothing half-written, and no restart when it is well again."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from palaver.errors import LogError, LogUnavailable, StorageFull
from palaver.log.base import Appended
from palaver.log.sqlite.store import open_sqlite_log
from tests.unit.log.stores import WAIT_S, append, lines, read_lines

pytestmark = pytest.mark.anyio


class Faults:
    """What the disk refuses at the moment, by the name of the operation on the write-ahead log."""

    def __init__(self) -> None:
        self.code: dict[str, int] = {}

    def strike(self, operation: str, file: str) -> None:
        if file.endswith("-wal") and operation in self.code:
            raise apsw.exception_for(self.code[operation])


class BrokenFile(apsw.VFSFile):
    def __init__(self, faults: Faults, name: "str | apsw.URIFilename | None", flags: list[int]) -> None:
        self._faults = faults
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        self._faults.strike("write", self._name)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._faults.strike("sync", self._name)
        super().xSync(flags)


class BrokenDisk(apsw.VFS):
    """Every database opened while it is registered lies on it."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        super().__init__("broken", "unix", makedefault=True)

    def xOpen(self, name: "str | apsw.URIFilename | None", flags: list[int]) -> BrokenFile:  # noqa: N802 - SQLite's name
        return BrokenFile(self._faults, name, flags)


@pytest.fixture
def faults() -> Iterator[Faults]:
    found = Faults()
    disk = BrokenDisk(found)
    yield found
    disk.unregister()


@pytest.mark.parametrize(
    ("operation", "code", "refusal"),
    [
        ("sync", apsw.SQLITE_IOERR_FSYNC, LogUnavailable),
        ("write", apsw.SQLITE_IOERR_WRITE, StorageFull),
        ("write", apsw.SQLITE_FULL, StorageFull),
    ],
)
async def test_a_failing_disk_loses_no_answer_and_heals_without_a_restart(
    tmp_path: Path, faults: Faults, operation: str, code: int, refusal: type[LogError]
) -> None:
    directory = tmp_path / "data"
    async with open_sqlite_log(directory) as log:
        await append(log, "a", 0, 2)
        faults.code[operation] = code
        failing = [append(log, "a", 2), append(log, "b", 0), append(log, "c", 0)]
        outcomes = await asyncio.wait_for(asyncio.gather(*failing, return_exceptions=True), WAIT_S)
        assert [type(outcome) for outcome in outcomes] == [refusal] * 3
        assert await read_lines(log, "a") == lines("a", 0, 2)
        assert await log.head("b") is None
        assert await log.position() == 2
        faults.code.clear()
        assert await append(log, "a", 2) == Appended(3, 3, 3)
        assert await append(log, "b", 0) == Appended(1, 1, 4)
    async with open_sqlite_log(directory) as log:
        assert await read_lines(log, "a") == lines("a", 0, 3)
        assert await read_lines(log, "b") == lines("b", 0, 1)
        assert await log.head("c") is None
        assert (await log.verify()).damages in ([], ())
