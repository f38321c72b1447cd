"""Changes of files by a command, found by comparing a git working tree before and after it.

Used by the shell tool around its calls: `look` before, `compare` after, or `run` for both. Everything runs beside the loop,
within bounds of time and size, and takes no lock of git's. Where there is nothing cheap to compare (no git, no plain
repository in the root itself, too many files, too slow) the answer is "not known", never a guess and never an error.

git is run on a folder that agents write to, so: a program that lies elsewhere, over a git folder of ours that holds no word of
the repository's (`repository.detached_repository`), and in the sandbox as a reading command. It starts nothing else, and is
killed when its time is over. Ignored files are not seen. What other programs change meanwhile is taken for the command's doing.
"""

import contextlib
import dataclasses
import os
import signal
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from palaver.backends.process import allowed_environment
from palaver.backends.program_lookup import ProgramLookup
from palaver.errors import CallerError
from palaver.schema.view import FileChange
from palaver.tools.base import ToolResult
from palaver.tools.files.held_folder import name_of, open_folder
from palaver.tools.files.paths import Root
from palaver.tools.files.repository import DetachedRepository, detached_repository
from palaver.tools.proposal import Change
from palaver.tools.redact import Redactor
from palaver.tools.shell.sandbox import Sandbox
from palaver.tools.shell.temporary_folders import TemporaryFolders
from palaver.tools.thread_pool import run_in_pool

LOOK_S = 1.0
"""For one look at the tree. A repository that takes longer is not cheap to watch; its commands are not kept waiting."""
STATUS_BYTES = 512 << 10
"""Some thousand names: whoever has more untracked files than that has forgotten to ignore them."""
FILES_REMEMBERED = 200
"""Changed files before the command, whose contents must be kept to compare them afterwards."""
FILE_BYTES = 512 << 10
"""A larger file is said to have changed, without a diff."""
FILES_SHOWN = 100
DIFF_BYTES = 128 << 10
"""Of all diffs together: an event may hold twice that, and text can grow in JSON."""

_UNREADABLE = b"\0unreadable"
"""Stands for contents that are not compared: a link, a folder, something large or binary."""

_Signature = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Changed:
    files: tuple[FileChange, ...] = ()
    truncated_count: int = 0
    """Files that changed beyond those shown."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file that differed from the last commit already."""

    signature: _Signature | None
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Watch:
    """A working tree as it was."""

    root: Path
    environment: Mapping[str, str] = field(repr=False)
    programs: ProgramLookup
    commit: str | None
    files: Mapping[str, _Seen]


