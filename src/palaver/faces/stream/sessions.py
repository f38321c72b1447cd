"""The list of sessions, their histories, and searching them, in the words of this contract. Each is a read of the log."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from litestar import get, post, put
from litestar.params import FromPath, JSONBody
from msgspec import Struct

from palaver.errors import Gone, NotFound
from palaver.faces.body import JsonBody
from palaver.faces.server import Server, ServerParts, needs, origin_of
from palaver.faces.stream.answering import DEFAULT_AGENT, StreamRequest
from palaver.faces.stream.project import as_object
from palaver.log.base import Found
from palaver.schema.base import Id
from palaver.schema.commands import CreateConversation, DeleteConversation, UpdateConversation
from palaver.schema.view import ImageBlock, Listing, Message, TextBlock, ThinkingBlock, ToolBlock

PAGE = 500
HITS = 200
"""Messages looked at for one search: enough for more sessions than anybody reads."""

Json = dict[str, Any]


class Saving(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a client knows of a session. Counts and times are ours to know."""

    id: Id | None = None
    title: str | None = None
    agent_id: Id | None = None


class Updating(Struct, frozen=True, kw_only=True, rename="camel"):
    id: Id
    title: str | None = None
    agent_id: Id | None = None


class Naming(Struct, frozen=True, kw_only=True):
    id: Id


class Searching(Struct, frozen=True, kw_only=True):
    query: str


# -- what is told


def session(row: Listing) -> Json:
    return {
        "id": row.id,
        "title": row.title,
        "createdAt": _iso(row.created_at),
        "updatedAt": _iso(row.updated_at),
        "messageCount": row.message_count,
        "agentId": row.agent,
    }


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def chat_messages(messages: Iterable[Message]) -> list[Json]:
    """What a person and an agent said. A result stands with its call, wherever it came in."""
    return [
        {"id": message.id, "role": message.role, "blocks": _blocks(message)}
        for message in messages
        if message.role in ("user", "assistant") and not message.hidden and message.status != "superseded"
    ]


def _blocks(message: Message) -> list[Json]:
    blocks: list[Json] = []
    for block in message.blocks:
        known = f"{message.id}-{block.index}"
        match block:
            case TextBlock():
                blocks.append({"type": "text", "content": block.text, "id": known})
            case ThinkingBlock():
                blocks.append({"type": "thinking", "content": block.text, "id": known})
            case ImageBlock():
                blocks.append({"type": "image", "content": block.url, "id": known})
            case ToolBlock():
                blocks.append({"type": "tool", "id": known, "toolCall": _tool_call(block)})
    return blocks


def _tool_call(tool: ToolBlock) -> Json:
    call: Json = {"id": tool.call, "name": tool.name}
    match tool.status:
        case "input":
            return {**call, "state": "input-streaming"}
        case "called" | "waiting" | "running":
            return {**call, "state": "input-available", "input": as_object(tool.input)}
        case "ok":
            return {**call, "state": "output-available", "input": as_object(tool.input), "output": tool.output}
        case "error" | "denied" | "interrupted":
            why = tool.error.message if tool.error else "The tool failed."
            return {
                **call,
                "state": "output-error",
                "input": as_object(tool.input),
                "output": tool.output,
                "errorText": why,
            }


# -- routes


@post(
    "/api/chat/sessions/save",
    dto=JsonBody,
    status_code=200,
    guards=[needs("send")],
    operation_id="stream_save_session",
    tags=["stream"],
)
async def save(data: JSONBody[Saving], request: StreamRequest, server: Server) -> Json:
    """Make a session. One that is known is returned as it is."""
    row = await server.log.listing(data.id) if data.id else None
    if row is None:
        body = CreateConversation(id=data.id, title=data.title, agent=data.agent_id or DEFAULT_AGENT)
        made = await server.directory.create(body, origin_of(request, "stream"))
        row = await _row(server, made.conversation)
    if row.deleted:
        raise Gone("This session was deleted.", id=row.id)
    return {"success": True, "session": session(row), **session(row)}


@get("/api/chat/sessions/list", guards=[needs("read")], operation_id="stream_list_sessions", tags=["stream"])
async def list_sessions(server: Server) -> Json:
    """All of them, newest first."""
    rows: list[Listing] = []
    cursor: str | None = None
    while True:
        page = await server.log.list(limit=PAGE, cursor=cursor, archived=None)
        rows += page.items
        cursor = page.next_cursor
        if cursor is None:
            return {"sessions": [session(row) for row in rows]}


@get(
    "/api/chat/sessions/history/{session_id:str}",
    guards=[needs("read")],
    operation_id="stream_session_history",
    tags=["stream"],
)
async def history(session_id: FromPath[str], server: Server) -> Json:
    """What was said in a session."""
    state = await server.directory.whole(session_id)
    messages = chat_messages(state.messages)
    return {"messages": messages} if messages else {"messages": [], "warning": "Nothing was said in this session yet."}


@put(
    "/api/chat/sessions/update",
    dto=JsonBody,
    guards=[needs("send")],
    operation_id="stream_update_session",
    tags=["stream"],
)
async def update(data: JSONBody[Updating], request: StreamRequest, server: Server) -> Json:
    """Change the title or the agent. A title that a person gave is never overwritten by another than a person's."""
    if data.title is not None or data.agent_id is not None:
        command = UpdateConversation(title=data.title, agent=data.agent_id)
        await server.directory.command(data.id, command, origin_of(request, "stream"))
    row = await _row(server, data.id)
    return {"success": True, "session": session(row), **session(row)}


@post(
    "/api/chat/sessions/delete",
    dto=JsonBody,
    status_code=200,
    guards=[needs("send")],
    operation_id="stream_delete_session",
    tags=["stream"],
)
async def remove(data: JSONBody[Naming], request: StreamRequest, server: Server) -> Json:
    """Stop what runs in a session and take it from every list."""
    await server.directory.command(data.id, DeleteConversation(), origin_of(request, "stream"))
    return {"success": True}


@post(
    "/api/chat/sessions/search",
    dto=JsonBody,
    status_code=200,
    guards=[needs("read")],
    operation_id="stream_search_sessions",
    tags=["stream"],
)
async def search(data: JSONBody[Searching], server: Server) -> Json:
    """Sessions whose title or messages hold a text, whatever its case; newest first."""
    query = data.query.strip()
    if not query:
        return {"sessions": []}
    found: dict[str, tuple[Listing, Json]] = {}
    for row in (await server.log.list(limit=PAGE, archived=None)).items:
        if query.casefold() in row.title.casefold():
            found[row.id] = (row, {"titleMatch": True})
    for hit in await server.log.search(query, limit=HITS):
        known = None if hit.conversation in found else await server.log.listing(hit.conversation)
        if known is not None and not known.deleted:
            found[known.id] = (known, {"matchSnippet": _snippet(hit)})
    rows = sorted(found.values(), key=lambda pair: pair[0].updated_at, reverse=True)
    return {"sessions": [{**session(row), **match} for row, match in rows]}


def _snippet(hit: Found) -> Json:
    return {"before": hit.before, "match": hit.match, "after": hit.after}


async def _row(server: ServerParts, conversation: str) -> Listing:
    row = await server.log.listing(conversation)
    if row is None:
        raise NotFound("No such session.", id=conversation)
    return row


ROUTES = [save, list_sessions, history, update, remove, search]
