"""A file that somebody wants to import: which kind it is, and what it says.

Called by the import route. Pure; nothing here trusts what it reads, and every refusal says what is wrong with the file.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, Any, Literal, assert_never, get_args

import msgspec

from palaver.errors import Invalid
from palaver.history import lines, markdown, page
from palaver.history.documents import open_document
from palaver.history.lazy_sequence import LazySequence
from palaver.history.parts import Json
from palaver.history.sessions import is_listing
from palaver.history.trajectory import Trajectory, trajectory_of
from palaver.schema.view import Message

Format = Literal["markdown", "jsonl", "trajectory", "html"]
FORMATS: tuple[Format, ...] = get_args(Format)

_names = msgspec.json.Decoder(dict[str, msgspec.Raw])
_HTML = re.compile(rb"(?<!\s)\s*+<(?:!doctype\s++html|html)\b", re.IGNORECASE)


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

    events: Sequence[Json]


def detect_format(file: IO[bytes]) -> Format:
    """By its content: a file's name says little."""
    file.seek(0)
    start = file.read(1024).removeprefix(b"\xef\xbb\xbf").lstrip()
    if _HTML.match(start):
        return "html"
    if not start.startswith(b"{"):
        return "markdown"
    first = _first_line(file)
    if is_listing(first):
        raise Invalid(
            "This is a list of conversations; it tells of them and does not hold them. Import their own files."
        )
    return "jsonl" if first is not None and "seq" in first and "messages" not in first else "trajectory"


def _first_line(file: IO[bytes]) -> dict[str, msgspec.Raw] | None:
    """The names in the first line that says something. It may be the whole document, so its values are passed over."""
    file.seek(0)
    line = next((line for line in islice(file, 50) if line.strip()), b"")
    try:
        return _names.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def read(file: IO[bytes], format: Format | None = None) -> Told | Recorded:
    """Of a log and of a trajectory one event or message is in memory at a time, so the file has to stay open.

    All of it is looked at once: what is wrong with it is said here. Raises Invalid and TooLarge.
    """
    kind = format or detect_format(file)
    match kind:
        case "jsonl":
            return Recorded(LazySequence(sum(1 for _ in _events(file)), lambda skip: islice(_events(file), skip, None)))
        case "trajectory":
            return _read_trajectory(trajectory_of(open_document(file)))
        case "html":
            return _read_trajectory(trajectory_of(page.extract_document(_text(file))))
        case "markdown":
            found = markdown.read(_text(file))
            return Told(found.messages, found.title, found.agent, created_at=found.created_at)
        case _:
            assert_never(kind)


def _events(file: IO[bytes]) -> Iterator[Json]:
    file.seek(0)
    return lines.read_events(file)


def _read_trajectory(found: Trajectory) -> Told:
    return Told(found.messages, found.title, found.agent, found.params, found.created_at, found.draft)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    try:
        return file.read().decode()
    except UnicodeDecodeError as problem:
        raise Invalid(f"The file is not text in UTF-8: {problem}.") from None
