"""The requests beside the socket: the log replayed, and sessions listed, made, changed, written to, cleared, deleted.

Every answer is `{ok: true, result}`; a refusal has the one shape of all errors and a status.
"""

from contextlib import aclosing
from typing import Annotated, Any, Generic, Literal, TypeVar

from litestar import Request, Response, get
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromQuery, JSONBody, QueryParameter
from msgspec import Meta, Struct

from palaver.core.exchanges import answer_of
from palaver.core.state import tools_of_turn
from palaver.errors import Invalid
from palaver.faces.http.json_route import json_post
from palaver.faces.http.websocket_frames import payloads
from palaver.faces.native.conversations import COMMAND_BYTES, PAGE_LIMIT, chose
from palaver.faces.server import Server, ServerParts, origin_of
from palaver.faces.socket.projection import FACE
from palaver.faces.socket.replay import BEGINNING, Cursor, cursor_of, next_cursor, replay
from palaver.faces.socket.sessions import OUTPUT_MODE, Row, row
from palaver.people.authentication import Principal
from palaver.schema.base import Id, Origin, Shown
from palaver.schema.commands import (
    Accepted,
    Command,
    CreateConversation,
    DeleteConversation,
    Interrupt,
    RemoveQueued,
    SendMessage,
    SetParams,
    TruncateMessages,
    UpdateConversation,
)
from palaver.schema.view import State
from palaver.tasks import TaskOwner, wait_first

PATH = "/api/plugins/sessions/operations"
PAGE = 50
TIMEOUT_S = 300.0
"""As long as one agent waits for another."""
LONGEST_TIMEOUT_S = 3_600.0

OutputMode = Literal["text", "speech", "both"]
SocketRequest = Request[Principal, Principal, Any]


class Events(Struct, frozen=True, kw_only=True, rename="camel"):
    session_id: Id
    after: int | str | None = None


class Listing(Struct, frozen=True, kw_only=True, rename="camel"):
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] | None = None
    cursor: str | None = None


class Creating(Struct, frozen=True, kw_only=True, rename="camel"):
    agent_id: Id | None = None
    title: str | None = None
    project_root: str | None = None
    session_id: Id | None = None
    output_mode: OutputMode | None = None


class Updating(Struct, frozen=True, kw_only=True, rename="camel"):
    session_id: Id
    title: str | None = None
    agent_id: Id | None = None
    output_mode: OutputMode | None = None


class Writing(Struct, frozen=True, kw_only=True, rename="camel"):
    session_id: Id
    content: str
    mode: Literal["sync", "async"] | None = None
    """`sync` unless told."""
    timeout: Annotated[float, Meta(gt=0, le=LONGEST_TIMEOUT_S)] | None = None
    client_message_id: Id | None = None


class Naming(Struct, frozen=True, kw_only=True, rename="camel"):
    session_id: Id


class Named(Shown, rename="camel"):
    session_id: str


class Listed(Shown, rename="camel"):
    sessions: list[Row]
    next_cursor: str | None


class Replayed(Shown, rename="camel"):
    events: list[dict[str, Any]]
    next_cursor: str
    reset: bool


