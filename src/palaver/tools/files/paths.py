"""Everything a file tool touches, found beneath the project's root, with no check that could go stale.

Used by every file tool. A path is walked name by name from the opened root: each folder is opened relative to the one
before, without following a link; a link is read, and what it says is walked in the same way. Whatever is swapped while we
walk, a tool stands on folders that it reached from the root and nowhere else. Links are followed as long as they stay
beneath the root, also absolute ones; on the way to the root there may be none (`held_folder.py`). What is neither a file nor a
folder is refused.

Raises CallerError (not found, forbidden, invalid) with a sentence for the model; the tools make results of them.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Literal

from palaver.errors import Forbidden, Invalid, NotFound, TooLarge
from palaver.installation import is_installed
from palaver.tools.files.held_folder import Identity, identity_of, open_folder

LINK_LIMIT = 40
"""Links one path may lead through, as many as Linux itself follows."""
FILE_LIMIT_BYTES = 10 * 1024 * 1024
"""The largest file that is read whole or changed: no source file is near it, and a diff of more helps nobody."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without blocking: opening a pipe swapped in for a file must not wait for somebody to write to it.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PROTECTED = frozenset({".git", ".palaver"})
"""Where text becomes code or policy (hooks, configuration, agents): never written by a file tool, whatever the mode."""
DATA_MARK = ".palaver-data"
"""Marks a server's data directory, which a project may contain (a home folder): with the token in it anybody can approve
anything, so no file tool takes anything from it."""
_NOTES = "knowledge"
"""But for the notes of a project that is its neighbour: agents write them, through a tool of their own."""

# Only to look at: a folder that may be entered and not listed has its place too.
_PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC

Missing = Literal["refuse", "make", "allow"]
"""What to do about a missing folder on the way: `allow` says where the path would lead and makes nothing."""


def is_protected(name: str) -> bool:
    """Whether file tools never write in a folder of this name."""
    # A file system may not tell .git from .GIT, so neither do we.
    return name.lower() in _PROTECTED


@dataclass(frozen=True, slots=True)
class Found:
    """A place beneath the root: an open folder and a name in it, which need not exist. `path` is free of links."""

    folder: int
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Root:
    path: Path
    """Free of links."""

    @contextlib.contextmanager
    def find(self, text: str, missing_folders: Missing = "refuse") -> Iterator[Found]:
        """Walk to a path whose last name need not exist."""
        walk = _Walk(self.path, text, missing_folders)
        try:
            yield walk.run()
        except OSError as error:
            raise _explained(error, text) from error
        finally:
            walk.close()

    def locate(self, text: str) -> str:
        """Where a path leads, relative to the root and free of links; it need not exist."""
        with self.find(text, "allow") as found:
            return found.path

    @contextlib.contextmanager
    def open(self, text: str) -> Iterator[BufferedReader]:
        """A regular file, for reading."""
        with self.find(text) as found, _open_file(found) as file:
            yield file

    def read(self, text: str, limit_bytes: int = FILE_LIMIT_BYTES) -> bytes:
        """The whole of a file that is not too large to change. Raises TooLarge."""
        with self.open(text) as file:
            return _read_whole(file, text, limit_bytes)

    def read_if_there(self, text: str) -> bytes | None:
        """The same, or nothing when there is no such file yet."""
        try:
            return self.read(text)
        except NotFound:
            return None

    @contextlib.contextmanager
    def open_folder(self, text: str) -> Iterator[int]:
        with self.find(text) as found:
            folder = os.open(found.name, _FOLDER, dir_fd=found.folder)
            try:
                yield folder
            finally:
                os.close(folder)

    def replace(self, text: str, data: bytes, new_mode: int | None = None) -> Literal["created", "modified"]:
        """Put a file in place as a whole, or leave everything as it was. An existing file keeps its mode."""
        with self.find(text, "make") as found:
            self._refuse_protected(found)
            return _put(found, data, new_mode)

    def replace_in(self, folder: str, name: str, data: bytes) -> Literal["created", "modified"]:
        """The same in one folder that only its own tool writes to (notes), reached without links and whatever it lies in."""
        path = f"{folder}/{name}"
        with self.find(path, "make") as found:
            if found.path != path:
                raise Forbidden(f"{path} leads elsewhere ({found.path}); nothing was written.")
            return _put(found, data, None)

    def remove(self, text: str) -> None:
        """Take a regular file away."""
        with self.find(text) as found:
            self._refuse_protected(found)
            _refuse_special(os.stat(found.name, dir_fd=found.folder, follow_symlinks=False), found.path)
            os.unlink(found.name, dir_fd=found.folder)

    def mode_of(self, text: str) -> int:
        """Who may read, write and run a file that is there."""
        with self.open(text) as file:
            return os.fstat(file.fileno()).st_mode & 0o777

    def locate_writable(self, text: str) -> str:
        """Where `replace` would write; refuses at once what it would refuse."""
        with self.find(text, "allow") as found:
            self._refuse_protected(found)
            return found.path

    def _refuse_protected(self, found: Found) -> None:
        for name in found.path.split("/"):
            if is_protected(name):
                raise Forbidden(f"{found.path} is not changed by file tools: what lies in {name} decides what runs.")
        if is_installed(self.path / found.path):
            raise Forbidden(
                f"{found.path} is not changed: it belongs to the Palaver that runs this conversation. A server that is "
                "installed elsewhere could change it."
            )


