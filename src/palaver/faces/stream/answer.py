"""`POST /api/chat` answered by a stream, and what goes with it: permissions, cancelling, coming back to a running answer.

A message is a command like any other; whoever sent it follows the turn that answers it, and leaving changes nothing. The
tracking id of a query is the id of its message, known before its turn begins.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from litestar import Request, get
from litestar.params import FromQuery, HeaderParameter, JSONBody, QueryParameter
from litestar.types import ASGIApp
from msgspec import Struct
from msgspec.structs import replace

from palaver.approval.policy import OUR_TOOLS, Policy, Rule, rules_of
from palaver.approval.standing_grants import StandingGrant
from palaver.core.fold.evolve import evolve
from palaver.core.state import open_requests
from palaver.errors import CallerError, Conflict, Invalid, LogCorrupt, LogUnavailable, NotFound, PalaverError
from palaver.faces.http.json_route import json_post
from palaver.faces.http.rings import Beat, Behind
from palaver.faces.http.sse import BEHIND_COMMENT, HEARTBEAT_COMMENT, EventStream, describe_stream
from palaver.faces.live import Live, LiveFaces
from palaver.faces.long_texts import with_whole_text
from palaver.faces.projection import Following, Told
from palaver.faces.server import Server, ServerParts, origin_of
from palaver.faces.stream.projection import StreamProjector, about, frame, is_for, is_last
from palaver.faces.stream.session_ids import conversation_of
from palaver.faces.stream.uploads import image_url
from palaver.log.base import lines_after
from palaver.people.authentication import Principal
from palaver.schema.base import Id, Origin
from palaver.schema.commands import (
    Answer,
    CreateConversation,
    Interrupt,
    RemoveQueued,
    ResolveRequest,
    SendMessage,
    UpdateConversation,
)
from palaver.schema.content import Content, ImagePart, ImageUrl, TextPart
from palaver.schema.events import Event, decode_event
from palaver.schema.view import Request as OpenRequest
from palaver.schema.view import State

DEFAULT_AGENT = "default"
ACCEPTED = b": accepted "
"""The comment that every answer begins with; the tracking id follows."""
TRACKING_HEADER = b"x-query-tracking-id"
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)

StreamRequest = Request[Principal, Principal, Any]


class Query(Struct, frozen=True, kw_only=True, rename="camel"):
    """Many clients write what they leave out as null."""

    message: str | None = None
    images: tuple[str, ...] | None = None
    session_id: Id | None = None
    agent_id: Id | None = None
    partial: bool | None = None
    """False: no `stream_event` messages while an answer is written."""


class PermissionResponse(Struct, frozen=True, kw_only=True, rename="camel"):
    """Two spellings are in use: `response`, or `decision` with `alwaysAllow`."""

    permission_id: str
    response: Literal["allow", "deny", "always_allow"] | None = None
    decision: Literal["allow", "deny"] | None = None
    always_allow: bool | None = None
    message: str | None = None
    answers: tuple[Answer, ...] | None = None


class CancelQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    query_tracking_id: str | None = None
    session_id: str | None = None


class Success(Struct, frozen=True, kw_only=True):
    success: bool = True


class PermissionAnswered(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last two say that `always_allow` counts for less than the agent, and why."""

    success: Literal[True]
    scope: Literal["session", "once"] | None = None
    note: str | None = None


# -- asking


async def ask(query: Query, request: StreamRequest, server: ServerParts, live: LiveFaces) -> ASGIApp:
    """The answer to a message, as it comes. Refused before the first byte, or followed to its end."""
    content = content_of(query)
    origin = origin_of(request, "stream")
    conversation = await _conversation(query, request.auth, server, origin)
    partial = query.partial is not False
    items = _answer(conversation, SendMessage(content=content), origin, server, live, partial=partial)
    # Accepted, or refused with a status: the first item says so at once, whenever the turn may begin.
    first = await anext(items)
    headers = [(TRACKING_HEADER, first.removeprefix(ACCEPTED).strip())]
    return EventStream(f"query in {conversation}", first, items, bytes, server.streams, headers)


def content_of(query: Query) -> Content:
    message, images = query.message or "", query.images or ()
    if not message.strip() and not images:
        raise Invalid("`message`: say something, or send an image.")
    text = (TextPart(text=message),) if message.strip() else ()
    return (*text, *(ImagePart(image_url=ImageUrl(url=image_url(url))) for url in images))


