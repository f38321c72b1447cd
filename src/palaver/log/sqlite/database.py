"""Connections to the SQLite file: how they are set up, and what its errors mean to a caller.

`store.py` opens one connection that writes and hands it to the writer; the readers open theirs here. The bundled library
of apsw is used because the one that comes with Python may carry the WAL-reset bug.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

import apsw
import msgspec

from palaver.errors import ConfigurationError, LogCorrupt, LogError, LogUnavailable, StorageFull
from palaver.log.sqlite.migrations import migrate
from palaver.log.sqlite.reserve import Reserve
from palaver.log.sqlite.wal_damage import find_wal_damage

Repairing = Callable[[apsw.Connection], None]

BUSY_MS = 5_000
"""Nobody else writes; only somebody with a database shell can hold a lock, and then not for long."""
WRITER_CACHE_KIB = 32 << 10
"""The inner pages of every index that an append touches, for a log of some gigabytes."""
READER_CACHE_KIB = 8 << 10
WAL_KEPT_BYTES = 64 << 20
"""A write-ahead log that outgrew this, while a backup read, is cut back when it starts over."""

DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, msgspec.MsgspecError, UnicodeDecodeError)
"""How a damaged page shows itself. Our statements have no errors of their own, so an SQL error is a search index that cannot
be opened; a row that is no JSON, or a text that is no UTF-8, had its bytes changed."""

_OUT_OF_SPACE = frozenset(
    {apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP, apsw.SQLITE_IOERR_TRUNCATE}
)
"""How a quota or a full temporary filesystem shows itself when it is not plainly "full"."""


def open_writing(path: Path, reserve: Reserve, repair: Repairing | None = None) -> apsw.Connection:
    """The connection that writes, with today's layout. Raises ConfigurationError.

    `repair` is called when what a start needs is on a damaged page.
    """
    _check_wal(path)
    try:
        return _open_writing(path, repair)
    except apsw.NotADBError:
        raise ConfigurationError(
            f"{path} is not a database, or is damaged. Save what is readable with `palaver salvage`, or choose another data "
            "directory with --data."
        ) from None
    except apsw.Error as error:
        # Even to read, SQLite needs a little space beside the file. A full disk must not keep a log from being opened.
        failure = log_error(error, path)
        if isinstance(failure, StorageFull) and reserve.spend():
            return open_writing(path, reserve, repair)
        raise ConfigurationError(
            f"{path} cannot be opened: {error}. Look after the disk; `palaver salvage` saves what is readable."
        ) from error


def _check_wal(path: Path) -> None:
    """Before SQLite sees it: what it cannot read of a write-ahead log it writes over."""
    try:
        damage = find_wal_damage(path)
    except OSError as error:
        raise ConfigurationError(f"{path}-wal cannot be read: {error.strerror}. Look after the disk.") from error
    if damage is not None:
        raise ConfigurationError(
            f"{path} was not opened, because messages would be lost. {damage} Nothing was changed. Save all that is readable "
            "with `palaver salvage --to NEW_FOLDER`, and serve that folder."
        )


def _open_writing(path: Path, repair: Repairing | None) -> apsw.Connection:
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
        try:
            _start(connection)
        except apsw.CorruptError:
            if repair is None:
                raise
            repair(connection)
            _start(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _start(connection: apsw.Connection) -> None:
    """Give a new store its epoch, and touch the pages without which no log can be opened."""
    connection.execute("INSERT OR IGNORE INTO store VALUES (1, ?, 0)", (token_hex(8),))
    connection.execute("SELECT epoch, position, (SELECT max(number) FROM conversations) FROM store").fetchall()


def open_reading(path: Path) -> apsw.Connection:
    """A connection that reads, and leaves the file and its write-ahead log as they are, also when it is the last to close."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    # The last connection would copy the write-ahead log into the file and delete it. That is the writer's.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
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


@contextmanager
def one_view_of_damage(connection: apsw.Connection) -> Iterator[None]:
    """The same for questions that go on after an error: SQLite fails a COMMIT, or the release of a savepoint, after one."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def log_error(error: Exception, path: Path) -> Exception:
    """What a failure of the database is to the caller. A refusal of our own, or a defect, stays what it is."""
    match error:
        case LogError():
            return error
        case _ if isinstance(error, DAMAGE):
            return LogCorrupt(
                f"The log in {path.parent} is damaged here: {error}. `palaver verify` says what is hit, `palaver salvage` saves "
                "the rest into a new data directory."
            )
        case ValueError():
            return error
        case apsw.FullError():
            return storage_full(path)
        case apsw.IOError() if getattr(error, "extendedresult", None) in _OUT_OF_SPACE:
            return storage_full(path)
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