class _Walk:
    def __init__(self, root: Path, text: str, missing_folders: Missing) -> None:
        if not text or "\0" in text:
            raise Invalid("A path must not be empty and must not hold a NUL character.")
        self._root = root
        self._text = text
        self._missing_folders = missing_folders
        self._waiting: list[str] = []
        self._folders: list[int] = []
        self._names: list[str] = []

    def run(self) -> Found:
        self._go_to(self._text)
        links = 0
        while self._waiting:
            name = self._waiting.pop()
            if name == "..":
                self._up()
            elif len(self._folders) > 1 and name != _NOTES and _is_marked(self._folders[-1]):
                raise Forbidden(f"{self._text} is among Palaver's own data, which no tool may use.")
            elif (target := _link(self._folders[-1], name)) is not None:
                links += 1
                if links > LINK_LIMIT:
                    raise Invalid(f"{self._text} leads through too many links.")
                self._go_to(target)
            elif not self._waiting:
                return self._found(name)
            else:
                try:
                    self._down(name)
                except FileNotFoundError:
                    if self._missing_folders != "allow":
                        raise
                    return self._found_below_nothing(name)
        return self._found(".")

    def close(self) -> None:
        while self._folders:
            os.close(self._folders.pop())

    def _go_to(self, text: str) -> None:
        if not self._folders:
            with open_folder(self._root) as root:
                self._folders.append(os.dup(root))
            # Looked at anew for each path: what it lies in may have been moved.
            if lies_in_data(self._folders[0]):
                raise Forbidden(f"{self._root} is among Palaver's own data, which no tool may use.")
        if text.startswith("/"):
            text = _beneath(self._root, text, self._text)
            while len(self._folders) > 1:
                self._up()
        self._waiting += [name for name in reversed(text.split("/")) if name not in ("", ".")]

    def _up(self) -> None:
        if len(self._folders) == 1:
            raise Forbidden(f"{self._text} leads outside the project folder; only what is beneath it can be used.")
        os.close(self._folders.pop())
        self._names.pop()

    def _down(self, name: str) -> None:
        try:
            folder = os.open(name, _FOLDER, dir_fd=self._folders[-1])
        except FileNotFoundError:
            if self._missing_folders != "make":
                raise
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=self._folders[-1])
            folder = os.open(name, _FOLDER, dir_fd=self._folders[-1])
        self._folders.append(folder)
        self._names.append(name)

    def _found(self, name: str) -> Found:
        names = self._names if name == "." else [*self._names, name]
        return Found(self._folders[-1], name, _readable("/".join(names) or "."))

    def _found_below_nothing(self, name: str) -> Found:
        # What does not exist holds no links: the rest is taken as it is written, but never upwards.
        rest = [name, *reversed(self._waiting)]
        if ".." in rest:
            raise NotFound(f"There is no {name} in {'/'.join(self._names) or 'the project folder'}.")
        return Found(self._folders[-1], rest[-1], _readable("/".join([*self._names, *rest])))


