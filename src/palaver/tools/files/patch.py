"""The tool `patch`: many changes to many files at once, all of them or none."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.errors import Conflict, Invalid, NotFound, TooLarge
from palaver.schema.view import FileChange
from palaver.tools.arguments import decode, parameters_of
from palaver.tools.base import ToolSpec
from palaver.tools.files.file_edits import Changes, FileTool
from palaver.tools.files.hunks import apply
from palaver.tools.files.line_index import Effort
from palaver.tools.files.patch_text import FilePatch, files_of
from palaver.tools.files.paths import FILE_LIMIT_BYTES, Root
from palaver.tools.proposal import Change

FILES_LIMIT = 100
"""More than a person reads before saying yes."""
TITLE_FILES = 3


class PatchArguments(msgspec.Struct, frozen=True):
    patch: Annotated[str, Meta(min_length=1, description="The patch, whole.")]


SPEC = ToolSpec(
    name="patch",
    description=(
        "Change several files at once; either the whole patch fits or nothing is changed. Give it as\n"
        "*** Begin Patch\n*** Update File: PATH\n@@ line of the enclosing function, if needed\n"
        " a line that stays\n-a line that goes\n+a line that comes\n*** Add File: PATH\n+every line\n"
        "*** Delete File: PATH\n*** End Patch\n"
        "('*** Move to: PATH' right below Update File renames), or as a unified diff. Give three lines of context."
    ),
    parameters=parameters_of(PatchArguments),
    edits_only=True,
)


class Patch(FileTool):
    def __init__(self) -> None:
        super().__init__(SPEC, _plan)


def _plan(arguments: Mapping[str, Any], root: Root) -> Changes:
    files = files_of(decode(arguments, PatchArguments).patch)
    if len(files) > FILES_LIMIT:
        raise TooLarge(f"The patch changes {len(files)} files; at most {FILES_LIMIT} go into one.")
    desk = _Desk(root)
    for file in files:
        desk.take(file)
    changes = desk.changes()
    if not changes:
        raise Invalid("The patch changes nothing: every file is already as it says.")
    return Changes(_title(changes), partial(_result_of, changes), changes, desk.names)


class _Desk:
    """The files of a patch while it is worked out: a later part of it sees what an earlier one did."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._effort = Effort()
        self._before: dict[str, bytes | None] = {}
        self._now: dict[str, bytes | None] = {}
        self._moved: dict[str, str] = {}
        self.names: dict[str, str] = {}

    def take(self, file: FilePatch) -> None:
        path = self._open(file.path)
        content = self._now[path]
        if file.kind == "add":
            if content is not None:
                raise Conflict(f"{path} is already there; a patch that adds it would overwrite it. Use Update File.")
            self._put(path, apply("", file.hunks, path, self._effort))
            return
        if content is None:
            raise NotFound(f"{path} does not exist. Use list or glob to see what is there, or Add File to make it.")
        if file.kind == "delete":
            if file.hunks and apply(_text(path, content), file.hunks, path, self._effort):
                raise Conflict(f"{path} is to be deleted, but holds more than the patch says.")
            self._now[path] = None
            return
        if not file.hunks and file.move_to is None:
            raise Invalid(f"The patch says nothing of what becomes of {path}.")
        if file.hunks:
            self._put(path, apply(_text(path, content), file.hunks, path, self._effort))
        if file.move_to is not None:
            self._move(path, file.move_to)

    def _open(self, name: str) -> str:
        if not name:
            raise Invalid("A file of the patch has no name.")
        path = self._root.locate_writable(name)
        if path not in self.names:
            self.names[path] = name
            self._before[path] = self._now[path] = self._root.read_if_there(name)
        return path

    def _put(self, path: str, text: str) -> None:
        data = text.encode(errors="replace")
        if len(data) > FILE_LIMIT_BYTES:
            raise TooLarge(f"{path} would become larger than {FILE_LIMIT_BYTES:,} bytes.")
        self._now[path] = data

    def _move(self, path: str, name: str) -> None:
        target = self._open(name)
        if target == path:
            return
        if self._before[target] is not None or self._now[target] is not None:
            raise Conflict(f"{path} cannot be moved to {target}: that is already there.")
        if self._before[path] is None or path in self._moved.values():
            raise Invalid(f"{path} is made by this patch; make it at {target} right away.")
        self._now[target], self._now[path] = self._now[path], None
        self._moved[target] = path

    def changes(self) -> tuple[Change, ...]:
        found: list[Change] = []
        kept = {target: source for target, source in self._moved.items() if self._now[target] is not None}
        gone = {source for source in kept.values() if self._now[source] is None}
        for path, now in self._now.items():
            source = kept.get(path)
            if source in gone:
                found.append(Change(path, self._before[source], now, moved_from=source))
            elif now != self._before[path] and path not in gone:
                found.append(Change(path, self._before[path], now))
        return tuple(found)


def _text(path: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Invalid(f"{path} is not UTF-8 text; a patch would damage it. Use the shell.") from None


def _title(changes: tuple[Change, ...]) -> str:
    if len(changes) == 1:
        return f"{_VERBS[changes[0].kind]} {changes[0].path}"
    names = ", ".join(change.path for change in changes[:TITLE_FILES])
    more = f" and {len(changes) - TITLE_FILES} more" if len(changes) > TITLE_FILES else ""
    return f"Patch {len(changes)} files: {names}{more}"


_VERBS = {"created": "Create", "modified": "Patch", "deleted": "Delete", "renamed": "Move"}


def _result_of(changes: tuple[Change, ...], made: Sequence[FileChange]) -> str:
    lines: list[str] = []
    for change, done in zip(changes, made, strict=True):
        origin = f" from {change.moved_from}" if change.moved_from else ""
        lines.append(f"{done.path}: {done.kind}{origin}, {done.additions} lines added, {done.deletions} removed")
    return "\n".join(lines)