async def _conversation(query: Query, caller: Principal, server: ServerParts, origin: Origin) -> str:
    """The one that is meant, with the agent that is meant: the query's, else the conversation's, else the last used."""
    session = query.session_id
    known = await conversation_of(session, caller, server, origin) if session is not None else None
    if known is None:
        try:
            return await _begin(query, server, origin)
        except Conflict:  # Another query of the same moment has just begun it.
            known = session or ""
    try:
        state = await server.directory.state(known, tail=0)
    except (LogCorrupt, NotFound):
        # Its history is lost, as `history` says: what is said now begins another, under an id of its own.
        return await _begin(replace(query, session_id=None), server, origin)
    if query.agent_id is not None and query.agent_id != state.agent:
        await server.directory.command(known, UpdateConversation(agent=query.agent_id), origin)
        await server.agents.last_used.is_now(query.agent_id)
    return known


async def _begin(query: Query, server: ServerParts, origin: Origin) -> str:
    """A fresh one, under the id that the client has for it or one of ours."""
    last = server.agents.last_used.agent
    usable = last if last and server.agents.agent(last) is not None else DEFAULT_AGENT
    body = CreateConversation(id=query.session_id, agent=query.agent_id or usable)
    made = await server.directory.create(body, origin)
    if query.agent_id:
        await server.agents.last_used.is_now(query.agent_id)
    return made.conversation


async def _answer(
    conversation: str, message: SendMessage, origin: Origin, server: ServerParts, live: LiveFaces, *, partial: bool
) -> AsyncGenerator[bytes, None]:
    # Followed before it is sent: nothing of its turn can be missed.
    async with live.stream.following(conversation) as following:
        accepted = await server.directory.command(conversation, message, origin)
        wanted = accepted.id or ""
        yield b"%s%s\n\n" % (ACCEPTED, wanted.encode())
        async with aclosing(_follow(following, wanted, conversation, server, partial=partial)) as frames:
            async for body in frames:
                yield body


async def _follow(
    following: Following, wanted: str, conversation: str, server: ServerParts, *, partial: bool
) -> AsyncGenerator[bytes, None]:
    """The frames about a message or a turn, through `done`."""
    seen = following.state.seq
    while True:
        item = await following.next()
        match item:
            case Beat():
                yield HEARTBEAT_COMMENT
            case Behind():
                # Too slow for what is kept in memory; the log has all of it.
                yield BEHIND_COMMENT
                following.begin_anew()
                until = following.state.seq
                missed = _replay(server, conversation, seen, until, wanted, partial=partial)
                async with aclosing(missed):
                    async for body in missed:
                        yield body
                        if is_last(body):
                            return
                seen = following.state.seq
            case _:
                seen = _cursor(item.frames[-1])
                mine = item.once(
                    (wanted, partial),
                    lambda frames: b"".join([said.body for said in frames if is_for(said, wanted, partial=partial)]),
                )
                if mine:
                    yield mine
                    if is_last(mine):
                        return


def _cursor(said: Told) -> int:
    return int(said.body.split(b"\nid: ", 1)[1].split(b"\n", 1)[0])


# -- coming back


@get(
    "/api/chat/stream",
    media_type="text/event-stream",
    responses={200: describe_stream("The frames of `POST /api/chat`")},
    operation_id="stream_reattach",
    tags=["stream"],
)
async def reattach(
    request: StreamRequest,
    server: Server,
    live: Live,
    session_id: Annotated[str, QueryParameter(name="sessionId")],
    after: FromQuery[str | None] = None,
    partial: FromQuery[bool] = True,
    last_event_id: Annotated[str | None, HeaderParameter(name="Last-Event-ID")] = None,
) -> ASGIApp:
    """Come back to the answer of a conversation. `after` is the last `id:` seen; at rest, what was missed and `done`."""
    # A browser that reconnects repeats the address of its first try, so what it saw last counts.
    cursor = last_event_id or after or "0"
    if not _NUMBER.fullmatch(cursor):
        raise Invalid("`after` is the number of the last `id:` line, or absent.")
    known = await conversation_of(session_id, request.auth, server, origin_of(request, "stream"))
    conversation = known or session_id
    items = _rejoin(conversation, int(cursor), server, live, partial=partial)
    return EventStream(f"query in {conversation}", await anext(items), items, bytes, server.streams)


