"""Conversations and what is asked of them: make, list, change, command, read.

Each route turns a request into one call of the directory or the log and shows the answer as it is.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from litestar import Request, delete, get, patch, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import Struct

from palaver.conversation.recovery.load import TAIL_MESSAGES
from palaver.errors import Gone, NotFound
from palaver.faces.http.body import JsonBody
from palaver.faces.rights import require, role_for, role_for_params
from palaver.faces.server import Server, ServerParts, origin_of
from palaver.people.authentication import Principal
from palaver.schema.base import Id, Shown
from palaver.schema.commands import (
    Accepted,
    Command,
    CreateConversation,
    DeleteConversation,
    RemoveGrant,
    SendMessage,
    UpdateConversation,
)
from palaver.schema.view import Listing, Message, State

COMMAND_BYTES = 15 << 20
"""A message may carry a 10 MiB image as a data URL, which is a third longer."""
PAGE_LIMIT = 500
TITLES_LOOKED_AT = 1_000
"""The newest titles a query looks through; older conversations are found by their text."""
HITS_LOOKED_AT = 200
LAST_SEQ = (1 << 63) - 1

NativeRequest = Request[Principal, Principal, Any]


class ListPage(Shown):
    """`pos` was taken before the rows were read: following the list from it misses nothing."""

    items: tuple[Listing, ...]
    next_cursor: str | None
    pos: int


class MessagePage(Shown):
    items: tuple[Message, ...]


class Changes(Struct, frozen=True, kw_only=True):
    title: str | None = None
    agent: Id | None = None
    archived: bool | None = None
    client_request_id: Id | None = None


@post(
    "/api/conversations",
    dto=JsonBody,
    request_max_body_size=COMMAND_BYTES,
    operation_id="create_conversation",
    tags=["conversations"],
)
async def create(data: JSONBody[CreateConversation], request: NativeRequest, server: Server) -> Accepted:
    """Make a conversation, with its first message if there is one. Repeating it with the same id is safe."""
    require(request.auth, role_for_params(data.params))
    answer = await server.directory.create(data, origin_of(request, "native"))
    await chose(server, request.auth, data.agent or "default")
    return answer


async def chose(server: ServerParts, who: Principal, agent: str | None) -> None:
    """What a person chose last is offered first the next time; what an agent's token chose is not."""
    if agent is not None and who.kind in ("owner", "human"):
        await server.agents.last_used.is_now(agent)


@get("/api/conversations", operation_id="list_conversations", tags=["conversations"])
async def list_conversations(
    server: Server,
    limit: Annotated[int, QueryParameter(ge=1, le=PAGE_LIMIT)] = 50,
    cursor: FromQuery[str | None] = None,
    wanted: Annotated[str | None, QueryParameter(name="query")] = None,
    archived: FromQuery[Literal["false", "true", "all"]] = "false",
    project: FromQuery[str | None] = None,
    children: FromQuery[bool] = False,
    root: FromQuery[str | None] = None,
) -> ListPage:
    """Newest first. `query` finds titles and texts instead; it gives one page.

    Conversations of subagents come with `children`, or with `root`: one conversation and all that began from it.
    """
    kind = None if archived == "all" else archived == "true"
    pos = await server.log.position()
    if wanted is not None and wanted.strip():
        found = await _matching(server, wanted.strip(), kind, project)
        return ListPage(items=tuple(found[:limit]), next_cursor=None, pos=pos)
    page = await server.log.list(
        limit=limit,
        cursor=cursor,
        project=project,
        archived=kind,
        children=children or root is not None,
        root=root,
    )
    return ListPage(items=tuple(page.items), next_cursor=page.next_cursor, pos=pos)


async def _matching(server: Server, query: str, archived: bool | None, project: str | None) -> list[Listing]:
    newest = await server.log.list(limit=TITLES_LOOKED_AT, project=project, archived=archived, children=True)
    rows = {row.id: row for row in newest.items}
    titled = [row for row in newest.items if query.casefold() in row.title.casefold()]
    hits = await server.log.search(query, limit=HITS_LOOKED_AT)
    found = {row.id: row for row in titled}
    for conversation in dict.fromkeys(hit.conversation for hit in hits):
        row = rows.get(conversation) or await server.log.listing(conversation)
        if row is not None and _is_wanted(row, archived, project):
            found.setdefault(conversation, row)
    return sorted(found.values(), key=lambda row: row.updated_at, reverse=True)


