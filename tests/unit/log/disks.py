"""Disks that are full or broken: for real where mounting is permitted, else as near as the database can come to it."""

import errno
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import apsw

from palaver.log.sqlite.store import SqliteLog

SIZE_BYTES = 8 << 20
_CHUNK_BYTES = 64 << 10


class Disk(Protocol):
    """A small disk for a data directory. `kind` says which it is."""

    kind: str
    directory: Path

    async def fill(self, log: SqliteLog) -> None: ...

    async def make_room(self, log: SqliteLog) -> None: ...


class RealDisk:
    """A filesystem of its own, filled by a file."""

    kind = "a mounted tmpfs"

    def __init__(self, mount: Path) -> None:
        self.directory = mount / "data"
        self._filler = mount / "filler"

    async def fill(self, log: SqliteLog) -> None:
        self.fill_now()

    def fill_now(self) -> None:
        with self._filler.open("ab", buffering=0) as file:
            for size in (_CHUNK_BYTES, 512, 1):
                try:
                    while file.write(b"x" * size):
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    async def make_room(self, log: SqliteLog) -> None:
        self._filler.unlink()


class PageLimit:
    """Mounting is not permitted: the database is told to take no more pages. No reserve can help against that."""

    kind = "a limit on the database's pages, because mounting is not permitted here"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    async def fill(self, log: SqliteLog) -> None:
        def limit(connection: apsw.Connection) -> None:
            connection.pragma("max_page_count", connection.pragma("page_count"))

        await log._writer.run(limit)

    async def make_room(self, log: SqliteLog) -> None:
        await log._writer._loop.run_in_executor(None, log._writer._connection.pragma, "max_page_count", 1 << 30)


@contextmanager
def small_disk(path: Path) -> Iterator[Disk]:
    mount = path / "mount"
    mount.mkdir()
    try:
        options = ["-t", "tmpfs", "-o", f"size={SIZE_BYTES}"]
        subprocess.run(["mount", *options, "tmpfs", str(mount)], capture_output=True, check=True, timeout=10)
    except (OSError, subprocess.CalledProcessError):
        yield PageLimit(path / "data")
        return
    try:
        yield RealDisk(mount)
    finally:
        subprocess.run(["umount", str(mount)], check=True, timeout=10)