async def _rejoin(
    conversation: str, after: int, server: ServerParts, live: LiveFaces, *, partial: bool
) -> AsyncGenerator[bytes, None]:
    async with live.stream.following(conversation) as following:
        state = following.state
        turn = state.turn.id if state.turn else state.last_turn.id if state.last_turn else None
        # A number that this conversation has not come to is of another one: all of the turn is told.
        known = after <= state.seq
        yield b": rejoined\n\n" if known else b": reset, this is all of the last turn\n\n"
        is_over = False
        if turn is not None:
            since = after if known else 0
            kept = await _remaining_messages(state, turn, server) if state.turn is None else None
            missed = _replay(server, conversation, since, state.seq, turn, partial=partial, reset=not known, kept=kept)
            async with aclosing(missed):
                async for body in missed:
                    yield body
                    is_over = is_last(body)
        if state.turn is None:
            if not is_over:
                yield frame("done", {"sessionId": conversation}, state.seq)
            return
        async with aclosing(_follow(following, state.turn.id, conversation, server, partial=partial)) as frames:
            async for body in frames:
                yield body


async def _remaining_messages(state: State, turn: str, server: ServerParts) -> frozenset[str]:
    """The messages of a turn that is over which nobody has removed since."""
    if state.offset and state.messages and state.messages[0].turn == turn:
        state = await server.directory.whole(state.conversation)
    return frozenset(message.id for message in state.messages if message.turn == turn)


async def _replay(
    server: ServerParts,
    conversation: str,
    after: int,
    until: int,
    wanted: str,
    *,
    partial: bool,
    reset: bool = False,
    kept: frozenset[str] | None = None,
) -> AsyncGenerator[bytes, None]:
    """What was told of one turn or message between two cursors, from the log: folded from where that turn begins.

    Only of the `kept` messages, where it is said which those are, and of their calls.
    """
    state = await server.directory.state(conversation)
    first = min((known.seq for known in state.messages if wanted in (known.turn, known.id)), default=after + 1)
    view, cursor = State(conversation=conversation, project=state.project), first - 1
    record = server.agents.agent(state.agent, state.project)
    projector = StreamProjector([one.name for one in record.mcp_servers] if record else (), reset=reset)
    removed_calls: set[str] = set()
    while cursor < until and (segments := await server.log.read(conversation, cursor)):
        for segment in segments:
            for line in lines_after(segment, cursor):
                event = await with_whole_text(decode_event(line), server.log.blobs)
                if event.seq > until:
                    return
                if kept is not None and _is_removed(event, kept, removed_calls):
                    continue
                before, view = view, evolve(view, event)
                for said in projector.project(event, before, view):
                    if event.seq > after and is_for(said, wanted, partial=partial):
                        yield said.body
            cursor = segment.last


def _is_removed(event: Event, kept: frozenset[str], removed_calls: set[str]) -> bool:
    """Whether an event is about a message that is gone, or a call of one; such calls are remembered."""
    message, call = getattr(event, "message", None), getattr(event, "call", None)
    if message is not None and message not in kept:
        removed_calls |= {call} if call is not None else set()
        return True
    return call is not None and call in removed_calls


# -- permissions and cancelling


@json_post("/api/chat/permission-response", "stream_permission", "stream")
async def permission(data: JSONBody[PermissionResponse], request: StreamRequest, server: Server) -> PermissionAnswered:
    """Answer a permission request. `always_allow` also lets this agent use the tool from now on, as `GET /api/grants` lists;
    from a token that may not change agents it counts for the session, and the answer says so. It answers what waits in
    this session, and no call that waits in another."""
    response = data.response or ("always_allow" if data.always_allow and data.decision == "allow" else data.decision)
    if response is None:
        raise Invalid("`response` must be `allow`, `deny` or `always_allow`.")
    waiting = await server.directory.waiting()
    found = next(((row, known) for row, known in waiting if known.id == data.permission_id), None)
    if found is None:
        raise NotFound("No such permission request waits: it was answered, has expired, or never was.")
    row, known = found
    agent, origin = known.agent or row.agent, origin_of(request, "stream")
    answer = ResolveRequest(
        request=known.id,
        verdict="deny" if response == "deny" else "allow",
        answers=data.answers or (),
        text=data.message,
    )
    told, grant = PermissionAnswered(success=True), None
    lasts = response == "always_allow" and known.kind == "approval" and known.tool is not None
    if lasts:
        because = "this token may not change agents"
        if request.auth.may("admin"):
            grant, because = await _allow_for_agent(row.id, known, agent, origin, server)
        if because:
            answer, told = _for_session(known, answer, because)
    try:
        accepted = await server.directory.command(row.id, answer, origin)
        if not accepted.applied:
            raise NotFound("No such permission request waits: somebody else was faster.")
    except PalaverError:
        # Who answered first may have denied it: an answer that comes too late allows nothing.
        if grant is not None:
            await server.agents.book.disallow_tool(agent, grant.tool)
            await server.standing.remove(grant.id)
        raise
    if lasts and told.scope is None:
        await _let_through(row.id, known.tool or "", agent, origin, server)
    return told


