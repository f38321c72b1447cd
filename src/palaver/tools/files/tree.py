"""The file tree of a project, for people: a folder or a few levels of it, without what git ignores.

Called by faces, beside the loop. Every folder is reached through `paths.py`, so nothing outside the root is ever listed; a
link is shown with where it leads and never followed. Git itself is not asked: a repository's configuration may name
programs, and looking at a tree must not run any.
"""

import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from palaver.errors import CallerError, Forbidden
from palaver.schema.base import Shown
from palaver.tools.files.gitignore import IGNORE_BYTES, Budget, IgnoreRules
from palaver.tools.files.paths import DATA_MARK, Root

ENTRY_LIMIT = 2_000
"""In one answer: more than a screen shows, less than a slow link notices."""
NAMES_LIMIT = 50_000
"""Of one folder, ignored ones included: what a moment suffices to look at."""
DEPTH_LIMIT = 8
PARENTS_LIMIT = 32
"""How far above the root the top of its repository is looked for."""
_STORES = frozenset({".git", ".hg", ".svn"})
"""Where version control keeps its own; git never lists them either."""


class Entry(Shown):
    """Something in a folder. `path` is relative to the root; `entries` are a folder's own when they were asked for."""

    name: str
    path: str
    kind: Literal["folder", "file", "link", "other"]
    size_bytes: int | None = None
    target: str | None = None
    """What a link says."""
    leads: Literal["file", "folder", "outside", "nowhere"] | None = None
    """Where a link leads: to a file or folder of this project, out of it, or nowhere."""
    entries: tuple["Entry", ...] | None = None


class Tree(Shown):
    project: str
    path: str
    entries: tuple[Entry, ...]
    truncated: bool = False
    """There is more than one answer holds; ask for the folders one by one."""


def tree_of(root: Path, path: str = ".", depth: int = 1) -> Tree:
    """Folders first, then by name; the levels nearest to `path` are complete first. Raises a CallerError."""
    project = Root(root)
    start = project.locate(path)
    ignored = _Ignored(root)
    if start != "." and ignored.covers_or_above(start):
        return Tree(project=str(root), path=start, entries=())
    listed: dict[str, list[Entry]] = {}
    waiting, left, truncated = deque([(start, 1)]), ENTRY_LIMIT, False
    while waiting:
        folder, level = waiting.popleft()
        try:
            entries = list(islice(_entries(project, folder, ignored), left + 1))
        except CallerError:
            if folder == start:
                raise
            continue  # It went away, or may not be read.
        truncated = truncated or len(entries) > left
        listed[folder] = entries[:left]
        left -= len(listed[folder])
        if level < min(depth, DEPTH_LIMIT):
            waiting.extend((entry.path, level + 1) for entry in listed[folder] if entry.kind == "folder")
        if not left:
            truncated = truncated or bool(waiting)
            break
    return Tree(project=str(root), path=start, entries=_join(listed, start), truncated=truncated)


def _join(listed: dict[str, list[Entry]], folder: str) -> tuple[Entry, ...]:
    return tuple(
        replace(entry, entries=_join(listed, entry.path)) if entry.path in listed else entry for entry in listed[folder]
    )


def _entries(project: Root, folder: str, ignored: "_Ignored") -> Iterator[Entry]:
    prefix = "" if folder == "." else f"{folder}/"
    with project.open_folder(folder) as descriptor:
        if _is_marked(descriptor, "."):
            raise Forbidden("This folder holds Palaver's own data, which is not shown.")
        with os.scandir(descriptor) as found:
            entries = islice(found, NAMES_LIMIT)
            names = [(not entry.is_dir(follow_symlinks=False), entry.name) for entry in entries]
        ignored.read(folder, _text(".gitignore", descriptor))
        for is_file, name in sorted(names):
            path = f"{prefix}{name}"
            if name in _STORES or ignored.covers(path if is_file else f"{path}/"):
                continue
            if (entry := _entry(project, descriptor, name, path)) is not None:
                yield entry


