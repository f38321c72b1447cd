"""The searching program behind `glob` and `grep`: started as a child, so that no pattern can hold up the server.

`re` keeps the interpreter to itself while it matches, and some patterns match for hours; here the runner of processes can
end it. It runs in the project's root, is told `{"kind", "start", "pattern"}` as JSON on stdin, and writes lines for the
model. `start` is relative and free of links (the tool has resolved it); links are never followed. Skipped: folders that
hold what others made, what `.gitignore` files name on the way down, binary and very large files.

It imports nothing of Palaver but the matcher of patterns: whatever it imports, every search waits for.
"""

import json
import math
import os
import re
import resource
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from palaver.tools.files.gitignore import Budget, IgnoreRules

DATA_MARK = ".palaver-data"
"""As in `paths.py`: a server's own data is nobody's to search."""
SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__"})
FILE_LIMIT_BYTES = 10 * 1024 * 1024
"""A larger file is data, not something to read."""
BINARY_PROBE_BYTES = 8192
LINE_LIMIT_CHARS = 500
"""Of a matching line: packed code has lines of megabytes."""
FOUND_LIMIT = 1000
"""More matches than a model can use; it is told to ask more narrowly."""
DEPTH_LIMIT = 100
"""Each level holds an open folder."""
MEMORY_BYTES = 1 << 30
"""Of the whole program: some patterns remember every place of a file that they tried."""
BRACES_LIMIT = 64
"""Alternatives one pattern may stand for."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class File:
    path: str
    """Relative to the root."""
    folder: int
    name: str

    def text(self) -> str | None:
        """What it holds, unless it is not text that somebody wrote."""
        try:
            descriptor = os.open(self.name, _FILE, dir_fd=self.folder)
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode) or info.st_size > FILE_LIMIT_BYTES:
                return None
            data = file.read(FILE_LIMIT_BYTES)
        return None if b"\0" in data[:BINARY_PROBE_BYTES] else data.decode(errors="replace")


class Ignored:
    """What the `.gitignore` files on the way down leave out; the deepest that speaks of a path decides."""

    def __init__(self) -> None:
        self._rules: list[tuple[str, IgnoreRules]] = []
        # The program as a whole has a time limit, which is its bound.
        self._budget = Budget(math.inf)

    def enter(self, path: str, folder: int) -> None:
        rules = File(".gitignore", folder, ".gitignore").text()
        self._rules.append((path, IgnoreRules(rules or "", self._budget)))

    def leave(self) -> None:
        self._rules.pop()

    def covers(self, path: str) -> bool:
        """Whether it is left out, if no folder above it is; a folder's path ends in a slash."""
        for folder, rules in reversed(self._rules):
            verdict = rules.verdict(path[len(folder) :])
            if verdict is not None:
                return verdict
        return False


def files_below(start: str) -> Iterator[File]:
    """Every file from `start` on, sorted; `start` itself when it is one. What is asked for by name is not ignored."""
    parent = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    ignored = Ignored()
    *above, last = start.split("/")
    path = ""
    is_ignored = False
    for name in above:
        ignored.enter(path, parent)
        path += f"{name}/"
        is_ignored = is_ignored or ignored.covers(path)
        parent = os.open(name, _FOLDER, dir_fd=parent)
    if last != ".":
        ignored.enter(path, parent)
        try:
            parent = os.open(last, _FOLDER, dir_fd=parent)
        except NotADirectoryError:
            yield File(start, parent, last)
            return
        path += f"{last}/"
        if _is_marked(parent):
            return
        is_ignored = is_ignored or ignored.covers(path)
    yield from _below(path, parent, Ignored() if is_ignored else ignored)


def _is_marked(folder: int) -> bool:
    try:
        os.stat(DATA_MARK, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _below(path: str, folder: int, ignored: Ignored) -> Iterator[File]:
    ignored.enter(path, folder)
    with os.scandir(folder) as found:
        entries = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in found if not entry.is_symlink())
    for name, is_folder in entries:
        if not is_folder:
            if not ignored.covers(f"{path}{name}"):
                yield File(f"{path}{name}", folder, name)
        elif name not in SKIPPED_FOLDERS and not ignored.covers(f"{path}{name}/") and path.count("/") < DEPTH_LIMIT:
            try:
                below = os.open(name, _FOLDER, dir_fd=folder)
            except OSError:
                continue
            try:
                if not _is_marked(below):
                    yield from _below(f"{path}{name}/", below, ignored)
            finally:
                os.close(below)
    ignored.leave()


def grep(pattern: str, start: str) -> Iterator[str]:
    wanted = re.compile(pattern)
    for file in files_below(start):
        text = file.text()
        if text is None:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if wanted.search(line):
                yield f"{file.path}:{number}:{_shorten(line.rstrip(chr(13)))}"


def glob(pattern: str, start: str) -> Iterator[str]:
    """Paths below `start` whose rest matches: `*` and `?` within a name, `**` any number of folders, `{a,b}` either."""
    patterns = [alternative.split("/") for alternative in alternatives(pattern)]
    prefix = 0 if start == "." else len(start) + 1
    for file in files_below(start):
        names = file.path[prefix:].split("/")
        if any(matches(names, wanted) for wanted in patterns):
            yield file.path


def matches(names: list[str], wanted: list[str]) -> bool:
    # Part by part: which beginnings of `names` the pattern so far can stand for. No pattern makes this slow.
    reached = {0}
    for part in wanted:
        if part == "**":
            reached = set(range(min(reached), len(names) + 1)) if reached else reached
        else:
            reached = {place + 1 for place in reached if place < len(names) and fnmatchcase(names[place], part)}
    return len(names) in reached


def alternatives(pattern: str) -> list[str]:
    waiting, done = [pattern], list[str]()
    while waiting and len(waiting) + len(done) <= BRACES_LIMIT:
        current = waiting.pop()
        braces = re.search(r"\{([^{}]*,[^{}]*)\}", current)
        if braces is None:
            done.append(current)
        else:
            waiting += [current[: braces.start()] + choice + current[braces.end() :] for choice in braces[1].split(",")]
    return done


def _shorten(line: str) -> str:
    return line if len(line) <= LINE_LIMIT_CHARS else f"{line[:LINE_LIMIT_CHARS]} [… line cut …]"


def main() -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    asked = json.load(sys.stdin)
    search = {"grep": grep, "glob": glob}[asked["kind"]]
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        for count, line in enumerate(search(asked["pattern"], asked["start"])):
            if count == FOUND_LIMIT:
                sys.stdout.write(f"[… more than {FOUND_LIMIT:,} found; ask more narrowly …]\n")
                break
            sys.stdout.write(f"{line}\n")
    except (re.error, RecursionError, OverflowError) as error:
        sys.stderr.write(f"The pattern is no regular expression: {error}.")
        return 2
    except MemoryError:
        sys.stderr.write("The search took too much memory and was stopped. Use a simpler pattern or a path.")
        return 2
    except FileNotFoundError:
        sys.stderr.write(f"{asked['start']} does not exist. Use list to see what is there.")
        return 2
    except OSError as error:
        sys.stderr.write(f"{asked['start']} cannot be searched: {error.strerror or error}.")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
