"""The tool `read`: lines of a text file, as they are, with a note when there is more."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.errors import CallerError, Invalid
from palaver.tools.arguments import decode, failure_of, parameters_of
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.files.paths import FILE_LIMIT_BYTES, Root
from palaver.tools.output import INLINE_BYTES
from palaver.tools.proposal import fingerprint, visible
from palaver.tools.redact import Redactor
from palaver.tools.thread_pool import run_in_pool

DEFAULT_LIMIT_LINES = 2000
BINARY_PROBE_BYTES = 8192
"""Where a NUL byte tells a binary file from text; the same stretch git looks at."""
LINE_LIMIT_BYTES = 16 * 1024
"""A longer line is generated or packed; its beginning says so, and the rest would crowd out everything else."""
NOTE_BYTES = 200
"""Room for the note that says how to go on."""


class ReadArguments(msgspec.Struct, frozen=True):
    path: Annotated[str, Meta(description="File to read, relative to the project folder.")]
    offset: Annotated[int, Meta(ge=1, description="First line to read, counted from 1.")] = 1
    limit: Annotated[int, Meta(ge=1, description="How many lines to read at most.")] = DEFAULT_LIMIT_LINES


SPEC = ToolSpec(
    name="read",
    description="Read a text file. Long files come in parts: a note at the end says which offset goes on.",
    parameters=parameters_of(ReadArguments),
    reads_only=True,
)


@dataclass(slots=True)
class _Part:
    """What is shown of a file, and what there is."""

    lines: list[bytes]
    total_bytes: int
    last_line: int = 0
    more: bool = False


class Read:
    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            path = Root(root).locate(decode(arguments, ReadArguments).path)
        except CallerError as error:
            return failure_of(error)
        title = visible(f"Read {path}")
        return Proposal(title=title, hash=fingerprint("read", arguments, root, {}), reads_only=True, match=path)

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = decode(arguments, ReadArguments)
            part = await run_in_pool(_read, Root(place.root), asked)
        except CallerError as error:
            return failure_of(error)
        counted = part.total_bytes <= FILE_LIMIT_BYTES
        text = b"".join(part.lines).decode(errors="replace")
        if part.more:
            last = asked.offset + len(part.lines) - 1
            total = f" of {part.last_line}" if counted else ""
            text += f"[lines {asked.offset}-{last}{total}; read on with offset={last + 1}]\n"
        return ToolResult(
            ok=True,
            output=Redactor(place.environment).redact(text) or "[the file is empty]",
            truncated=part.more,
            total_lines=part.last_line if counted else None,
            total_bytes=part.total_bytes,
        )


def _read(root: Root, asked: ReadArguments) -> _Part:
    with root.open(asked.path) as file:
        part = _Part([], os.fstat(file.fileno()).st_size)
        if b"\0" in file.peek(BINARY_PROBE_BYTES)[:BINARY_PROBE_BYTES]:
            raise Invalid(f"{asked.path} is a binary file of {part.total_bytes:,} bytes; it is not shown.")
        room_bytes = INLINE_BYTES - NOTE_BYTES
        for line in _lines(file):
            part.last_line += 1
            if part.last_line < asked.offset:
                continue
            room_bytes -= len(line)
            if part.more or len(part.lines) == asked.limit or room_bytes < 0:
                part.more = True
                # To the end only for the sake of the count, which is not worth reading a huge file.
                if part.total_bytes > FILE_LIMIT_BYTES:
                    break
            else:
                part.lines.append(line)
    if asked.offset > max(part.last_line, 1):
        raise Invalid(f"{asked.path} has only {part.last_line} lines.")
    return part


def _lines(file: BufferedReader) -> Iterator[bytes]:
    """Line by line; one that is too long to show is cut, and says so. Never more than a piece of a line is held."""
    while line := file.readline(LINE_LIMIT_BYTES):
        left_out_bytes = 0
        while not line.endswith(b"\n") and (rest := file.readline(LINE_LIMIT_BYTES)):
            left_out_bytes += len(rest)
            if rest.endswith(b"\n"):
                break
        yield line + f" [… {left_out_bytes:,} more bytes of this line …]\n".encode() if left_out_bytes else line