class ChangeWatcher:
    """Looks at working trees from within a sandbox."""

    def __init__(self, sandbox: Sandbox, folders: TemporaryFolders) -> None:
        self._sandbox = sandbox
        self._folders = folders

    async def run(
        self,
        root: Path,
        environment: Mapping[str, str],
        programs: ProgramLookup,
        call: Callable[[], Awaitable[ToolResult]],
    ) -> ToolResult:
        """The result of a call, with what it did to files if that can be known."""
        before = await self.look(root, environment, programs)
        result = await call()
        found = await self.compare(before)
        if not found.files:
            return result
        changes = (*result.changes, *found.files)
        return dataclasses.replace(result, changes=changes, changes_left_out=found.truncated_count)

    async def look(self, root: Path, environment: Mapping[str, str], programs: ProgramLookup) -> Watch | None:
        """None: changes here cannot be known."""
        return await run_in_pool(self._look, root, environment, programs)

    async def compare(self, before: Watch | None) -> Changed:
        return Changed() if before is None else await run_in_pool(self._compare, before)

    # -- beside the loop

    def _look(self, root: Path, environment: Mapping[str, str], programs: ProgramLookup) -> Watch | None:
        with self._git(root, environment, programs) as git:
            status = git.status() if git is not None else None
        if status is None or len(status.paths) > FILES_REMEMBERED:
            return None
        return Watch(root, environment, programs, status.commit, {path: _look_at(root, path) for path in status.paths})

    def _compare(self, before: Watch) -> Changed:
        with self._git(before.root, before.environment, before.programs) as git:
            status = git.status() if git is not None else None
            if git is None or status is None:
                return Changed()
            paths = {*before.files, *status.paths}
            if status.commit != before.commit and before.commit and status.commit:
                paths |= set(git.names_between(before.commit, status.commit))
            candidates = sorted(path for path in paths if _may_have_changed(before, path))
            was_clean = [path for path in candidates if path not in before.files and path not in status.new]
            committed = git.contents(before.commit, was_clean)
        shown = _Shown(Redactor(before.environment))
        for path in candidates:
            known = before.files.get(path)
            shown.add(path, known.content if known else committed.get(path), _content(before.root, path))
        return shown.finished()

    @contextlib.contextmanager
    def _git(self, root: Path, environment: Mapping[str, str], programs: ProgramLookup) -> "Iterator[_Git | None]":
        program = programs.find("git", environment)
        path = programs.trusted_path(environment)
        with contextlib.ExitStack() as stack:
            try:
                repository = stack.enter_context(detached_repository(root, self._folders.base()))
            except OSError:
                # The disk is full, say: nothing is known then, and the command runs all the same.
                repository = None
            seen = {**environment, "PATH": path}
            yield _Git(self._sandbox, program, root, seen, repository) if program and repository else None


def _may_have_changed(before: Watch, path: str) -> bool:
    known = before.files.get(path)
    return known is None or known.signature != _signature(before.root, path)


class _Shown:
    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._files: list[FileChange] = []
        self._left_bytes = DIFF_BYTES
        self._more = 0

    def add(self, path: str, before: bytes | None, after: bytes | None) -> None:
        if before == after and before != _UNREADABLE:
            return
        if len(self._files) >= FILES_SHOWN:
            self._more += 1
            return
        self._files.append(self._change(path, before, after))

    def _change(self, path: str, before: bytes | None, after: bytes | None) -> FileChange:
        # A name that is no text cannot be said in an event.
        name = path.encode(errors="surrogateescape").decode(errors="replace")
        if before == _UNREADABLE or after == _UNREADABLE or self._left_bytes <= 0:
            return FileChange(path=name, kind=Change(name, before, after).kind)
        change = Change(name, before, after).file_change()
        diff = self._redactor.redact(change.diff or "")
        size = len(diff.encode(errors="replace"))
        if size > self._left_bytes:
            return replace(change, diff=None)
        self._left_bytes -= size
        return replace(change, diff=diff)

    def finished(self) -> Changed:
        return Changed(tuple(self._files), self._more)


def _look_at(root: Path, path: str) -> _Seen:
    # The signature first: a file that changes in between then looks changed, which a second look corrects.
    return _Seen(_signature(root, path), _content(root, path))