def _is_wanted(row: Listing, archived: bool | None, project: str | None) -> bool:
    return not row.deleted and archived in (None, row.archived) and project in (None, row.project)


@get(
    "/api/conversations/{conversation:str}",
    operation_id="get_conversation",
    tags=["conversations"],
)
async def listing(conversation: FromPath[str], server: Server) -> Listing:
    """The conversation's row in the list."""
    return await _listing(server, conversation)


async def _listing(server: Server, conversation: str) -> Listing:
    row = await server.log.listing(conversation)
    if row is None:
        raise NotFound("No such conversation.", conversation=conversation)
    if row.deleted:
        raise Gone("This conversation was deleted.", conversation=conversation)
    return row


@patch(
    "/api/conversations/{conversation:str}",
    dto=JsonBody,
    operation_id="update_conversation",
    tags=["conversations"],
)
async def update(
    conversation: FromPath[str], data: JSONBody[Changes], request: NativeRequest, server: Server
) -> Accepted:
    """Change the title, the agent, or whether it is archived."""
    command = UpdateConversation(
        title=data.title, agent=data.agent, archived=data.archived, client_request_id=data.client_request_id
    )
    answer = await server.directory.command(conversation, command, origin_of(request, "native"))
    await chose(server, request.auth, data.agent)
    return answer


@delete(
    "/api/conversations/{conversation:str}",
    status_code=200,
    operation_id="delete_conversation",
    tags=["conversations"],
)
async def remove(conversation: FromPath[str], request: NativeRequest, server: Server) -> Accepted:
    """Stop what runs in it and take it from every list."""
    return await server.directory.command(conversation, DeleteConversation(), origin_of(request, "native"))


@post(
    "/api/conversations/{conversation:str}/commands",
    dto=JsonBody,
    status_code=202,
    request_max_body_size=COMMAND_BYTES,
    operation_id="send_command",
    tags=["conversations"],
)
async def command(
    conversation: FromPath[str], data: JSONBody[Command], request: NativeRequest, server: Server
) -> Accepted:
    """Ask something of the conversation. When this answers, the command's events are on disk."""
    require(request.auth, role_for(data))
    if isinstance(data, RemoveGrant):
        await _take_back(server, conversation, data)
    answer = await server.directory.command(conversation, data, origin_of(request, "native"))
    if isinstance(data, SendMessage | UpdateConversation):
        await chose(server, request.auth, data.agent)
    return answer


async def _take_back(server: ServerParts, conversation: str, command: RemoveGrant) -> None:
    """What was given here for the agent or the project is taken back there: the list of a conversation shows it too."""
    state = await server.directory.state(conversation)
    for known in state.grants:
        if (known.tool, known.match) == (command.tool, command.match) and known.scope in ("agent", "project"):
            project = Path(state.project) if state.project else Path("/")
            await server.standing.take_back(known.tool, known.match, known.agent or state.agent, project)


@get(
    "/api/conversations/{conversation:str}/snapshot",
    operation_id="get_snapshot",
    tags=["conversations"],
)
async def snapshot(
    conversation: FromPath[str], server: Server, tail: Annotated[int, QueryParameter(ge=0, le=1_000)] = TAIL_MESSAGES
) -> State:
    """The folded view with its last messages; its events go on at `seq + 1`."""
    return await server.directory.state(conversation, tail)


@get(
    "/api/conversations/{conversation:str}/messages",
    operation_id="get_messages",
    tags=["conversations"],
)
async def messages(
    conversation: FromPath[str],
    server: Server,
    before: Annotated[int, QueryParameter(ge=0, le=LAST_SEQ)] = LAST_SEQ,
    limit: Annotated[int, QueryParameter(ge=1, le=PAGE_LIMIT)] = 100,
) -> MessagePage:
    """A page of history: the last `limit` messages that began before an event, oldest first."""
    return MessagePage(items=tuple(await server.directory.messages(conversation, before, limit)))


ROUTES = [create, list_conversations, listing, update, remove, command, snapshot, messages]