def _entry(project: Root, folder: int, name: str, path: str) -> Entry | None:
    try:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None  # Gone since it was listed.
    shown = Entry(name=_readable(name), path=_readable(path), kind="other")
    if stat.S_ISDIR(info.st_mode):
        return None if _is_marked(folder, name) else replace(shown, kind="folder")
    if stat.S_ISREG(info.st_mode):
        return replace(shown, kind="file", size_bytes=info.st_size)
    if stat.S_ISLNK(info.st_mode):
        try:
            target = os.readlink(name, dir_fd=folder)
        except OSError:
            return None
        return replace(shown, kind="link", target=_readable(target), leads=_leads(project, path))
    return shown


def _leads(project: Root, path: str) -> Literal["file", "folder", "outside", "nowhere"]:
    try:
        with project.find(path) as found:
            info = os.stat(found.name, dir_fd=found.folder, follow_symlinks=False)
    except Forbidden:
        return "outside"
    except (CallerError, OSError):
        return "nowhere"
    return "folder" if stat.S_ISDIR(info.st_mode) else "file"


def _is_marked(folder: int, name: str) -> bool:
    try:
        os.stat(f"{name}/{DATA_MARK}", dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _readable(path: str) -> str:
    """A name on disk need not be UTF-8; what we say of it must be."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


class _Ignored:
    """What git leaves out of its lists: by the `.gitignore` files from the top of the repository down, the deepest that
    speaks of a path deciding, and by the repository's own `info/exclude` before all of them."""

    def __init__(self, root: Path) -> None:
        top = _top_of(root)
        above = root.relative_to(top).parts
        self._prefix = "".join(f"{name}/" for name in above)
        self._root = root
        self._budget = Budget()
        self._rules: dict[str, IgnoreRules] = {}
        self._exclude = IgnoreRules(_text(str(top / ".git" / "info" / "exclude")), self._budget)
        for place in range(len(above)):
            self._keep(
                "".join(f"{name}/" for name in above[:place]), _text(str(top.joinpath(*above[:place], ".gitignore")))
            )

    def read(self, folder: str, rules: str) -> None:
        """The patterns of a folder of the project."""
        self._keep(self._prefix + ("" if folder == "." else f"{folder}/"), rules)

    def covers(self, path: str) -> bool:
        """Whether it is left out, if nothing above it is; a folder's path ends in a slash. Its folders were read before."""
        whole = self._prefix + path
        names = whole.rstrip("/").split("/")[:-1]
        for place in range(len(names), -1, -1):
            folder = "".join(f"{name}/" for name in names[:place])
            rules = self._rules.get(folder)
            verdict = rules.verdict(whole[len(folder) :]) if rules else None
            if verdict is not None:
                return verdict
        return bool(self._exclude.verdict(whole))

    def covers_or_above(self, folder: str) -> bool:
        """Whether a folder that is asked for, or one above it, is left out."""
        names = folder.split("/")
        for place in range(len(names)):
            above = "/".join(names[:place]) or "."
            self.read(above, _text(str(self._root / above / ".gitignore")))
            if names[place] in _STORES or self.covers("/".join(names[: place + 1]) + "/"):
                return True
        return False

    def _keep(self, folder: str, rules: str) -> None:
        self._rules[folder] = IgnoreRules(rules, self._budget)


def _top_of(root: Path) -> Path:
    """The folder above or at the root that holds the repository; the root itself when there is none."""
    for folder in (root, *root.parents[:PARENTS_LIMIT]):
        # A folder above that may not be looked into holds no repository for us.
        with suppress(OSError):
            if (folder / ".git").exists():
                return folder
    return root


def _text(name: str, folder: int | None = None) -> str:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_size > IGNORE_BYTES:
            return ""
        return file.read(IGNORE_BYTES).decode(errors="replace")
