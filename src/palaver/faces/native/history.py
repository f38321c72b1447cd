"""Conversations as files: out of the server in four formats, and into it again.

Export is streamed, a message or a stretch of the log at a time. Import reads one file, which is never trusted: see
`conversation/creation.py` for what it may not decide.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from hashlib import blake2b
from typing import IO, Annotated, assert_never

import msgspec
from litestar import Response, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath, FromQuery, QueryParameter
from litestar.response import Stream
from msgspec.structs import replace

from palaver.conversation.creation import Wishes
from palaver.conversation.project_files.transcripts import Images, with_whole_texts
from palaver.errors import Invalid, TooLarge
from palaver.faces.http.openapi import BYTES, OBJECT, TEXT, operation
from palaver.faces.http.spool import spool_body
from palaver.faces.native.conversations import NativeRequest
from palaver.faces.server import Server, origin_of
from palaver.history import markdown, page
from palaver.history.import_files import Format, Recorded, Told, detect_format, read
from palaver.history.trajectory import document_of
from palaver.log.base import Claim, EventLog, lines_after
from palaver.schema.base import ID_PATTERN, Shown
from palaver.schema.view import Message, State, TextBlock

IMPORT_BYTES = 32 << 20
"""Ten thousand long messages. What is longer is nobody's conversation."""
TEXT_BYTES = 64 << 20
"""Texts beside the log that one document may take in; they are in memory while it is written."""
IMAGE_BYTES = 24 << 20
"""Pictures in one page: what a mail still carries."""
PIECE_BYTES = 256 << 10
NAME_CHARS = 60
TITLE_CHARS = 500

_TYPES: dict[Format, tuple[str, str]] = {
    "markdown": ("text/markdown; charset=utf-8", "md"),
    "jsonl": ("application/jsonl", "jsonl"),
    "trajectory": ("application/json", "json"),
    "html": ("text/html; charset=utf-8", "html"),
}
_FILES = {
    "text/markdown": TEXT,
    "application/jsonl": TEXT,
    "application/json": OBJECT,
    "text/html": TEXT,
}
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9]+")


class Imported(Shown):
    """What was made of a file, or would be."""

    conversation: str | None
    """None in a dry run."""
    format: Format
    title: str
    agent: str
    project: str | None
    message_count: int
    seq: int
    left_out: tuple[str, ...] = ()
    """Parameters of the file that were not taken over: a file may not allow anything."""


# -- out


@get(
    "/api/conversations/{conversation:str}/export",
    responses={200: ResponseSpec(str, description="The file", generate_examples=False)},
    operation_class=operation(answer=_FILES),
    operation_id="export_conversation",
    tags=["history"],
)
async def export(conversation: FromPath[str], server: Server, format: FromQuery[Format] = "markdown") -> Stream:
    """The conversation as a file: markdown or HTML to read, its event log (`jsonl`) or a trajectory to keep."""
    state = await server.directory.whole(conversation)
    if format != "jsonl":
        _check_size(state.messages)
    media_type, ending = _TYPES[format]
    headers = {
        # Litestar 2.25 has a stream's own media type give way to the route's; a header stays.
        "Content-Type": media_type,
        "Content-Disposition": f'attachment; filename="{_name(state)}.{ending}"',
        "Cache-Control": "no-store",
    }
    if format == "html":
        headers["Content-Security-Policy"] = f"{page.POLICY}; sandbox"
    return Stream(_write(state, format, server.log), headers=headers)


def _check_size(messages: Sequence[Message]) -> None:
    blocks = (block for message in messages for block in message.blocks)
    size = sum(block.blob.size for block in blocks if isinstance(block, TextBlock) and block.blob)
    if size > TEXT_BYTES:
        raise TooLarge(
            f"The texts of this conversation take {size:,} bytes, too much for one document. Export it as `jsonl`.",
            limit_bytes=TEXT_BYTES,
            size_bytes=size,
        )


def _name(state: State) -> str:
    return _NOT_IN_A_NAME.sub("-", state.title).strip("-")[:NAME_CHARS].strip("-").lower() or state.conversation