def _signature(root: Path, path: str) -> _Signature | None:
    try:
        found = os.lstat(root / path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode


def _content(root: Path, path: str) -> bytes | None:
    try:
        info = os.lstat(root / path)
        if info.st_size > FILE_BYTES or (root / path).is_symlink():
            return _UNREADABLE
        return _comparable(Root(root).read_if_there(path))
    except FileNotFoundError:
        return None
    except (OSError, CallerError):
        return _UNREADABLE


def _comparable(content: bytes | None) -> bytes | None:
    return _UNREADABLE if content is not None and b"\0" in content[:8192] else content


# -- git


@dataclass(frozen=True, slots=True)
class _Status:
    commit: str | None
    """None: nothing was committed yet."""
    paths: tuple[str, ...]
    new: frozenset[str]
    """Those of them that git does not know."""


class _Git:
    """One look: everything it asks together stays within its time."""

    def __init__(
        self,
        sandbox: Sandbox,
        program: str,
        root: Path,
        environment: Mapping[str, str],
        repository: DetachedRepository,
    ) -> None:
        self._sandbox = sandbox
        self._program = program
        self._root = root
        self._repository = repository
        self._environment = allowed_environment(environment, {**repository.environment, "LC_ALL": "C"})
        self._until_s = time.monotonic() + LOOK_S

    def status(self) -> _Status | None:
        # The option, because a repository's own word on a submodule beats the configuration.
        what = ("--untracked-files=all", "--no-renames", "--ignore-submodules=all")
        told = self._ask("status", "--porcelain=v2", "-z", *what)
        return None if told is None else _status_of(told, self._repository.commit)

    def names_between(self, old: str, new: str) -> list[str]:
        plain = ("--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
        told = self._ask("diff", "--name-only", "-z", *plain, old, new)
        return [_name(name) for name in (told or b"").split(b"\0") if name]

    def contents(self, commit: str | None, paths: list[str]) -> dict[str, bytes]:
        """The files as they were committed; those that were not are left out."""
        asked = [path for path in paths if "\n" not in path][: 2 * FILES_SHOWN]
        if commit is None or not asked:
            return {}
        names = b"".join(f"{commit}:{path}\n".encode(errors="surrogateescape") for path in asked)
        told = self._ask("cat-file", "--batch", stdin=names, limit_bytes=len(asked) * FILE_BYTES)
        return dict(_batch(told, asked)) if told is not None else dict.fromkeys(asked, _UNREADABLE)

    def _ask(self, *arguments: str, stdin: bytes = b"", limit_bytes: int = STATUS_BYTES) -> bytes | None:
        """What git says, or None when it fails, says too much or takes too long."""
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            return None
        try:
            argv = [self._program, "--no-optional-locks", "--no-pager", *arguments]
            with open_folder(self._root) as folder:
                process = subprocess.Popen(
                    self._sandbox.wrap_reading(argv, self._root, [self._repository.folder]),
                    cwd=name_of(folder, self._root),
                    env=self._environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    process_group=0,
                )
        except (OSError, CallerError):
            return None
        late = threading.Timer(left_s, _kill, [process])
        late.start()
        try:
            return _read_answer(process, stdin, limit_bytes)
        finally:
            late.cancel()
            _kill(process)
            process.wait()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _read_answer(process: "subprocess.Popen[bytes]", stdin: bytes, limit_bytes: int) -> bytes | None:
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        # It reads all names before the pipe is full: there are too few of them to fill it.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(stdin)
            process.stdin.close()
        told = process.stdout.read(limit_bytes + 1)
        if len(told) > limit_bytes:
            return None
        return told if process.wait() == 0 else None


def _status_of(told: bytes, commit: str | None) -> _Status:
    paths: list[str] = []
    new: list[str] = []
    for entry in told.split(b"\0"):
        if entry.startswith(b"? "):
            new.append(_name(entry[2:]))
        elif entry.startswith(b"1 "):
            paths.append(_name(entry.split(b" ", 8)[8]))
        elif entry.startswith(b"u "):
            paths.append(_name(entry.split(b" ", 10)[10]))
    # A folder with a repository of its own is listed as such; what is in it is that one's affair.
    own = [path for path in new if not path.endswith("/")]
    return _Status(commit, (*paths, *own), frozenset(own) - frozenset(paths))


def _name(name: bytes) -> str:
    return name.decode(errors="surrogateescape")


def _batch(told: bytes, asked: list[str]) -> Iterator[tuple[str, bytes]]:
    """`oid type size`, a newline, the bytes, a newline; or the name and ` missing`."""
    place = 0
    for path in asked:
        end = told.find(b"\n", place)
        if end < 0:
            return
        words = told[place:end].rsplit(b" ", 2)
        place = end + 1
        if len(words) == 3 and words[1] in (b"blob", b"tree", b"commit", b"tag") and words[2].isdigit():
            size = int(words[2])
            if words[1] == b"blob":
                content = told[place : place + size]
                yield path, _comparable(content) or b""
            place += size + 1
