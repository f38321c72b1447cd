"""A temporary folder of our own: held by a lock as long as we live, and removed by the next of us when we were killed.

Made by the sandbox for its trial at every start, and for the socket on which an ACP agent is offered tools. A lock on the
folder itself says that its maker lives: the kernel lets go of it however the maker ends, while the number of a process means
another one in another container that shares the temporary folder. It must never remove what somebody holds, or what is not
ours.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "palaver-held-"
TRIES = 100
"""Somebody who tidies up may take a folder in the moment between its making and its lock; not a hundred times."""


@contextmanager
def locked_folder(parent: Path | None = None) -> Iterator[Path]:
    """Nobody else may look into it. Without a `parent` it lies in the system's temporary folder."""
    folder, lock = _made(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _made(parent: Path | None) -> tuple[Path, int]:
    for _ in range(TRIES):
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        try:
            lock = _opened(folder)
        except OSError:
            # No descriptor is left: nobody would ever tidy this one up.
            with suppress(OSError):
                folder.rmdir()
            raise
        if lock is None:
            continue
        try:
            _hold(lock)
        except BlockingIOError:
            os.close(lock)
            continue
        except OSError:
            # Not every file system locks folders (NFS does not). Whoever tidies up cannot lock it either, and leaves it.
            pass
        if folder.exists():
            return folder, lock
        os.close(lock)
    raise OSError(f"No folder could be made in {tempfile.gettempdir()} that stayed there.")


def tidy() -> None:
    """Removes what others of us left behind who were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid != os.geteuid() or (lock := _opened(folder)) is None:
                continue
            try:
                _hold(lock)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _opened(folder: Path) -> int | None:
    """None: it is gone."""
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None


def _hold(lock: int) -> None:
    """Raises BlockingIOError when somebody holds it, and another OSError when it cannot be held at all."""
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
