"""The data directory: private to its owner, and held by one process at a time.

`sqlite/store.py` takes hold of it before it opens anything in it and lets go last.
"""

import fcntl
import os
from pathlib import Path

from palaver.errors import ConfigurationError

LOCK_FILE = "palaver.lock"
DATABASE = "palaver.db"


class DataDirectory:
    """Held from construction until `release`. Raises ConfigurationError when another process holds it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = path / DATABASE
        self.blobs = path / "blobs"
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o700)
            self.blobs.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"The data directory {path} cannot be used: {error.strerror}. Choose another one with --data."
            ) from error
        self._lock = hold(path / LOCK_FILE)

    def release(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def hold(path: Path) -> int:
    """A descriptor that keeps other processes out for as long as it is open. Raises ConfigurationError when one is in."""
    # flock, not a POSIX lock: that one would be lost with the first close of any descriptor on the file.
    lock = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(lock, 32).decode("ascii", "replace").strip() or "unknown"
        os.close(lock)
        raise ConfigurationError(
            f"The data directory {path.parent} is in use by process {holder}. Use that server, or stop it "
            f"(kill {holder}), or choose another directory with --data."
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, b"%d\n" % os.getpid(), 0)
    return lock


def sync_directory(path: Path) -> None:
    """A new name survives a power loss only once its directory is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
