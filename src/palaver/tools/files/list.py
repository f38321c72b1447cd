"""The tool `list`: what is in one folder, folders first and marked, links with where they lead."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.errors import CallerError
from palaver.tools.arguments import decode, failure_of, parameters_of
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.files.paths import Root
from palaver.tools.proposal import fingerprint, visible
from palaver.tools.redact import Redactor
from palaver.tools.thread_pool import run_in_pool

ENTRY_LIMIT = 1000
"""More entries than a model can use; a folder that large is searched, not listed."""


class ListArguments(msgspec.Struct, frozen=True):
    path: Annotated[str, Meta(description="Folder to list, relative to the project folder.")] = "."


SPEC = ToolSpec(
    name="list",
    description="List the files and folders in one folder. Folders end in a slash; links show where they lead.",
    parameters=parameters_of(ListArguments),
    reads_only=True,
)


class List:
    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            path = Root(root).locate(decode(arguments, ListArguments).path)
        except CallerError as error:
            return failure_of(error)
        title = visible(f"List {path}")
        return Proposal(title=title, hash=fingerprint("list", arguments, root, {}), reads_only=True, match=path)

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = decode(arguments, ListArguments)
            names = await run_in_pool(_entries, Root(place.root), asked.path)
        except CallerError as error:
            return failure_of(error)
        shown = names[:ENTRY_LIMIT]
        if len(names) > ENTRY_LIMIT:
            shown.append(f"[… {len(names) - ENTRY_LIMIT:,} more; use glob to find what you need …]")
        return ToolResult(
            ok=True,
            output=Redactor(place.environment).redact("\n".join(shown) or "[the folder is empty]"),
            truncated=len(names) > ENTRY_LIMIT,
            total_lines=len(names),
        )


def _entries(root: Root, path: str) -> list[str]:
    with root.open_folder(path) as folder, os.scandir(folder) as entries:
        folders: list[str] = []
        others: list[str] = []
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(f"{entry.name}/")
            elif entry.is_symlink():
                with contextlib.suppress(OSError):
                    others.append(f"{entry.name} -> {os.readlink(entry.name, dir_fd=folder)}")
            else:
                others.append(entry.name)
    # A name on disk need not be UTF-8; what we say of it must be.
    return [name.encode(errors="surrogateescape").decode(errors="replace") for name in sorted(folders) + sorted(others)]
