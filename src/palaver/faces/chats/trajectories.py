"""Trajectories: every conversation as the document that other programs keep, listed, read, written, deleted, followed.

What is written is taken over into the log; the document that is read back is made from the log. So a trajectory and its chat
are one thing, and whatever keys a document brings along are kept as parameters of the chat.
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

import msgspec
from litestar import Response, delete, get, put
from litestar.openapi.spec import OpenAPIType, Schema
from litestar.params import FromPath, FromQuery, HeaderParameter, QueryParameter
from litestar.types import ASGIApp
from msgspec import Struct
from msgspec.structs import replace

from palaver.conversation.project_files.trajectories import ForeignFile, remove_file, trajectory_in
from palaver.conversation.project_files.transcripts import with_whole_texts
from palaver.errors import Conflict, Invalid, NotFound
from palaver.faces.chats.command_route import ID, ChatsRequest, filling, find_document
from palaver.faces.chats.messages import Json
from palaver.faces.chats.refusals import CONFLICT, REFUSED, TOO_LARGE, UNKNOWN
from palaver.faces.http.openapi import operation
from palaver.faces.http.sse import HEARTBEAT_COMMENT, EventStream, describe_stream
from palaver.faces.native.history import IMPORT_BYTES
from palaver.faces.rights import may_read
from palaver.faces.server import Server, ServerParts, origin_of
from palaver.feed.feed import HEARTBEAT_S
from palaver.history.parts import decode_document
from palaver.history.trajectory import document_of, moment, trajectory_of, unknown_keys
from palaver.log.base import Claim
from palaver.schema.commands import CreateConversation, DeleteConversation
from palaver.schema.events import decode_event
from palaver.schema.view import Listing, State

PAGE_LIMIT = 500
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)

DOCUMENT = Schema(
    type=OpenAPIType.OBJECT,
    description="A trajectory. Keys beyond these are kept.",
    properties={
        "id": Schema(type=OpenAPIType.STRING, description="As in the address"),
        "title": Schema(type=OpenAPIType.STRING),
        "messages": Schema(
            type=OpenAPIType.ARRAY,
            items=Schema(
                type=OpenAPIType.OBJECT, properties={"role": Schema(type=OpenAPIType.STRING)}, required=["role"]
            ),
        ),
    },
    required=["messages"],
)

_listed = msgspec.json.Decoder(dict[str, Any])


class TrajectoryRow(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    agent: str
    project: str | None
    state: str
    created_at: str
    updated_at: str
    message_count: int
    preview: str
    parent_id: str | None
    link_type: str | None
    root_chat_id: str | None


class TrajectoryPage(Struct, frozen=True, kw_only=True):
    items: list[TrajectoryRow]
    next_cursor: str | None
    has_more: bool
    total_count: int


class Done(Struct, frozen=True, kw_only=True):
    status: str
    id: str


def row_of(listing: Listing) -> TrajectoryRow:
    return TrajectoryRow(
        id=listing.id,
        title=listing.title,
        agent=listing.agent,
        project=listing.project,
        state=listing.status,
        created_at=moment(listing.created_at),
        updated_at=moment(listing.updated_at),
        message_count=listing.message_count,
        preview=listing.last_line,
        parent_id=listing.parent,
        link_type=listing.parent_kind,
        root_chat_id=listing.root,
    )


@get(
    "/v1/trajectories",
    responses=REFUSED,
    operation_id="list_trajectories",
    tags=["chats"],
)
async def list_trajectories(
    server: Server,
    limit: Annotated[int, QueryParameter(ge=1, le=PAGE_LIMIT)] = 50,
    cursor: FromQuery[str | None] = None,
) -> TrajectoryPage:
    """Newest first. `next_cursor` is where the next page begins."""
    page = await server.log.list(limit=limit, cursor=cursor or None, archived=None)
    return TrajectoryPage(
        items=[row_of(listing) for listing in page.items],
        next_cursor=page.next_cursor,
        has_more=page.next_cursor is not None,
        total_count=page.total or 0,
    )


@get(
    "/v1/trajectories/{trajectory:str}",
    responses={**REFUSED, **UNKNOWN},
    operation_id="get_trajectory",
    tags=["chats"],
)
async def get_trajectory(trajectory: FromPath[str], request: ChatsRequest, server: Server) -> Response[dict[str, Any]]:
    """The document of a chat; of one that is only a file beside the server's folder, that file."""
    try:
        return Response(await write_trajectory(trajectory, server))
    except NotFound:
        if not may_read(request.auth, "files"):
            raise  # Who may only read sees what the log says, and no files.
        document = await asyncio.to_thread(find_document, server.directory.home, trajectory)
        if document is None:
            raise
        return Response(document)


async def write_trajectory(chat: str, server: ServerParts) -> Json:
    state = await server.directory.whole(chat)
    messages = [await with_whole_texts(message, server.log.blobs) for message in state.messages]
    known = await asyncio.to_thread(find_document, _folder(state, server), chat)
    return await asyncio.to_thread(
        document_of, replace(state, messages=tuple(messages)), unknown_keys(known) if known else None
    )


def _folder(state: State, server: ServerParts) -> Path:
    return Path(state.project) if state.project else server.directory.home


