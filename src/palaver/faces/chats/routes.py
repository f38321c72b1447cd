"""The routes of this face: follow a chat, ask something of it, take a message back before it is read; trajectories.

Everything a client is told comes from the projection; everything it asks goes through `command_route.py`.
"""

from collections.abc import AsyncGenerator
from typing import Any, cast

from litestar import Response, delete, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.types import ASGIApp
from msgspec import Struct

from palaver.errors import Invalid, NotFound
from palaver.faces.chats import trajectories
from palaver.faces.chats.command_route import ID, STATUSES, ChatsRequest, Outcome, make, take
from palaver.faces.chats.commands import Asked, Read, read_command
from palaver.faces.chats.refusals import REFUSED, TOO_LARGE, UNKNOWN
from palaver.faces.http.body import JsonBody
from palaver.faces.http.errors import RETRY_AFTER_S
from palaver.faces.http.sse import EventStream, describe_stream
from palaver.faces.live import Live
from palaver.faces.native.conversations import COMMAND_BYTES
from palaver.faces.server import Server, origin_of
from palaver.schema.commands import RemoveQueued


class Answered(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`accepted`, `applied`, `aborted`, `duplicate`, `invalid_content`, `queue_full`, `cancelled` or `not_found`."""

    status: str
    error: str | None = None
    client_request_id: str | None = None
    """Made here, where the command had none."""


class _CommandBody(JsonBody):
    """Decoded by this face itself: whatever is wrong with a body is an answer in its own words, and is acked."""

    def decode_bytes(self, value: bytes) -> Any:
        return read_command(value)


def _spec(description: str) -> ResponseSpec:
    return ResponseSpec(Answered, description=description, generate_examples=False)


@get(
    "/v1/chats/subscribe",
    media_type="text/event-stream",
    responses={
        200: describe_stream("`id: seq`, `data: frame`; a snapshot first"),
        **REFUSED,
        **UNKNOWN,
    },
    operation_id="subscribe_chat",
    tags=["chats"],
)
async def subscribe(
    request: ChatsRequest, server: Server, live: Live, chat_id: FromQuery[str | None] = None
) -> ASGIApp:
    """Follow a chat: a snapshot, then every change of it. A chat that nobody knows is made."""
    if chat_id is None or not ID.fullmatch(chat_id):
        raise Invalid("`chat_id`: say which chat, 1 to 128 of the characters A-Z a-z 0-9 _ -.")
    await make(chat_id, server, request)
    frames: AsyncGenerator[bytes, None] = live.chats.frames(chat_id)
    first = await anext(frames)
    return EventStream(f"chat {chat_id}", first, frames, bytes, server.streams)


@post(
    "/v1/chats/{chat_id:str}/commands",
    dto=_CommandBody,
    status_code=202,
    request_max_body_size=COMMAND_BYTES,
    responses={
        200: _spec("Applied, aborted, or the same as before"),
        400: _spec("Refused, and why; its id is free"),
        429: _spec("Too many messages wait"),
        **REFUSED,
        **TOO_LARGE,
    },
    operation_id="command_chat",
    tags=["chats"],
)
async def commands(
    chat_id: FromPath[str],
    request: ChatsRequest,
    server: Server,
    live: Live,
    data: JSONBody[Asked | None] = None,
) -> Response[dict[str, Any]]:
    """Ask something of a chat: `{client_request_id?, priority?, type, …}`. When this answers, it is on disk."""
    if ID.fullmatch(chat_id):
        read = read_command(b"") if data is None else cast(Read, data)
        outcome = await take(chat_id, read, request, server, live.chats)
    else:
        outcome = Outcome("invalid_content", "A chat's id is 1 to 128 of the characters A-Z a-z 0-9 _ -.")
    status = STATUSES[outcome.status]
    wait_s = RETRY_AFTER_S.get(status)
    return Response(outcome.body, status_code=status, headers={} if wait_s is None else {"Retry-After": str(wait_s)})


@delete(
    "/v1/chats/{chat_id:str}/queue/{client_request_id:str}",
    status_code=200,
    responses={404: _spec("It was delivered or taken back before"), **REFUSED},
    operation_id="cancel_queued",
    tags=["chats"],
)
async def cancel_queued(
    chat_id: FromPath[str], client_request_id: FromPath[str], request: ChatsRequest, server: Server
) -> Response[Answered]:
    """Take a message back that has not been delivered."""
    try:
        state = await server.directory.state(chat_id, tail=0)
        item = next(known.id for known in state.queue if client_request_id in (known.client_request_id, known.id))
        await server.directory.command(chat_id, RemoveQueued(item=item), origin_of(request, "chats"))
    except (NotFound, StopIteration):
        return Response(Answered(status="not_found"), status_code=404)
    return Response(Answered(status="cancelled"))


ROUTES: list[Any] = [subscribe, commands, cancel_queued, *trajectories.ROUTES]
