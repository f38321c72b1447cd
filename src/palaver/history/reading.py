"""A file that somebody wants to import: which kind it is, and what it says.

Called by the import route. Pure; nothing here trusts what it reads, and every refusal says what is wrong with the file.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, assert_never, get_args

import msgspec

from palaver.errors import Invalid
from palaver.history import lines, markdown, page
from palaver.history.parts import Json, decoded_document
from palaver.history.sessions import is_listing
from palaver.history.trajectory import Trajectory, trajectory_of
from palaver.schema.view import Message

Format = Literal["markdown", "jsonl", "trajectory", "html"]
FORMATS: tuple[Format, ...] = get_args(Format)

_names = msgspec.json.Decoder(dict[str, msgspec.Raw])
_HTML = re.compile(rb"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Told:
    """A conversation as messages: what it was called, who spoke, what was said."""

    messages: Sequence[Message]
    title: str = ""
    agent: str | None = None
    params: Json = field(default_factory=dict[str, Any])
    created_at: int | None = None
    draft: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A conversation as its own events."""

    events: tuple[Json, ...]


def recognised(data: bytes) -> Format:
    """By its content: a file's name says little."""
    start = data[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()
    if _HTML.match(start):
        return "html"
    if not start.startswith(b"{"):
        return "markdown"
    first = _first_line(data)
    if is_listing(first):
        raise Invalid(
            "This is a list of conversations; it tells of them and does not hold them. Import their own files."
        )
    return "jsonl" if first is not None and "seq" in first and "messages" not in first else "trajectory"


def _first_line(data: bytes) -> dict[str, msgspec.Raw] | None:
    """The names in the first line that says something. It may be the whole document, so its values are passed over."""
    line = next((line for line in data.split(b"\n", 50) if line.strip()), b"")
    try:
        return _names.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def read(data: bytes, format: Format | None = None) -> Told | Recorded:
    kind = format or recognised(data)
    match kind:
        case "jsonl":
            return Recorded(tuple(lines.parsed(data)))
        case "trajectory":
            return _told(trajectory_of(decoded_document(data)))
        case "html":
            return _told(trajectory_of(page.embedded_document(_text(data))))
        case "markdown":
            found = markdown.read(_text(data))
            return Told(found.messages, found.title, found.agent, created_at=found.created_at)
        case _:
            assert_never(kind)


def _told(found: Trajectory) -> Told:
    return Told(found.messages, found.title, found.agent, found.params, found.created_at, found.draft)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise Invalid(f"The file is not text in UTF-8: {problem}.") from None