async def _write(state: State, format: Format, log: EventLog) -> AsyncIterator[bytes]:
    match format:
        case "jsonl":
            async for piece in _read_lines(log, state):
                yield piece
        case "markdown" | "html" | "trajectory":
            whole = replace(
                state, messages=tuple([await with_whole_texts(message, log.blobs) for message in state.messages])
            )
            if format == "html":
                images = Images(log.blobs, IMAGE_BYTES)
                whole = replace(whole, messages=tuple([await images.inline(message) for message in whole.messages]))
            pieces = _pieces(whole, format)
            while piece := await asyncio.to_thread(_take_pieces, pieces):
                yield piece
        case _:
            assert_never(format)


def _pieces(state: State, format: Format) -> Iterator[bytes]:
    match format:
        case "markdown":
            yield from (piece.encode(errors="replace") for piece in markdown.write_document(state))
        case "html":
            yield from (piece.encode(errors="replace") for piece in page.write_page(state))
        case _:
            yield msgspec.json.format(msgspec.json.encode(document_of(state)), indent=2) + b"\n"


def _take_pieces(pieces: Iterator[bytes]) -> bytes:
    """Enough pieces for one write; empty at the end."""
    gathered = bytearray()
    for piece in pieces:
        gathered += piece
        if len(gathered) >= PIECE_BYTES:
            break
    return bytes(gathered)


async def _read_lines(log: EventLog, state: State) -> AsyncIterator[bytes]:
    """Up to where it stood when it was asked for: an export of a running conversation ends."""
    cursor = 0
    while cursor < state.seq and (segments := await log.read(state.conversation, cursor)):
        for segment in segments:
            lines = lines_after(segment, cursor)
            if segment.last > state.seq:
                lines = lines[: state.seq - cursor] if not segment.compacted else lines
            yield b"".join(line + b"\n" for line in lines)
            cursor = segment.last


# -- in


@post(
    "/api/conversations/import",
    request_max_body_size=IMPORT_BYTES,
    responses={200: ResponseSpec(Imported, description="What a dry run would make", generate_examples=False)},
    operation_class=operation(body={"application/json": OBJECT, "application/octet-stream": BYTES}),
    operation_id="import_conversation",
    tags=["history"],
)
async def import_file(
    request: NativeRequest,
    server: Server,
    format: FromQuery[Format | None] = None,
    title: Annotated[str | None, QueryParameter(max_length=TITLE_CHARS)] = None,
    agent: FromQuery[str | None] = None,
    project: FromQuery[str | None] = None,
    dry_run: FromQuery[bool] = False,
    client_request_id: Annotated[str | None, QueryParameter(pattern=ID_PATTERN)] = None,
) -> Response[Imported]:
    """Make a conversation from a file, sent as the body. The format is seen in the file unless it is given."""
    home = str(server.directory.home)
    wishes = Wishes(
        project=project or home, knows=lambda name: server.agents.agent(name) is not None, agent=agent, title=title
    )
    async with spool_body(request, server.directory.folders.data) as body:
        if await asyncio.to_thread(_is_blank, body):
            raise Invalid("The body is empty: send the file as it is.")
        kind = await asyncio.to_thread(detect_format, body) if format is None else format
        file = await asyncio.to_thread(read, body, kind)
        digest = await asyncio.to_thread(_digest, body, kind, title, agent, project)
        claim = Claim(client_request_id or server.ids.new(), digest)
        state = await server.directory.bring(file, wishes, claim, origin_of(request, "native"), dry=dry_run)
    made = Imported(
        conversation=None if dry_run else state.conversation,
        format=kind,
        title=state.title,
        agent=state.agent,
        project=state.project,
        message_count=len(state.messages),
        seq=state.seq,
        left_out=_left_out(file, state),
    )
    return Response(made, status_code=200 if dry_run else 201)


def _is_blank(file: IO[bytes]) -> bool:
    file.seek(0)
    return not any(piece.strip() for piece in iter(lambda: file.read(PIECE_BYTES), b""))


def _digest(file: IO[bytes], *wishes: str | None) -> str:
    file.seek(0)
    digest = blake2b(digest_size=16)
    for piece in iter(lambda: file.read(PIECE_BYTES), b""):
        digest.update(piece)
    digest.update(msgspec.json.encode(wishes))
    return digest.hexdigest()


def _left_out(file: Told | Recorded, state: State) -> tuple[str, ...]:
    if isinstance(file, Recorded):
        return ()
    return tuple(sorted(name for name in file.params if name not in state.params))


ROUTES = [export, import_file]