class Answered(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`response` is the answer, or says why there is none; the last two are of an answer alone."""

    status: Literal["complete", "timeout", "queued", "started", "failed", "cancelled"]
    session_id: str
    message_id: str | None
    response: str | None = None
    duration_ms: int | None = None
    tool_call_count: int | None = None


T = TypeVar("T")


class Done(Shown, Generic[T]):
    result: T
    ok: bool = True


class Created(Shown, rename="camel"):
    result: Named
    session_id: str
    ok: bool = True


# -- replay


@json_post(
    f"{PATH}/events",
    "socket_events",
    "socket",
    responses={200: ResponseSpec(Done[Replayed], generate_examples=False)},
)
async def events(data: JSONBody[Events], server: Server) -> Response[bytes]:
    """Everything that was told live of a session after a cursor, in order; without one, from the beginning."""
    return await _replay(data.session_id, data.after, server)


@get(
    f"{PATH}/events",
    operation_id="socket_events_by_query",
    tags=["socket"],
    responses={200: ResponseSpec(Done[Replayed], generate_examples=False)},
)
async def events_by_query(
    server: Server,
    session: Annotated[Id, QueryParameter(name="sessionId")],
    after: FromQuery[str | None] = None,
) -> Response[bytes]:
    """The same, with the fields in the query."""
    return await _replay(session, after, server)


async def _replay(session: str, after: int | str | None, server: ServerParts) -> Response[bytes]:
    head = (await server.directory.state(session, tail=0)).seq
    cursor = Cursor(BEGINNING) if after is None else await cursor_of(server.log, session, after, head)
    told: list[bytes] = []
    async with aclosing(replay(server.log, session, cursor.after, head)) as pieces:
        async for frames in pieces:
            told += [body for frame in frames for body in payloads(frame.body)]
    # Written from the frames as they were encoded: what is replayed is what was sent.
    body = b'{"ok":true,"result":{"events":[%s],"nextCursor":"%s","reset":%s}}' % (
        b",".join(told),
        next_cursor(server.log, head).encode(),
        b"true" if cursor.reset else b"false",
    )
    return Response(body, media_type="application/json")


# -- sessions


@json_post(f"{PATH}/list", "socket_list", "socket")
async def list_sessions(data: JSONBody[Listing], server: Server) -> Done[Listed]:
    """Sessions, the latest changed first."""
    page = await server.log.list(limit=data.limit or PAGE, cursor=data.cursor)
    return Done(result=Listed(sessions=[row(known) for known in page.items], next_cursor=page.next_cursor))


@json_post(f"{PATH}/create", "socket_create", "socket", status_code=201)
async def create(data: JSONBody[Creating], request: SocketRequest, server: Server) -> Created:
    """Make a session. Without a project it belongs to the folder the server was started in."""
    params = {OUTPUT_MODE: data.output_mode} if data.output_mode else {}
    body = CreateConversation(
        id=data.session_id, title=data.title, agent=data.agent_id, project=data.project_root, params=params
    )
    made = await server.directory.create(body, origin_of(request, FACE))
    await chose(server, request.auth, data.agent_id)
    return Created(result=Named(session_id=made.conversation), session_id=made.conversation)


@json_post(f"{PATH}/update", "socket_update", "socket")
async def update(data: JSONBody[Updating], request: SocketRequest, server: Server) -> Done[Named]:
    """Change the title, the agent, or whether answers are spoken; what is not given stays."""
    orders: list[Command] = []
    if data.title is not None or data.agent_id is not None:
        orders.append(UpdateConversation(title=data.title, agent=data.agent_id))
    if data.output_mode is not None:
        orders.append(SetParams(patch={OUTPUT_MODE: data.output_mode}))
    if not orders:
        raise Invalid("Nothing to change: give `title`, `agentId` or `outputMode`.")
    for order in orders:
        await server.directory.command(data.session_id, order, origin_of(request, FACE))
    await chose(server, request.auth, data.agent_id)
    return Done(result=Named(session_id=data.session_id))


@json_post(f"{PATH}/clear", "socket_clear", "socket")
async def clear(data: JSONBody[Naming], request: SocketRequest, server: Server) -> Done[Named]:
    """Stop what runs, forget what waits, and empty the transcript. The log keeps all of it."""
    origin = origin_of(request, FACE)
    state = await server.directory.state(data.session_id, tail=0)
    for item in state.queue:
        await server.directory.command(data.session_id, RemoveQueued(item=item.id), origin)
    if state.turn is not None:
        await server.directory.command(data.session_id, Interrupt(turn=state.turn.id), origin)
    await server.directory.command(data.session_id, TruncateMessages(from_index=0), origin)
    return Done(result=Named(session_id=data.session_id))


@json_post(f"{PATH}/delete", "socket_delete", "socket")
async def remove(data: JSONBody[Naming], request: SocketRequest, server: Server) -> Done[Named]:
    """Stop what runs in a session and take it from every list."""
    await server.directory.command(data.session_id, DeleteConversation(), origin_of(request, FACE))
    return Done(result=Named(session_id=data.session_id))


# -- writing to one


@json_post(f"{PATH}/message", "socket_message", "socket", request_max_body_size=COMMAND_BYTES)
async def message(data: JSONBody[Writing], request: SocketRequest, server: Server) -> Done[Answered]:
    """Send a message: `sync` waits for the answer, unless the session is busy; `async` says that it began or waits."""
    if not data.content.strip():
        raise Invalid("`content`: say something.")
    return Done(result=await _write(data, origin_of(request, FACE), server))


async def _write(data: Writing, origin: Origin, server: ServerParts) -> Answered:
    order = SendMessage(content=data.content, client_request_id=data.client_message_id)
    accepted = await server.directory.command(data.session_id, order, origin)
    if accepted.queued or accepted.turn is None:
        return Answered(status="queued", session_id=data.session_id, message_id=accepted.id)
    if data.mode == "async":
        return Answered(status="started", session_id=data.session_id, message_id=accepted.id)
    return await _answer(data, accepted, server)


async def _answer(data: Writing, accepted: Accepted, server: ServerParts) -> Answered:
    turn, begun_ms = accepted.turn or "", server.clock.now_ms()
    timeout_s = data.timeout or TIMEOUT_S
    async with TaskOwner() as tasks:
        over = tasks.start(server.directory.turn_over(data.session_id, turn), f"answer in {data.session_id}")
        await wait_first(over, tasks.start(server.clock.sleep(timeout_s), "wait for an answer"))
        if not over.done():
            words = f"No answer within {timeout_s:g} seconds. The turn goes on; what it says will be in the session."
            return Answered(status="timeout", session_id=data.session_id, message_id=accepted.id, response=words)
        return _outcome(over.result(), accepted, server.clock.now_ms() - begun_ms)


def _outcome(state: State, accepted: Accepted, waited_ms: int) -> Answered:
    turn = accepted.turn or ""
    last = state.last_turn if state.last_turn and state.last_turn.id == turn else None
    outcome = last.outcome if last else "completed"
    error = last.error.message if last and last.error and outcome == "failed" else None
    return Answered(
        status="failed" if outcome == "failed" else "cancelled" if outcome == "interrupted" else "complete",
        session_id=state.conversation,
        message_id=accepted.id,
        response=error or answer_of(state, turn),
        duration_ms=last.duration_ms if last and last.duration_ms is not None else waited_ms,
        tool_call_count=sum(1 for _ in tools_of_turn(state, turn)),
    )


ROUTES = [events, events_by_query, list_sessions, create, update, message, clear, remove]