async def _allow_for_agent(
    conversation: str, known: OpenRequest, agent: str, origin: Origin, server: ServerParts
) -> tuple[StandingGrant | None, str]:
    """The tool in the agent's record, and who put it there: None if it was there before. Or why that cannot be."""
    tool = OUR_TOOLS.get(known.tool or "", known.tool or "")
    try:
        if not await server.agents.book.allow_tool(agent, tool):
            return None, ""
    except (Conflict, NotFound):
        return None, "the record of this agent cannot be changed here"
    grant = StandingGrant(
        id=server.ids.new(),
        tool=tool,
        scope="agent",
        agent=agent,
        ts=server.clock.now_ms(),
        conversation=conversation,
        request=known.id,
        by=origin.user,
        in_record=True,
    )
    try:
        await server.standing.add(grant)
    except LogUnavailable:
        await server.agents.book.disallow_tool(agent, tool)
        raise
    return grant, ""


def _for_session(known: OpenRequest, answer: ResolveRequest, because: str) -> tuple[ResolveRequest, PermissionAnswered]:
    """The widest yes that this request can be given for the conversation, and what the client is told of it."""
    if "conversation" in known.scopes and known.offers:
        note = f"Allowed in this session ({known.offers[-1].label}): {because}."
        answer = replace(answer, scope="conversation", offer=len(known.offers) - 1)
        return answer, PermissionAnswered(success=True, scope="session", note=note)
    note = f"Allowed once: {because}, and this call cannot be allowed for a session."
    return answer, PermissionAnswered(success=True, scope="once", note=note)


def _policy_of(rules: tuple[Rule, ...], project: str | None) -> Policy:
    policy = Policy(rules)
    return policy if project is None else policy.at(Path(project).resolve())


async def _let_through(conversation: str, tool: str, agent: str, origin: Origin, server: ServerParts) -> None:
    """Calls of this session that were asked for before the lasting yes have it too: they would not be asked for again.
    Where rules have a word on the tool they might be, so they go on waiting."""
    state = await server.directory.state(conversation, tail=0)
    project = state.project
    record = server.agents.agent(agent, project)
    policy = _policy_of(server.rules, project)
    more = (
        *rules_of(record.policy if record else None, "agent"),
        *rules_of(state.params.get("policy"), "conversation"),
    )
    if policy.restricts_tool(tool, more):
        return
    waiting = [
        known.id
        for known in open_requests(state)
        if state.turn and known.call and (known.tool, known.agent or state.agent) == (tool, agent)
    ]
    for request in waiting:
        with suppress(CallerError):  # Somebody was faster.
            await server.directory.command(conversation, ResolveRequest(request=request, verdict="allow"), origin)


@json_post("/api/chat/cancel", "stream_cancel", "stream")
async def cancel(data: JSONBody[CancelQuery], request: StreamRequest, server: Server) -> Success:
    """Stop a query by its tracking id, or whatever runs in a session by its id."""
    wanted = data.query_tracking_id or data.session_id
    if not wanted:
        raise Invalid("`queryTrackingId`: say which query to cancel.")
    origin = origin_of(request, "stream")
    if data.session_id and not data.query_tracking_id:
        wanted = await conversation_of(data.session_id, request.auth, server, origin) or wanted
    for state in server.directory.at_work():
        if state.turn is not None and wanted in (state.conversation, *about(state.turn)):
            await server.directory.command(state.conversation, Interrupt(turn=state.turn.id), origin)
            return Success()
        if any(item.id == wanted for item in state.queue):
            await server.directory.command(state.conversation, RemoveQueued(item=wanted), origin)
            return Success()
    raise NotFound("That query is not active: it has ended, or never began.")


ROUTES = [reattach, permission, cancel]
