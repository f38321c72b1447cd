"""Looking after a data directory from outside, while a server may be using it: reads only, and takes no hold of it.

Called by `palaver verify` and `palaver backup`.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw

from palaver.errors import ConfigurationError, LogUnavailable
from palaver.log.base import Damage, Verified
from palaver.log.blobs import BlobCheck
from palaver.log.database import log_error, open_reading
from palaver.log.refusals import occupied
from palaver.log.upkeep import audit_after, backup

Progress = Callable[[int, int], None]
"""Told how many conversations have been looked at, of how many."""


def verify_directory(directory: Path, progress: Progress) -> Verified:
    """Recompute every chain. Damage is blamed on its own conversation; the others are still looked at."""
    database = _database(directory)
    blobs = BlobCheck(directory / "blobs")
    conversations, events, number, damages = 0, 0, 0, list[Damage]()
    with closing(open_reading(database)) as connection:
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


def backup_directory(directory: Path, target: Path) -> None:
    """A consistent copy of the log and its blobs, which is a data directory of its own."""
    database = _database(directory)
    if refusal := occupied(target):
        raise refusal
    try:
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
