"""Temporary database for reading a session file without holding it in memory, and the tree of a file's lines within it.

Used by the readers beside this file and by `drafts.py`. The database has no name in its folder, is readable by its owner
alone, and is gone with the process, however that ends.
"""

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, Any

import apsw

CACHE_KIB = 2_048
"""Pages of the database that are held in memory."""


class Scratch:
    """One database for the conversations of a batch."""

    def __init__(self, folder: Path | None = None) -> None:
        handle, name = tempfile.mkstemp(prefix=".import-", dir=folder)
        os.close(handle)
        try:
            self._connection = apsw.Connection(name)
            # Nothing here outlives the process: no journal, no waiting for the disk, no second user.
            for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
                self._connection.execute(f"PRAGMA {setting}").fetchall()
            self._connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            # One transaction for all of it: the file is locked, and so open, before its name goes.
            self._connection.execute("BEGIN IMMEDIATE")
        finally:
            Path(name).unlink()
        self._numbers = count(1)
        self._files = ExitStack()
        # Conversations are read side by side, in threads.
        self._lock = Lock()

    def __enter__(self) -> "Scratch":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock, self._files:
            self._connection.close(True)

    def keep_open(self, file: IO[bytes]) -> None:
        """A file from which messages are read when they are wanted; closed with the database."""
        self._files.enter_context(file)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            return self._connection.execute(statement, tuple(values)).fetchall()

    def number(self) -> int:
        """Tells the rows of one list or tree from those of others."""
        return next(self._numbers)


class LineTree:
    """Lines of a file by their ids, each with its parent; after `keep_path`, which of them lead to the last one."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._tree = scratch.number()
        scratch.execute(
            "CREATE TABLE IF NOT EXISTS lines (place INTEGER PRIMARY KEY, tree INTEGER, id TEXT, parent TEXT, "
            "kept INTEGER NOT NULL DEFAULT 0, UNIQUE (tree, id))"
        )

    def add(self, line: str, parent: str | None) -> None:
        self._scratch.execute(
            "INSERT INTO lines (tree, id, parent) VALUES (?, ?, ?) "
            "ON CONFLICT (tree, id) DO UPDATE SET parent = excluded.parent",
            (self._tree, line, parent),
        )

    def last(self) -> str | None:
        found = self._scratch.execute("SELECT id FROM lines WHERE tree = ? ORDER BY place DESC LIMIT 1", (self._tree,))
        return str(found[0][0]) if found else None

    def keep_path(self, leaf: str) -> None:
        """From a leaf back to the first. Where a parent is missing the path goes on with what stood before it."""
        here = self._line(leaf)
        while here is not None and not here[2]:
            place, parent, _ = here
            self._scratch.execute("UPDATE lines SET kept = 1 WHERE place = ?", (place,))
            here = self._line(parent) if parent is not None else None
            if here is None and parent is not None:
                here = self._before(place)

    def is_kept(self, line: str) -> bool:
        found = self._line(line)
        return found is not None and bool(found[2])

    def _line(self, line: str) -> tuple[int, str | None, int] | None:
        found = self._scratch.execute(
            "SELECT place, parent, kept FROM lines WHERE tree = ? AND id = ?", (self._tree, line)
        )
        return found[0] if found else None

    def _before(self, place: int) -> tuple[int, str | None, int] | None:
        found = self._scratch.execute(
            "SELECT place, parent, kept FROM lines WHERE place < ? AND tree = ? ORDER BY place DESC LIMIT 1",
            (place, self._tree),
        )
        return found[0] if found else None
