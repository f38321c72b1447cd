"""Messages as a client of the bus sends them: told that they started a run or wait, and followed on the bus.

`begin` is called by `faces/chat_route.py` for `POST /api/chat`; the routes here clear a session and take a queued message back.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any, Literal

from litestar import Request, delete
from litestar.params import FromPath, JSONBody
from msgspec import Struct
from msgspec.structs import replace

from palaver.conversation.creation import DEFAULT_AGENT
from palaver.core import params
from palaver.core.decide.decision import Refusal
from palaver.core.state import message_count
from palaver.errors import Conflict, Gone, Invalid, NotFound
from palaver.faces.bus.views import names_of
from palaver.faces.http.json_route import json_post
from palaver.faces.rights import require, role_for
from palaver.faces.server import Server, ServerParts, origin_of
from palaver.faces.stream.uploads import image_url
from palaver.people.authentication import Principal
from palaver.schema.base import Id, Origin, Shown
from palaver.schema.commands import CreateConversation, RemoveQueued, SendMessage, TruncateMessages
from palaver.schema.content import Content, ImagePart, ImageUrl, TextPart
from palaver.schema.view import Listing

FACE = "bus"
PAGE = 500
REPEATED = 100
"""Sessions that are looked through for a request that was sent before: it is repeated soon, or not at all."""

BusRequest = Request[Principal, Principal, Any]

_ADDRESSED = re.compile(r"(?<!\s)\s*+@([A-Za-z0-9_-]{1,128})(?=\s|$)\s*+", re.ASCII)
_PLAN = re.compile(r"(?<!\s)\s*+/plan(?=\s|$)\s*+", re.ASCII)


class Sent(Struct, frozen=True, kw_only=True):
    """The body of `POST /api/chat`. Without a project it is the server's own, without an agent the default one."""

    message: str = ""
    project_root: str | None = None
    agent_id: Id | None = None
    session_id: Id | None = None
    mode: str | None = None
    images: tuple[str | ImagePart, ...] | None = None
    client_request_id: Id | None = None


class Begun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: Literal["started", "queued"]
    session_id: str
    run_id: str | None = None


class Clearing(Struct, frozen=True, kw_only=True):
    project_root: str | None = None
    session_id: Id | None = None


class Cleared(Shown):
    removed: int
    """Messages."""


class TakenBack(Shown):
    removed: bool


# -- sending


async def begin(body: Sent, request: BusRequest, server: ServerParts, choosing: asyncio.Lock) -> Begun:
    """On disk, and running or in the queue. `choosing`: one for all requests, while they look for their session."""
    named = await _row(server, body.session_id) if body.session_id else None
    project = (named.project if named else None) or await _project(server, request, body.project_root)
    addressed, text = _split_address(body.message, server, project)
    planned = _PLAN.match(text)
    text = text[planned.end() :] if planned else text
    agent = addressed or body.agent_id
    if agent is not None and server.agents.agent(agent, project) is None:
        raise NotFound(server.agents.why_not(agent, project), agent=agent)
    message = SendMessage(
        content=_content(text, body.images or ()),
        delivery="boundary",
        mode="plan" if planned else _mode(body.mode),
        client_request_id=body.client_request_id,
    )
    require(request.auth, role_for(message))
    origin = origin_of(request, FACE)
    if named is None:
        # Two first messages at once must not make two sessions.
        async with choosing:
            named = await _found(body, agent, project, server) or await _create(body, agent, project, origin, server)
    if agent is not None and agent != named.agent:
        message = replace(message, agent=agent)
    accepted = await server.directory.command(named.id, message, origin)
    if accepted.queued:
        return Begun(status="queued", session_id=named.id)
    return Begun(status="started", session_id=named.id, run_id=accepted.turn)


async def _found(body: Sent, agent: str | None, project: str, server: ServerParts) -> Listing | None:
    """The session that is named, else the latest of the agent in the project."""
    if body.session_id:
        return await _row(server, body.session_id)
    wanted = agent or server.defaults.agent or DEFAULT_AGENT
    latest: list[Listing] = []
    for name in await names_of(body.project_root or project):
        own = [row async for row in _own_sessions(server, wanted, name, REPEATED if body.client_request_id else 1)]
        for row in own:
            if body.client_request_id and await server.log.used(row.id, body.client_request_id) is not None:
                return row  # Where it went when it was first sent.
        latest += own[:1]
    return max(latest, key=lambda row: row.pos, default=None)


