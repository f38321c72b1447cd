"""Connections to the SQLite file: how they are set up, and what its errors mean to a caller.

`sqlite.py` opens one connection that writes and hands it to the writer; the readers open theirs here. The bundled library
of apsw is used because the one that comes with Python may carry the WAL-reset bug.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

import apsw

from palaver.errors import ConfigurationError, LogError, LogUnavailable, StorageFull
from palaver.log.migrations import migrate
from palaver.log.reserve import Reserve

BUSY_MS = 5_000
"""Nobody else writes; only somebody with a database shell can hold a lock, and then not for long."""
WRITER_CACHE_KIB = 32 << 10
"""The inner pages of every index that an append touches, for a log of some gigabytes."""
READER_CACHE_KIB = 8 << 10
WAL_KEPT_BYTES = 64 << 20
"""A write-ahead log that outgrew this, while a backup read, is cut back when it starts over."""

_OUT_OF_SPACE = frozenset(
    {apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP, apsw.SQLITE_IOERR_TRUNCATE}
)
"""How a quota or a full temporary filesystem shows itself when it is not plainly "full"."""


def open_writing(path: Path, reserve: Reserve) -> apsw.Connection:
    """The connection that writes, with today's layout. Raises ConfigurationError."""
    try:
        return _open_writing(path)
    except apsw.NotADBError:
        raise ConfigurationError(
            f"{path} is not a database, or is damaged. Save what is readable with `palaver salvage`, or choose another data "
            "directory with --data."
        ) from None
    except apsw.Error as error:
        # Even to read, SQLite needs a little space beside the file. A full disk must not keep a log from being opened.
        failure = log_error(error, path)
        if isinstance(failure, StorageFull) and reserve.spend():
            return open_writing(path, reserve)
        raise ConfigurationError(
            f"{path} cannot be opened: {error}. Look after the disk; `palaver salvage` saves what is readable."
        ) from error


def _open_writing(path: Path) -> apsw.Connection:
    if not path.exists():
        # Before SQLite does it: the write-ahead log and its index take their permissions from this file.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        _set_up(connection, WRITER_CACHE_KIB)
        connection.pragma("page_size", 4096)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
        # Where fsync alone does not reach the platter (macOS).
        connection.pragma("fullfsync", 1)
        connection.pragma("journal_size_limit", WAL_KEPT_BYTES)
        # The writer itself says when: after the answers, never between a commit and its answers.
        connection.wal_autocheckpoint(0)
        migrate(connection)
        connection.execute("INSERT OR IGNORE INTO store VALUES (1, ?, 0)", (token_hex(8),))
    except BaseException:
        connection.close()
        raise
    return connection


def open_reading(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    _set_up(connection, READER_CACHE_KIB)
    connection.pragma("query_only", 1)
    return connection


def _set_up(connection: apsw.Connection, cache_kib: int) -> None:
    connection.set_busy_timeout(BUSY_MS)
    connection.pragma("cache_size", -cache_kib)
    connection.pragma("temp_store", "memory")


@contextmanager
def one_view(connection: apsw.Connection) -> Iterator[None]:
    """Whatever is asked within sees the log of one moment."""
    with connection:
        yield


def log_error(error: Exception, path: Path) -> Exception:
    """What a failure of the database is to the caller. A refusal of our own, or a defect, stays what it is."""
    match error:
        case LogError() | ValueError():
            return error
        case apsw.FullError():
            return storage_full(path)
        case apsw.IOError() if getattr(error, "extendedresult", None) in _OUT_OF_SPACE:
            return storage_full(path)
        case apsw.CorruptError() | apsw.NotADBError():
            return LogUnavailable(
                f"The log in {path.parent} is damaged: {error}. `palaver verify` says what is hit, `palaver salvage` saves "
                "the rest."
            )
        case apsw.Error():
            return LogUnavailable(
                f"The log in {path.parent} cannot be reached: {error}. Nothing was written; look after the disk and "
                "try again."
            )
        case _:
            return LogUnavailable(f"The log could not take this: {error!r}. Nothing was written.")


def storage_full(path: Path) -> StorageFull:
    return StorageFull(
        f"The disk that holds {path.parent} is full. Nothing was written; make room and try again, no restart is needed."
    )
