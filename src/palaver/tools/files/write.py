"""The tool `write`: a whole file, new or replaced, put in place at once. Missing folders are made."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.errors import TooLarge
from palaver.tools.arguments import decode, parameters_of
from palaver.tools.base import ToolSpec
from palaver.tools.files.file_edits import Changes, FileTool
from palaver.tools.files.paths import FILE_LIMIT_BYTES, Root
from palaver.tools.proposal import Change


class WriteArguments(msgspec.Struct, frozen=True):
    path: Annotated[str, Meta(description="File to write, relative to the project folder.")]
    content: Annotated[str, Meta(description="The whole new content.")]


SPEC = ToolSpec(
    name="write",
    description="Write a whole file, new or replacing one. To change a part of a file use edit.",
    parameters=parameters_of(WriteArguments),
    edits_only=True,
)


class Write(FileTool):
    def __init__(self) -> None:
        super().__init__(SPEC, _plan)


def _plan(arguments: Mapping[str, Any], root: Root) -> Changes:
    asked = decode(arguments, WriteArguments)
    path = root.locate_writable(asked.path)
    content = asked.content.encode(errors="replace")
    if len(content) > FILE_LIMIT_BYTES:
        raise TooLarge(f"The content is larger than {FILE_LIMIT_BYTES:,} bytes; write it with the shell.")
    change = Change(path, root.read_if_there(asked.path), content)
    verb = "Create" if change.before is None else "Replace"
    said = f"{verb}d {path} ({len(content):,} bytes)."
    return Changes(f"{verb} {path}", lambda _: said, (change,), {path: asked.path})
