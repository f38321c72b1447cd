"""Space kept back for the moment when the disk is full.

A file of fixed size lies in the data directory and is worth nothing but its space. When an urgent append (a stop, a settling)
finds the disk full, the writer deletes the file and tries again; what is then left belongs to the urgent ones alone, until
there is room enough to put the file back.
"""

import os
from pathlib import Path

from palaver.journal import Journal

logger = Journal(__name__)

RESERVE_BYTES = 1 << 20
"""Settling a hundred conversations takes about a quarter of it."""


class Reserve:
    def __init__(self, directory: Path, size_bytes: int = RESERVE_BYTES) -> None:
        self._path = directory / "reserve"
        self._size_bytes = size_bytes
        self._kept = False

    def kept(self) -> bool:
        """Is the reserve there, or can it be put back? False: only urgent appends may write."""
        return self._kept or self._put_back()

    def spend(self) -> bool:
        """Make its space free. False: it was spent before."""
        self._kept = False
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        logger.warning("the disk is full: the reserve is spent, only stops and settling are still written")
        return True

    def _put_back(self) -> bool:
        try:
            if not self._path.exists() or self._path.stat().st_size != self._size_bytes:
                # As much again must stay free, else the reserve itself would fill the disk.
                if self._free_bytes() < 2 * self._size_bytes:
                    return False
                self._allocate()
        except OSError:
            self._path.unlink(missing_ok=True)
            return False
        self._kept = True
        return True

    def _free_bytes(self) -> int:
        disk = os.statvfs(self._path.parent)
        return disk.f_bavail * disk.f_frsize

    def _allocate(self) -> None:
        descriptor = os.open(self._path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            # Written, not only reserved: some filesystems hand out holes, others compress zeros.
            file.write(os.urandom(self._size_bytes))
