"""What a call would do, for the eye and for the record: diffs, text made visible, and the hash that binds an approval.

Used by the tools' `propose`. Pure: the tools read the files, this compares and describes. Nothing here decides.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from palaver.core.text.line_diff import unified_diff
from palaver.core.text.visible import visible
from palaver.schema.view import FileChange

__all__ = ["Change", "fingerprint", "first_line", "name_in_diff", "shorten", "visible"]

PREVIEW_BYTES = 64 * 1024
"""A person reads no more before deciding, and it must fit its event several times."""
DIFF_LINES = 10_000
"""More than a preview could show; such a change is summed up instead."""


def fingerprint(tool: str, arguments: Mapping[str, Any], root: Path, contents: Mapping[str, bytes | None]) -> str:
    """Of exactly what would happen: tool, arguments, folder, and the present contents of each file it would change."""
    what = [tool, dict(arguments), str(root), sorted(contents)]
    digest = hashlib.blake2b(msgspec.json.encode(what, order="sorted"), digest_size=32)
    for path in sorted(contents):
        content = contents[path]
        # Lengths and absence are hashed too, so that no two sets of files read the same.
        digest.update(b"\0absent" if content is None else b"\0%d:" % len(content) + content)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Change:
    """One file before and after. `before` is absent for a new file, `after` for one that goes."""

    path: str
    before: bytes | None
    after: bytes | None
    moved_from: str | None = None
    """Where `before` stands, if not at `path`."""

    @property
    def kind(self) -> Literal["created", "modified", "deleted", "renamed"]:
        if self.after is None:
            return "deleted"
        if self.moved_from is not None:
            return "renamed"
        return "created" if self.before is None else "modified"

    def file_change(self) -> FileChange:
        diff = self._diff()
        # Past the two lines that name the file, which begin like changes.
        counted = diff[2:]
        return FileChange(
            path=self.path,
            kind=self.kind,
            additions=sum(line.startswith("+") for line in counted),
            deletions=sum(line.startswith("-") for line in counted),
            diff=shorten("".join(diff)),
        )

    def preview(self) -> str:
        return shorten(visible("".join(self._diff())))

    def _diff(self) -> list[str]:
        before, after = _lines(self.before or b""), _lines(self.after or b"")
        if self.before == self.after and self.moved_from is not None:
            return [f"rename from {name_in_diff(self.moved_from)}\n", f"rename to {name_in_diff(self.path)}\n"]
        if len(before) + len(after) > DIFF_LINES:
            name = name_in_diff(self.path)
            return [f"{name}: {len(before):,} lines become {len(after):,} (too many to compare)\n"]
        source = "/dev/null" if self.before is None else name_in_diff(self.moved_from or self.path, "a")
        target = "/dev/null" if self.after is None else name_in_diff(self.path, "b")
        # A file without a line has no difference to show, and yet it comes or goes.
        lines = list(unified_diff(before, after, source, target)) or [f"--- {source}\n", f"+++ {target}\n"]
        return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]


def name_in_diff(path: str, side: Literal["a", "b", ""] = "") -> str:
    """A file's name for a line of a diff's frame: it stays in its line, and one that leads out of the project says so."""
    name = visible(path).replace("\n", "␊")
    return f"{side}/{name}" if side and not name.startswith("/") else name


def _lines(content: bytes) -> list[str]:
    # Only at newlines: str.splitlines also splits at form feeds and the like, which files do not.
    text = content.decode(errors="replace")
    return [line + "\n" for line in text.split("\n")[:-1]] + ([rest] if (rest := text.rpartition("\n")[2]) else [])


def first_line(text: str, limit: int) -> str:
    """For a title: one line with nothing hidden, and a sign where there is more."""
    line, _, rest = visible(text.strip()).partition("\n")
    return line if not rest and len(line) <= limit else f"{line[:limit]} …"


def shorten(text: str, limit_bytes: int = PREVIEW_BYTES) -> str:
    """The beginning of a text that is too long, and a line that says so."""
    data = text.encode(errors="replace")
    if len(data) <= limit_bytes:
        return text
    left_out = len(data) - limit_bytes
    return data[:limit_bytes].decode(errors="ignore") + f"\n[… {left_out:,} more bytes …]\n"
