"""The tool `write`: a whole file, new or replaced, put in place at once. Missing folders are made."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.backends.process import to_the_end
from palaver.errors import CallerError, TooLarge
from palaver.schema.view import FileChange
from palaver.tools.arguments import decode, failed, parameters_of
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.paths import FILE_LIMIT_BYTES, Root
from palaver.tools.proposal import Change, fingerprint, visible


class WriteArguments(msgspec.Struct, frozen=True):
    path: Annotated[str, Meta(description="File to write, relative to the project folder.")]
    content: Annotated[str, Meta(description="The whole new content.")]


SPEC = ToolSpec(
    name="write",
    description="Write a whole file, new or replacing one. To change a part of a file use edit.",
    parameters=parameters_of(WriteArguments),
    edits_only=True,
)


class Write:
    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            change = _change(decode(arguments, WriteArguments), Root(root))
        except CallerError as error:
            return failed(error)
        verb = "Create" if change.before is None else "Replace"
        return Proposal(
            title=visible(f"{verb} {change.path}"),
            hash=fingerprint("write", arguments, root, {change.path: change.before}),
            preview=change.preview(),
            match=change.path,
        )

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            # Not cut short: a file is either changed and said to be, or left alone.
            change, done = await to_the_end(asyncio.to_thread(_apply, arguments, Root(place.root)))
        except CallerError as error:
            return failed(error)
        verb = "Created" if change.before is None else "Replaced"
        return ToolResult(ok=True, output=f"{verb} {change.path} ({len(change.after):,} bytes).", changes=(done,))


def _apply(arguments: Mapping[str, Any], root: Root) -> tuple[Change, FileChange]:
    asked = decode(arguments, WriteArguments)
    change = _change(asked, root)
    root.replace(asked.path, change.after)
    return change, change.file_change()


def _change(asked: WriteArguments, root: Root) -> Change:
    path = root.locate_writable(asked.path)
    content = asked.content.encode(errors="replace")
    if len(content) > FILE_LIMIT_BYTES:
        raise TooLarge(f"The content is larger than {FILE_LIMIT_BYTES:,} bytes; write it with the shell.")
    return Change(path, root.read_if_there(asked.path), content)
