"""The tool `edit`: one passage of a text file for another. The passage must occur exactly once, or nothing is done."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.backends.process import to_the_end
from palaver.errors import CallerError, Conflict, Invalid, NotFound
from palaver.schema.view import FileChange
from palaver.tools.arguments import decode, failed, parameters_of
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.paths import Root
from palaver.tools.proposal import Change, fingerprint, visible

PLACES_SHOWN = 5
"""Line numbers named when a passage occurs more than once: enough to see what tells them apart."""


class EditArguments(msgspec.Struct, frozen=True):
    path: Annotated[str, Meta(description="File to change, relative to the project folder.")]
    old: Annotated[str, Meta(min_length=1, description="Text to replace, exactly as it is in the file, found once.")]
    new: Annotated[str, Meta(description="Text to put in its place.")]


SPEC = ToolSpec(
    name="edit",
    description="Replace one passage of a text file. `old` must occur exactly once: add lines around it until it does.",
    parameters=parameters_of(EditArguments),
    edits_only=True,
)


class Edit:
    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            change = _change(decode(arguments, EditArguments), Root(root))
        except CallerError as error:
            return failed(error)
        return Proposal(
            title=visible(f"Edit {change.path}"),
            hash=fingerprint("edit", arguments, root, {change.path: change.before}),
            preview=change.preview(),
            match=change.path,
        )

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            # Not cut short: a file is either changed and said to be, or left alone.
            change, done = await to_the_end(asyncio.to_thread(_apply, arguments, Root(place.root)))
        except CallerError as error:
            return failed(error)
        output = f"Edited {change.path}: {done.additions} lines added, {done.deletions} removed."
        return ToolResult(ok=True, output=output, changes=(done,))


def _apply(arguments: Mapping[str, Any], root: Root) -> tuple[Change, FileChange]:
    asked = decode(arguments, EditArguments)
    change = _change(asked, root)
    root.replace(asked.path, change.after)
    return change, change.file_change()


def _change(asked: EditArguments, root: Root) -> Change:
    path = root.locate_writable(asked.path)
    before = root.read(asked.path)
    try:
        text = before.decode()
    except UnicodeDecodeError:
        raise Invalid(f"{path} is not UTF-8 text; an edit would damage it. Use the shell.") from None
    if asked.old == asked.new:
        raise Invalid("old and new are the same; nothing would change.")
    old, new = _with_line_ends_of(text, asked)
    places = _places(text, old)
    if not places:
        raise NotFound(
            f"old was not found in {path}. Read the file again and copy the passage exactly, spaces included."
        )
    if len(places) > 1:
        lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in places[:PLACES_SHOWN])
        raise Conflict(f"old occurs more than once in {path} (lines {lines}). Add lines around it until it is unique.")
    after = text[: places[0]] + new + text[places[0] + len(old) :]
    return Change(path, before, after.encode(errors="replace"))


def _with_line_ends_of(text: str, asked: EditArguments) -> tuple[str, str]:
    """Models write plain newlines; a file with Windows line ends keeps its own."""
    if asked.old in text or "\r\n" not in text or "\r\n" in asked.old:
        return asked.old, asked.new
    return asked.old.replace("\n", "\r\n"), asked.new.replace("\r\n", "\n").replace("\n", "\r\n")


def _places(text: str, passage: str) -> list[int]:
    """Where it occurs, overlapping ones too: of "aa" in "aaa" nobody can say which is meant."""
    places: list[int] = []
    place = text.find(passage)
    while place >= 0 and len(places) <= PLACES_SHOWN:
        places.append(place)
        place = text.find(passage, place + 1)
    return places