def _put(found: Found, data: bytes, new_mode: int | None) -> Literal["created", "modified"]:
    there = _mode_to_keep(found)
    mode = new_mode if there is None else there
    draft = f".{found.name[:200]}.{secrets.token_hex(4)}.tmp"
    try:
        with os.fdopen(os.open(draft, _NEW, 0o666, dir_fd=found.folder), "wb") as file:
            file.write(data)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, found.name, src_dir_fd=found.folder, dst_dir_fd=found.folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=found.folder)
        raise
    return "created" if there is None else "modified"


def _readable(path: str) -> str:
    """A name on disk need not be UTF-8; what we say of it must be."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Ancestor:
    identity: Identity
    is_marked: bool
    """It is the data directory of a server."""


def ancestry(folder: Path | int) -> list[Ancestor]:
    """A folder and all that it lies in, each reached from the one below: no name and no link is believed on the way.

    Ends where nothing can be entered; what is not there has none.
    """
    found: list[Ancestor] = []
    place: int | None = None
    try:
        place = os.open(".", _PLACE, dir_fd=folder) if isinstance(folder, int) else os.open(folder, _PLACE)
        while not found or found[-1].identity != identity_of(place):
            found.append(Ancestor(identity_of(place), _is_marked(place)))
            above = os.open("..", _PLACE, dir_fd=place)
            os.close(place)
            place = above
    except (OSError, ValueError):
        pass
    finally:
        if place is not None:
            os.close(place)
    return found


def lies_in_data(folder: Path | int) -> bool:
    """Whether a folder is the data directory of a server, or lies in one."""
    return any(above.is_marked for above in ancestry(folder))


def _is_marked(folder: int) -> bool:
    try:
        os.stat(DATA_MARK, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _link(folder: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return None


def _beneath(root: Path, absolute: str, asked: str) -> str:
    """An absolute path as one relative to the root."""
    with contextlib.suppress(ValueError):
        return str(PurePosixPath(absolute).relative_to(PurePosixPath(root)))
    raise Forbidden(f"{asked} leads outside the project folder {root}; only what is beneath it can be used.")


def _open_file(found: Found) -> BufferedReader:
    # The first look keeps devices from being opened at all; the second, at what was opened, is the one that counts.
    _refuse_special(os.stat(found.name, dir_fd=found.folder, follow_symlinks=False), found.path)
    file = os.fdopen(os.open(found.name, _FILE, dir_fd=found.folder), "rb")
    try:
        _refuse_special(os.fstat(file.fileno()), found.path)
    except BaseException:
        file.close()
        raise
    return file


def _read_whole(file: BufferedReader, text: str, limit_bytes: int) -> bytes:
    data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise TooLarge(f"{text} is larger than {limit_bytes:,} bytes; read a part of it, or use the shell.")
    return data


def _mode_to_keep(found: Found) -> int | None:
    try:
        info = os.stat(found.name, dir_fd=found.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _refuse_special(info, found.path)
    return info.st_mode & 0o777


def _refuse_special(info: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(info.st_mode):
        raise Invalid(f"{path} is a folder; use list to see what is in it.")
    if not stat.S_ISREG(info.st_mode):
        raise Invalid(f"{path} is not a regular file (a pipe, a socket or a device); it is not opened.")


def _explained(error: OSError, text: str) -> NotFound | Forbidden | Invalid:
    if isinstance(error, FileNotFoundError):
        return NotFound(f"{text} does not exist. Use list or glob to see what is there.")
    if isinstance(error, PermissionError):
        return Forbidden(f"{text}: permission denied.")
    return Invalid(f"{text}: {error.strerror or error}.")
