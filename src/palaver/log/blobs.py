"""Large payloads as files, named by the SHA-256 of their bytes: `blobs/ab/abcd…`.

A file gets its name only when all of it is on disk, so a name that exists is a blob that is whole. Nothing is ever changed
or removed here; the same bytes are kept once.
"""

import asyncio
import errno
import os
import re
from hashlib import file_digest, sha256
from pathlib import Path
from secrets import token_hex

import apsw

from palaver.errors import LogUnavailable
from palaver.log.directory import DataDirectory, sync_directory
from palaver.log.sqlite.database import storage_full
from palaver.log.sqlite.readers import Readers
from palaver.log.sqlite.writer import Writer
from palaver.log.verify import blob_changed, blob_missing
from palaver.schema.base import BlobRef

_ID = re.compile("[0-9a-f]{64}")
PARTIAL = ".partial"
"""The ending of a file that is still being written, or was when the power went."""


def blob_path(directory: Path, blob: str) -> Path:
    return directory / blob[:2] / blob


class FileBlobs:
    def __init__(self, directory: DataDirectory, readers: Readers, writer: Writer) -> None:
        self._directory = directory
        self._readers = readers
        self._writer = writer

    async def put(self, data: bytes, mime: str) -> BlobRef:
        """The first type a payload came with stays its type."""
        blob = await asyncio.to_thread(self._store, data)
        mime = await self._writer.run(lambda connection: _mime_of(connection, blob, mime, len(data)))
        return BlobRef(id=blob, size=len(data), mime=mime)

    def _store(self, data: bytes) -> str:
        blob = sha256(data).hexdigest()
        try:
            _write(blob_path(self._directory.blobs, blob), data)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise storage_full(self._directory.database) from error
            raise LogUnavailable(f"A blob could not be written: {error.strerror}. Look after the disk.") from error
        return blob

    async def get(self, blob: str) -> tuple[bytes, str] | None:
        if not _ID.fullmatch(blob):
            return None
        return await self._readers.ask(self._load, blob)

    def _load(self, connection: apsw.Connection, blob: str) -> tuple[bytes, str] | None:
        row = connection.execute("SELECT mime FROM blobs WHERE id = ?", (blob,)).fetchone()
        try:
            data = blob_path(self._directory.blobs, blob).read_bytes()
        except FileNotFoundError:
            return None
        return data, row[0] if row else BlobRef(id=blob, size=0).mime


def _mime_of(connection: apsw.Connection, blob: str, mime: str, size: int) -> str:
    connection.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?, ?)", (blob, mime, size))
    kept: str = connection.execute("SELECT mime FROM blobs WHERE id = ?", (blob,)).get
    return kept


def _write(path: Path, data: bytes) -> None:
    if not path.exists():
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700, exist_ok=True)
            sync_directory(path.parent.parent)
        partial = path.with_name(f"{path.name}.{token_hex(4)}{PARTIAL}")
        try:
            with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)
    # Also when it was there: whoever put it there may have died before this line.
    sync_directory(path.parent)


class BlobCheck:
    """What verify asks of blobs: each is read once, however many events name it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[str, str | None] = {}

    def fault(self, blob: str) -> str | None:
        if blob not in self._known:
            self._known[blob] = self._fault(blob)
        return self._known[blob]

    def _fault(self, blob: str) -> str | None:
        try:
            with blob_path(self._directory, blob).open("rb") as file:
                return None if file_digest(file, "sha256").hexdigest() == blob else blob_changed(blob)
        except OSError:
            return blob_missing(blob)