async def _own_sessions(server: ServerParts, agent: str, project: str, limit: int) -> AsyncIterator[Listing]:
    """The latest sessions in which people talk to an agent."""
    async for row in sessions_of(server, project, archived=False):
        if row.agent == agent and row.parent_kind != "exchange":
            yield row
            limit -= 1
            if not limit:
                return


async def _create(body: Sent, agent: str | None, project: str, origin: Origin, server: ServerParts) -> Listing:
    made = CreateConversation(id=body.session_id, agent=agent, project=project)
    session = (await server.directory.create(made, origin)).conversation
    row = await _row(server, session)
    assert row is not None
    return row


async def _project(server: ServerParts, request: BusRequest, name: str | None) -> str:
    if not name:
        return str(server.directory.home)
    return str(await server.projects.folder(name, person=request.auth.may("decide")))


def _split_address(message: str, server: ServerParts, project: str | None) -> tuple[str | None, str]:
    """`@agent-id text`, if there is such an agent; else the words are the person's own."""
    found = _ADDRESSED.match(message)
    if found is None or server.agents.agent(found[1], project) is None:
        return None, message
    return found[1], message[found.end() :]


def _content(text: str, images: tuple[str | ImagePart, ...]) -> Content:
    if not text.strip() and not images:
        raise Invalid("`message`: say something, or send an image.")
    urls = [image.image_url.url if isinstance(image, ImagePart) else image for image in images]
    parts = (TextPart(text=text),) if text.strip() else ()
    return (*parts, *(ImagePart(image_url=ImageUrl(url=image_url(url))) for url in urls))


def _mode(word: str | None) -> str | None:
    if word is None:
        return None
    fitted = params.check_patch({"mode": word})
    if isinstance(fitted, Refusal):
        raise Invalid(fitted.message)
    return str(fitted["mode"])


async def _row(server: ServerParts, session: str) -> Listing | None:
    row = await server.log.listing(session)
    if row is not None and row.deleted:
        raise Gone("This session was deleted.", session_id=session)
    return row


# -- clearing, and taking back


@json_post("/api/chat/clear", "bus_clear_chat", "bus")
async def clear(data: JSONBody[Clearing], request: BusRequest, server: Server) -> Cleared:
    """Take every message out of a session, or out of all sessions of a project. The log keeps them."""
    if data.session_id is not None:
        row = await _row(server, data.session_id)
        if row is None:
            raise NotFound("No such session.", session_id=data.session_id)
        rows = [row]
    elif data.project_root:
        rows = [row async for row in sessions_of(server, await _project(server, request, data.project_root))]
    else:
        # Too much to lose for a default.
        raise Invalid("`project_root`: say which project is to be cleared, or give a `session_id`.")
    if busy := [row for row in rows if row.turn is not None]:
        raise Conflict("An agent is working there. Stop it first, then clear.", session_id=busy[0].id)
    removed = 0
    for row in rows:
        count = message_count(await server.directory.state(row.id, tail=0))
        if count:
            await server.directory.command(row.id, TruncateMessages(from_index=0), origin_of(request, FACE))
            removed += count
    return Cleared(removed=removed)


async def sessions_of(server: ServerParts, project: str, archived: bool | None = None) -> AsyncIterator[Listing]:
    """Newest first."""
    cursor: str | None = None
    while True:
        page = await server.log.list(limit=PAGE, cursor=cursor, project=project, archived=archived)
        for row in page.items:
            yield row
        cursor = page.next_cursor
        if cursor is None:
            return


@delete(
    "/api/chat/queue/{item:str}",
    status_code=200,
    operation_id="bus_remove_queued",
    tags=["bus"],
)
async def remove_queued(item: FromPath[str], request: BusRequest, server: Server) -> TakenBack:
    """Take back a message that waits. One that was delivered, or taken back before, is not there any more."""
    for state in server.directory.at_work():
        if any(known.id == item for known in state.queue):
            await server.directory.command(state.conversation, RemoveQueued(item=item), origin_of(request, FACE))
            return TakenBack(removed=True)
    raise NotFound("That message does not wait: it was delivered or taken back before.", id=item[:128])


ROUTES = [clear, remove_queued]
