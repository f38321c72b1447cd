"""A change as lines: from the arguments of an edit, or from a unified diff somebody else made. Pure.

Called by rows, the approval dock and the diff screen. The same reading as the page's (`web/src/view/diff/lines.ts`).
"""

import re
from dataclasses import dataclass
from typing import Any, Literal

from palaver.core.text.line_diff import CONTEXT_LINES, LineMatcher
from palaver.schema.view import FileChange

DiffSign = Literal[" ", "+", "-", "@"]

MATCHED_LINES = 2_000
"""Beyond this many lines finding what stayed costs a noticeable pause; then the change is shown as out and in."""

_UNIFIED = re.compile(r"^(?:diff |--- |\*\*\* Begin Patch|@@ )", re.MULTILINE)
_LEFT_OUT = re.compile(r"^(?:\+\+\+|---|index |\*\*\* (?:Begin|End))")
_HEADING = re.compile(r"^(?:@@|diff |\*\*\* )")


@dataclass(frozen=True, slots=True)
class DiffLine:
    sign: DiffSign
    text: str


@dataclass(frozen=True, slots=True)
class Diff:
    path: str
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """What happened to one file, by all calls that touched it."""

    path: str
    kind: Literal["created", "modified", "deleted", "renamed"]
    additions: int
    deletions: int
    parts: tuple[FileChange, ...]
    """Each change of it that shows its lines, in order."""


def is_unified(text: str) -> bool:
    return _UNIFIED.search(text) is not None


def parse_unified(patch: str) -> tuple[DiffLine, ...]:
    return tuple(_parse_line(line) for line in _split(patch) if not _LEFT_OUT.match(line))


def _parse_line(line: str) -> DiffLine:
    if _HEADING.match(line):
        return DiffLine("@", line.removeprefix("*** "))
    if line.startswith("+"):
        return DiffLine("+", line[1:])
    if line.startswith("-"):
        return DiffLine("-", line[1:])
    return DiffLine(" ", line.removeprefix(" "))


def diff_of_call(given: Any) -> Diff | None:
    """The change a call makes, when its arguments tell."""
    if not isinstance(given, dict):
        return None
    path = _text(given, "path", "file_path") or ""
    patch = _text(given, "patch", "diff")
    if patch is None and _looks_like_patch(given.get("input")):
        patch = _text(given, "input")
    if patch is not None:
        return Diff(path, parse_unified(patch))
    if isinstance(given.get("edits"), list):
        parts = [part.lines for edit in given["edits"] if (part := diff_of_call(edit))]
        lines = [line for part in parts for line in (*part, DiffLine("@", ""))]
        return Diff(path, tuple(lines[:-1]))
    before, after = _text(given, "old", "old_string", "old_str"), _text(given, "new", "new_string", "new_str")
    if before is not None and after is not None:
        return Diff(path, diff_text(before, after))
    content = _text(given, "content", "file_text")
    if content is not None and path:
        return Diff(path, tuple(DiffLine("+", line) for line in _split(content)))
    return None


def diff_text(before: str, after: str) -> tuple[DiffLine, ...]:
    old, new = _split(before), _split(after)
    if len(old) + len(new) > MATCHED_LINES:
        return (*(DiffLine("-", line) for line in old), *(DiffLine("+", line) for line in new))
    lines: list[DiffLine] = []
    for group in LineMatcher(old, new, autojunk=False).get_grouped_opcodes(CONTEXT_LINES):
        if lines:
            lines.append(DiffLine("@", ""))
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                lines += [DiffLine(" ", line) for line in old[old_from:old_to]]
            else:
                lines += [DiffLine("-", line) for line in old[old_from:old_to]]
                lines += [DiffLine("+", line) for line in new[new_from:new_to]]
    return tuple(lines)


def stat_of(lines: tuple[DiffLine, ...]) -> tuple[int, int]:
    """Lines added and removed."""
    return sum(line.sign == "+" for line in lines), sum(line.sign == "-" for line in lines)


def by_file(changes: tuple[FileChange, ...]) -> list[ChangedFile]:
    files: dict[str, ChangedFile] = {}
    for change in changes:
        known = files.get(change.path)
        parts = known.parts if known else ()
        if change.diff is not None or change.blob is not None:
            parts = (*parts, change)
        kind = change.kind
        # A file that was made and then changed was made.
        if known is not None and kind != "deleted" and known.kind in ("created", "renamed"):
            kind = known.kind
        additions = (known.additions if known else 0) + change.additions
        deletions = (known.deletions if known else 0) + change.deletions
        files[change.path] = ChangedFile(change.path, kind, additions, deletions, parts)
    return list(files.values())


def _text(given: dict[str, Any], *names: str) -> str | None:
    return next((value for name in names if isinstance(value := given.get(name), str)), None)


def _looks_like_patch(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("*** Begin Patch", "--- ", "diff "))


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []
