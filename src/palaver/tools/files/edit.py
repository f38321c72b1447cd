"""The tool `edit`: one passage of a text file for another. The passage must occur exactly once, or nothing is done."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.errors import Conflict, Invalid, NotFound
from palaver.schema.view import FileChange
from palaver.tools.arguments import decode, parameters_of
from palaver.tools.base import ToolSpec
from palaver.tools.files.file_edits import Changes, FileTool
from palaver.tools.files.paths import Root
from palaver.tools.proposal import Change

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


class Edit(FileTool):
    def __init__(self) -> None:
        super().__init__(SPEC, _plan)


def _plan(arguments: Mapping[str, Any], root: Root) -> Changes:
    asked = decode(arguments, EditArguments)
    change = _change(asked, root)
    return Changes(f"Edit {change.path}", _result_of, (change,), {change.path: asked.path})


def _result_of(made: Sequence[FileChange]) -> str:
    return f"Edited {made[0].path}: {made[0].additions} lines added, {made[0].deletions} removed."


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