@put(
    "/v1/trajectories/{trajectory:str}",
    status_code=200,
    request_max_body_size=IMPORT_BYTES,
    responses={**REFUSED, **CONFLICT, **TOO_LARGE},
    operation_class=operation(body={"application/json": DOCUMENT}),
    operation_id="put_trajectory",
    tags=["chats"],
)
async def put_trajectory(trajectory: FromPath[str], request: ChatsRequest, server: Server) -> Done:
    """Write a trajectory: its chat says from now on what the document says. At rest only."""
    if not ID.fullmatch(trajectory):
        raise Invalid("A trajectory's id is 1 to 128 of the characters A-Z a-z 0-9 _ -.")
    document = await asyncio.to_thread(decode_document, await request.body())
    if not isinstance(document, dict):
        raise Invalid("A trajectory is a JSON object with a list of `messages`.")
    if document.get("id", trajectory) != trajectory:
        raise Invalid(f"`id`: the document is of {document['id']!r}, the address of {trajectory!r}.")
    told = await asyncio.to_thread(trajectory_of, {**document, "id": trajectory})
    before = await _before(trajectory, server)
    if server.trajectories is not None:
        try:
            await server.trajectories.check(trajectory, _folder(before, server) if before else server.directory.home)
        except ForeignFile as foreign:
            raise Conflict(str(foreign)) from None
    origin = origin_of(request, "chats")
    if before is None:
        await server.directory.create(CreateConversation(id=trajectory), origin)
    if before is None or _content_of(await write_trajectory(trajectory, server)) != _content_of(document):
        claim = Claim(server.ids.new(), "")
        params = {**told.params, **unknown_keys(document)}
        await filling(server).rewrite(trajectory, told.messages, told.title, params, claim, origin)
    if server.trajectories is not None:
        await server.trajectories.keep(trajectory)
    return Done(status="saved", id=trajectory)


async def _before(trajectory: str, server: ServerParts) -> State | None:
    try:
        return await server.directory.state(trajectory, tail=0)
    except NotFound:
        return None


def _content_of(document: Json) -> Any:
    """What a document says, without when it was written."""
    return {name: value for name, value in document.items() if name not in ("updated_at", "created_at")}


@delete(
    "/v1/trajectories/{trajectory:str}",
    status_code=200,
    responses={**REFUSED, **UNKNOWN},
    operation_id="delete_trajectory",
    tags=["chats"],
)
async def delete_trajectory(trajectory: FromPath[str], request: ChatsRequest, server: Server) -> Done:
    """Delete a chat with its trajectory; one that is only a file of ours is removed."""
    row = await server.log.listing(trajectory)
    folder = Path(row.project) if row is not None and row.project else server.directory.home
    if row is not None:
        await server.directory.command(trajectory, DeleteConversation(), origin_of(request, "chats"))
    elif not ID.fullmatch(trajectory) or await asyncio.to_thread(trajectory_in, folder, trajectory) is None:
        raise NotFound("There is no such trajectory.", trajectory=trajectory)
    await asyncio.to_thread(remove_file, folder, trajectory)
    return Done(status="deleted", id=trajectory)


# -- as they change


@get(
    "/v1/trajectories/subscribe",
    media_type="text/event-stream",
    responses={
        200: describe_stream("`id: position`, `data: {type: created, updated or deleted, …}` and the row"),
        **REFUSED,
    },
    operation_id="subscribe_trajectories",
    tags=["chats"],
)
async def subscribe_trajectories(
    server: Server, last_event_id: Annotated[str | None, HeaderParameter(name="Last-Event-ID")] = None
) -> ASGIApp:
    """Follow the list: what is made, changed and deleted from now on, or since the `id:` that was seen last."""
    pos, since_ms, word = await server.log.position(), server.clock.now_ms(), b": following\n\n"
    if last_event_id:
        if _NUMBER.fullmatch(last_event_id) and int(last_event_id) <= pos:
            pos = int(last_event_id)
            since_ms = await _moment_after(server, pos)
        else:
            word = b": reset, fetch the list again\n\n"
    return EventStream("trajectories", word, _changes(server, pos, since_ms), bytes, server.streams)


async def _moment_after(server: ServerParts, pos: int) -> int:
    """The first millisecond behind the event at a position: what was made from then on is new to whoever saw it."""
    for _, segment in await server.log.read_all(max(0, pos - 1), limit_bytes=1):
        return decode_event(segment.body.splitlines()[0]).ts + 1
    return 0


async def _changes(server: ServerParts, pos: int, since_ms: int) -> AsyncGenerator[bytes, None]:
    met: set[str] = set()
    async with aclosing(server.listings.follow(pos)) as lines:
        coming = asyncio.ensure_future(anext(lines))
        try:
            while True:
                done, _ = await asyncio.wait({coming}, timeout=HEARTBEAT_S)
                if not done:
                    yield HEARTBEAT_COMMENT
                    continue
                rows = msgspec.convert(_listed.decode(coming.result())["items"], list[Listing])
                coming = asyncio.ensure_future(anext(lines))
                if rows:
                    yield b"".join(_change(listing, met, since_ms) for listing in rows)
        finally:
            coming.cancel()
            await asyncio.wait({coming})


def _change(listing: Listing, met: set[str], since_ms: int) -> bytes:
    made = listing.id not in met and listing.created_at >= since_ms
    if made:
        met.add(listing.id)
    # One that is gone before anybody looked was made all the same.
    kinds = [*(["created"] if made else []), *(["deleted"] if listing.deleted else [])] or ["updated"]
    return b"".join(_frame(kind, listing) for kind in kinds)


def _frame(kind: str, listing: Listing) -> bytes:
    body = msgspec.json.encode({"type": kind, **msgspec.to_builtins(row_of(listing))})
    return b"id: %d\ndata: %s\n\n" % (listing.pos, body)


ROUTES: list[Any] = [
    list_trajectories,
    subscribe_trajectories,
    get_trajectory,
    put_trajectory,
    delete_trajectory,
]
