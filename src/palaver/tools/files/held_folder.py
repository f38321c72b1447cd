"""Held folders: the folder that a turn works in, and the one way to open a folder that agents can rename.

An agent may write in a folder that lies around another conversation's project, and put a link or another folder in its place
while a turn works there. So a project is never reached by following its name:

- `open_folder` goes down from `/` name by name and follows no link. A project's path is free of links when a turn begins; a
  link on the way means that somebody replaced something.
- As long as a turn holds a folder, its path must lead to the folder that was held, as the file system knows it.

`conversation/folders.py` holds a folder for the length of a turn. File tools (`paths.py`), the sandbox and the runner of child
processes open it here at every use, and go on from the descriptor. Whoever cannot go on from one (bubblewrap mounts by name)
compares the identity afterwards, where nothing can change any more.
"""

import contextlib
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from palaver.errors import Forbidden, NotFound

Identity = tuple[int, int]
"""A folder as the file system knows it, whatever it is called and through which link or mount it is reached."""

# Only to look at and to start from: a folder that may be entered and not listed has its place too.
_PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_NO_LINK_AT_ALL: int = getattr(os, "O_NOFOLLOW_ANY", 0)
"""On macOS, which has no O_PATH: a folder that may be entered and not listed could not be walked through."""

_held: dict[Path, list[Identity]] = {}
"""Of each path, the folders that turns work in. Mostly one: a person may replace a folder and begin another turn in it."""
_lock = threading.Lock()


class HeldFolder:
    """A folder that a turn works in. Its number cannot be given to another folder until it is closed."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        """Free of links."""
        self._descriptor = descriptor
        self._identity = identity_of(descriptor)
        with _lock:
            _held.setdefault(path, []).append(self._identity)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._descriptor < 0:
            return
        with _lock:
            _held[self.path].remove(self._identity)
            if not _held[self.path]:
                del _held[self.path]
        os.close(self._descriptor)
        self._descriptor = -1


def hold_folder(path: Path) -> HeldFolder:
    """The folder at a path that is free of links. Raises Forbidden where it is not, NotFound where nothing is."""
    descriptor = _open(path)
    try:
        return HeldFolder(path, descriptor)
    except BaseException:
        os.close(descriptor)
        raise


@contextlib.contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """A descriptor to look at, to start from and to enter. Raises Forbidden where the folder was replaced, NotFound where
    nothing is."""
    descriptor = _open(path)
    try:
        with _lock:
            held = tuple(_held.get(path, ()))
        if held and identity_of(descriptor) not in held:
            raise _replaced(path)
        yield descriptor
    finally:
        os.close(descriptor)


def check_folder(path: Path) -> None:
    """Raises Forbidden where the folder was replaced; one that is not there cannot be used by anybody."""
    with contextlib.suppress(NotFound), open_folder(path):
        pass


def name_of(descriptor: int, path: Path) -> str:
    """What a child process enters in its first moment: the opened folder itself where the system has a name for it."""
    name = f"/proc/self/fd/{descriptor}"
    return name if Path(name).exists() else str(path)


def identity_of(folder: Path | int) -> Identity:
    found = os.stat(folder)  # noqa: PTH116 - a descriptor too
    return found.st_dev, found.st_ino


def _open(path: Path) -> int:
    if not path.is_absolute():
        raise NotFound(f"The folder {path} cannot be opened: its path is not a whole one.")
    try:
        return os.open(path, _PLACE | _NO_LINK_AT_ALL) if _NO_LINK_AT_ALL else _walk(path)
    except OSError as error:
        if _leads_through_link(path):
            raise _replaced(path) from error
        raise NotFound(f"The folder {path} cannot be opened: {error.strerror}.") from error
    except ValueError as error:
        raise NotFound(f"The folder {path!r} cannot be opened: no file has such a name.") from error


def _walk(path: Path) -> int:
    place = os.open(path.anchor, _PLACE)
    try:
        for name in path.parts[1:]:
            below = os.open(name, _PLACE | os.O_NOFOLLOW, dir_fd=place)
            os.close(place)
            place = below
    except BaseException:
        os.close(place)
        raise
    return place


def _leads_through_link(path: Path) -> bool:
    """Only for the sentence: nothing was opened."""
    for folder in (path, *path.parents):
        with contextlib.suppress(OSError):
            if stat.S_ISLNK(os.lstat(folder).st_mode):
                return True
    return False


def _replaced(path: Path) -> Forbidden:
    return Forbidden(
        f"The folder {path} was replaced: a link or another folder stands where it was, so nothing was done. Put the folder "
        "back, or end this turn and begin another.",
        project=str(path),
    )
