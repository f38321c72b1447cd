"""`POST /api/chat`, the address that two contracts share: answered by a stream of events, or by JSON that it has begun.

A body with a snake_case key of the bus gets JSON, unless its sender accepts an event stream; every other one is the stream's.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from litestar import MediaType, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import OpenAPIType, Schema
from litestar.params import HeaderParameter, JSONBody
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp

from palaver.errors import Invalid
from palaver.faces.bus.chat import Sent, begin
from palaver.faces.http.body import JsonBody
from palaver.faces.http.openapi import TEXT, operation
from palaver.faces.live import Live
from palaver.faces.native.conversations import COMMAND_BYTES
from palaver.faces.server import Server
from palaver.faces.stream.answer import Query, StreamRequest, ask

BEGUN = Schema(
    type=OpenAPIType.OBJECT,
    properties={
        "status": Schema(type=OpenAPIType.STRING, enum=["started", "queued"]),
        "session_id": TEXT,
        "run_id": TEXT,
    },
    required=["status", "session_id"],
)
"""`faces/bus/chat.py: Begun`, where one of two answers has to be described by hand."""


BUS_KEYS = frozenset({"project_root", "agent_id", "session_id", "mode"})


def wants_stream(accept: str, body: Mapping[str, Any]) -> bool:
    return "text/event-stream" in accept.lower() or BUS_KEYS.isdisjoint(body)


def check(body: Mapping[str, Any], kind: Any) -> Any:
    """Raises Invalid by field."""
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as wrong:
        what, _, where = str(wrong).partition(" - at ")
        raise Invalid(f"`{where.strip('`').removeprefix('$.') or 'body'}`: {what}.") from None


@post(
    "/api/chat",
    dto=JsonBody,
    status_code=200,
    request_max_body_size=COMMAND_BYTES,
    responses={
        200: ResponseSpec(str, description="The answer as it comes, or that it has begun", generate_examples=False)
    },
    operation_class=operation(answer={"text/event-stream": TEXT, "application/json": BEGUN}),
    operation_id="chat",
    tags=["stream", "bus"],
)
async def chat(
    data: JSONBody[dict[str, Any]],
    request: StreamRequest,
    server: Server,
    live: Live,
    accept: Annotated[str, HeaderParameter(name="Accept")] = "",
) -> ASGIApp:
    """Send a message: answered by a stream of events, or told that its run has started or waits."""
    if wants_stream(accept, data):
        return await ask(check(data, Query), request, server, live)
    told = await begin(check(data, Sent), request, server, live.bus.choosing)
    return ASGIResponse(body=msgspec.json.encode(told), media_type=MediaType.JSON)


ROUTES = [chat]
