"""Looking after a data directory from outside, while a server may be using it: reads only, and takes no hold of it.

Called by `palaver verify` and `palaver backup`.
"""

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import apsw

from palaver.errors import ConfigurationError, LogCorrupt, LogUnavailable
from palaver.log.base import Damage, Verified
from palaver.log.blobs import BlobCheck
from palaver.log.refusals import refuse_occupied
from palaver.log.sqlite.database import log_error, open_reading
from palaver.log.sqlite.maintenance import audit_after, backup
from palaver.log.sqlite.migrations import APPLICATION_ID
from palaver.log.sqlite.salvage import open_remnants
from palaver.log.sqlite.wal_damage import find_wal_damage

FAULTS = 100
"""Of the file, that are told: more say nothing new."""

FAULTS_ASKED = 100_000
"""Of SQLite: pages that are only unused are among them, and those of a table that was rebuilt are many."""

_UNUSED = re.compile(r"^Page \d+: never used$|^\*\*\* in database ")
"""No damage: the pages that a repair left behind, and the heading of what SQLite finds."""
_TREE = re.compile(r"^Tree (\d+)")

Progress = Callable[[int, int], None]
"""Told how many conversations have been looked at, of how many."""


def verify_directory(directory: Path, progress: Progress) -> Verified:
    """Recompute every chain, and have SQLite check its file. Damage is blamed on its own conversation where that is known.

    A file that SQLite cannot walk is looked at page by page instead. Raises ConfigurationError: there is no log.
    """
    database = _database(directory)
    blobs = BlobCheck(directory / "blobs")
    try:
        if damage := find_wal_damage(database):
            # SQLite would show the store as it was before what it cannot read.
            return _carved(database, progress, Damage("", 0, damage))
    except OSError as error:
        return _carved(database, progress, Damage("", 0, f"The write-ahead log cannot be read: {error.strerror}."))
    try:
        with closing(open_reading(database)) as connection:
            damages = _file_faults(connection)
            return _walked(connection, blobs, progress, damages)
    except (apsw.Error, TypeError, ValueError) as error:
        return _carved(database, progress, Damage("", 0, f"The database cannot be read: {error}."))


def _walked(connection: apsw.Connection, blobs: BlobCheck, progress: Progress, damages: list[Damage]) -> Verified:
    conversations, events, number = 0, 0, 0
    total: int = connection.execute("SELECT count(*) FROM conversations").get
    while True:
        found = audit_after(connection, number, blobs)
        conversations += found.conversations
        events += found.events
        damages.extend(found.damages)
        progress(conversations, total)
        number = found.last
        if not number:
            return Verified(conversations, events, damages)


def _file_faults(connection: apsw.Connection) -> list[Damage]:
    """What SQLite itself finds wrong with the file: also where lists and indexes lie, which no chain covers."""
    found: list[Damage] = []
    if connection.pragma("application_id") != APPLICATION_ID or not connection.pragma("user_version"):
        found.append(
            Damage("", 0, "The database file's header is damaged: it does not say that this is a log of Palaver.")
        )
    trees = {root: _Tree(*names) for root, *names in connection.execute(_TREES)}
    try:
        lines = _checked(connection, str(FAULTS_ASKED))
    except apsw.Error:
        # A damaged table may end the check of the whole file.
        tables = dict.fromkeys(tree.table for tree in trees.values())
        lines = [line for table in tables for line in _checked_alone(connection, table)]
    for line in lines:
        tree = trees.get(int(named[1])) if (named := _TREE.match(line)) else None
        what = _TREE.sub(f"{tree.name},", line) if tree else line
        mended = _MENDED if tree and tree.name != _EVENTS else ""
        found.append(Damage("", 0, f"The database file is damaged: {what}.{mended}"))
    return found[:FAULTS]


_EVENTS = "segments"
_TREES = "SELECT rootpage, name, tbl_name FROM sqlite_schema WHERE rootpage > 0"
_MENDED = " A server that comes upon it rebuilds it from the events."
"""Said of all but the events themselves."""


class _Tree(NamedTuple):
    """A table or an index in the file."""

    name: str
    table: str


def _checked(connection: apsw.Connection, what: str) -> list[str]:
    """Raises apsw.Error."""
    lines = (str(line) for (line,) in connection.execute(f"PRAGMA integrity_check({what})"))
    return [
        fault
        for line in lines
        for fault in line.splitlines()
        if fault.strip() not in ("ok", "") and not _UNUSED.match(fault)
    ]


def _checked_alone(connection: apsw.Connection, table: str) -> list[str]:
    try:
        return _checked(connection, f"'{table}'")
    except apsw.Error as error:
        return [f"{table} cannot be read to its end: {error}"]


def _carved(database: Path, progress: Progress, why: Damage) -> Verified:
    """Nobody may write meanwhile; if a server does after all, what it writes just now may be missed."""
    damages, events = [why], 0
    try:
        with open_remnants(database) as remnants:
            names = remnants.conversations
            for done, name in enumerate(names, 1):
                remains = remnants.of(name)
                events += remains.last
                damages += filter(None, [remains.damage()])
                progress(done, len(names))
    except OSError as error:
        damages.append(Damage("", 0, f"The file cannot be read: {error.strerror}."))
        return Verified(0, events, damages)
    return Verified(len(names), events, damages)


def backup_directory(directory: Path, target: Path) -> None:
    """A consistent copy of the log and its blobs, which is a data directory of its own."""
    database = _database(directory)
    if refusal := refuse_occupied(target):
        raise refusal
    try:
        if damage := find_wal_damage(database):
            raise LogCorrupt(
                f"{damage} A backup would lack it without saying so, so none was made. Save all that is readable with `palaver "
                "salvage --to NEW_FOLDER`."
            )
        backup(database, directory / "blobs", target)
    except apsw.Error as error:
        raise log_error(error, target / database.name) from error
    except OSError as error:
        raise LogUnavailable(f"The backup to {target} failed: {error.strerror}. Nothing is left of it.") from error


def _database(directory: Path) -> Path:
    database = directory / "palaver.db"
    if not database.exists():
        raise ConfigurationError(f"There is no log in {directory}. Name the data directory with --data.")
    return database
