"""The list of sessions, their histories, and searching them, in the words of this contract. Each is a read of the log."""

import re
from collections.abc import Iterable
from operator import itemgetter
from typing import Literal

from litestar import get, put
from litestar.params import FromPath, JSONBody
from msgspec import Struct
from msgspec.structs import replace

from palaver.conversation.transcripts import with_whole_texts
from palaver.errors import Gone, NotFound
from palaver.faces.body import JsonBody
from palaver.faces.instants import iso
from palaver.faces.json_post import json_post
from palaver.faces.server import Server, ServerParts, needs, origin_of
from palaver.faces.stream.answering import DEFAULT_AGENT, StreamRequest, Success
from palaver.faces.stream.project import Json, as_object
from palaver.faces.stream.uploads import upload_url
from palaver.log.base import Found
from palaver.schema.base import Id, Shown
from palaver.schema.commands import CreateConversation, DeleteConversation, UpdateConversation
from palaver.schema.view import Block, ImageBlock, Listing, Message, Role, TextBlock, ThinkingBlock, ToolBlock

PAGE = 500
HITS = 200
"""Messages looked at for one search: enough for more sessions than anybody reads."""


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


class Snippet(Shown):
    before: str
    match: str
    after: str


class Session(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The last two say why a search found it."""

    id: str
    title: str
    created_at: str
    updated_at: str
    message_count: int
    agent_id: str
    title_match: bool | None = None
    match_snippet: Snippet | None = None


class Saved(Session, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The session's own fields, beside the session itself: both forms are in use."""

    success: Literal[True]
    session: Session


class SessionList(Shown):
    sessions: list[Session]


class ToolCall(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    id: str
    name: str
    state: Literal["input-streaming", "input-available", "output-available", "output-error"]
    input: Json | None = None
    output: str | None = None
    error_text: str | None = None


class ChatBlock(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    type: Literal["text", "thinking", "tool", "image"]
    id: str
    content: str | None = None
    tool_call: ToolCall | None = None


class ChatMessage(Shown):
    id: str
    role: Role
    blocks: list[ChatBlock]


class History(Struct, frozen=True, kw_only=True, omit_defaults=True):
    messages: list[ChatMessage]
    warning: str | None = None


def session(row: Listing) -> Session:
    return Session(**_fields(row))


def _fields(row: Listing) -> Json:
    return {
        "id": row.id,
        "title": row.title,
        "created_at": iso(row.created_at),
        "updated_at": iso(row.updated_at),
        "message_count": row.message_count,
        "agent_id": row.agent,
    }


def _saved(row: Listing) -> Saved:
    return Saved(success=True, session=session(row), **_fields(row))


def chat_messages(messages: Iterable[Message]) -> list[ChatMessage]:
    """What a person and an agent said. A result stands with its call, wherever it came in."""
    return [
        ChatMessage(id=message.id, role=message.role, blocks=[_block(message, block) for block in message.blocks])
        for message in messages
        if message.role in ("user", "assistant") and not message.hidden and message.status != "superseded"
    ]


def _block(message: Message, block: Block) -> ChatBlock:
    known = f"{message.id}-{block.index}"
    match block:
        case TextBlock():
            return ChatBlock(type="text", id=known, content=block.text)
        case ThinkingBlock():
            return ChatBlock(type="thinking", id=known, content=block.text)
        case ImageBlock():
            return ChatBlock(type="image", id=known, content=upload_url(block.url))
        case ToolBlock():
            return ChatBlock(type="tool", id=known, tool_call=_tool_call(block))


def _tool_call(tool: ToolBlock) -> ToolCall:
    given = as_object(tool.input)
    match tool.status:
        case "input":
            return ToolCall(id=tool.call, name=tool.name, state="input-streaming")
        case "called" | "waiting" | "running":
            return ToolCall(id=tool.call, name=tool.name, state="input-available", input=given)
        case "ok":
            return ToolCall(id=tool.call, name=tool.name, state="output-available", input=given, output=tool.output)
        case "error" | "denied" | "interrupted":
            why = tool.error.message if tool.error else "The tool failed."
            return ToolCall(
                id=tool.call, name=tool.name, state="output-error", input=given, output=tool.output, error_text=why
            )


# -- routes


@json_post("/api/chat/sessions/save", "send", "stream_save_session", "stream")
async def save(data: JSONBody[Saving], request: StreamRequest, server: Server) -> Saved:
    """Make a session. One that is known is returned as it is."""
    row = await server.log.listing(data.id) if data.id else None
    if row is None:
        body = CreateConversation(id=data.id, title=data.title, agent=data.agent_id or DEFAULT_AGENT)
        made = await server.directory.create(body, origin_of(request, "stream"))
        row = await _row(server, made.conversation)
    if row.deleted:
        raise Gone("This session was deleted.", id=row.id)
    return _saved(row)


@get("/api/chat/sessions/list", guards=[needs("read")], operation_id="stream_list_sessions", tags=["stream"])
async def list_sessions(server: Server) -> SessionList:
    """All of them, newest first."""
    return SessionList(sessions=[session(row) for row in await _rows(server)])


@get(
    "/api/chat/sessions/history/{session_id:str}",
    guards=[needs("read")],
    operation_id="stream_session_history",
    tags=["stream"],
)
async def history(session_id: FromPath[str], server: Server) -> History:
    """What was said in a session."""
    state = await server.directory.whole(session_id)
    messages = chat_messages([await with_whole_texts(message, server.log.blobs) for message in state.messages])
    return History(messages=messages, warning=None if messages else "Nothing was said in this session yet.")


@put(
    "/api/chat/sessions/update",
    dto=JsonBody,
    guards=[needs("send")],
    operation_id="stream_update_session",
    tags=["stream"],
)
async def update(data: JSONBody[Updating], request: StreamRequest, server: Server) -> Saved:
    """Change the title or the agent. A title that a person gave is never overwritten by another than a person's."""
    if data.title is not None or data.agent_id is not None:
        command = UpdateConversation(title=data.title, agent=data.agent_id)
        await server.directory.command(data.id, command, origin_of(request, "stream"))
    row = await _row(server, data.id)
    return _saved(row)


@json_post("/api/chat/sessions/delete", "send", "stream_delete_session", "stream")
async def remove(data: JSONBody[Naming], request: StreamRequest, server: Server) -> Success:
    """Stop what runs in a session and take it from every list."""
    await server.directory.command(data.id, DeleteConversation(), origin_of(request, "stream"))
    return Success()


@json_post("/api/chat/sessions/search", "read", "stream_search_sessions", "stream")
async def search(data: JSONBody[Searching], server: Server) -> SessionList:
    """Sessions whose title or messages hold a text, whatever its case; newest first."""
    query = data.query.strip()
    if not query:
        return SessionList(sessions=[])
    found: dict[str, tuple[int, Session]] = {}
    for row in await _rows(server):
        if query.casefold() in row.title.casefold():
            found[row.id] = (row.updated_at, replace(session(row), title_match=True))
    for hit in await server.log.search(query, limit=HITS):
        known = None if hit.conversation in found else await server.log.listing(hit.conversation)
        if known is not None and not known.deleted:
            found[known.id] = (known.updated_at, replace(session(known), match_snippet=_snippet(hit, query)))
    newest_first = sorted(found.values(), key=itemgetter(0), reverse=True)
    return SessionList(sessions=[one for _, one in newest_first])


def _snippet(hit: Found, query: str) -> Snippet:
    """Around all of what was looked for where it stands so; else around the first of its words."""
    text = hit.before + hit.match + hit.after
    whole = re.search(re.escape(query), text, re.IGNORECASE)
    if whole is None:
        return Snippet(before=hit.before, match=hit.match, after=hit.after)
    return Snippet(before=text[: whole.start()], match=whole[0], after=text[whole.end() :])


async def _rows(server: ServerParts) -> list[Listing]:
    rows: list[Listing] = []
    cursor: str | None = None
    while True:
        page = await server.log.list(limit=PAGE, cursor=cursor, archived=None)
        rows += page.items
        cursor = page.next_cursor
        if cursor is None:
            return rows


async def _row(server: ServerParts, conversation: str) -> Listing:
    row = await server.log.listing(conversation)
    if row is None:
        raise NotFound("No such session.", id=conversation)
    return row


ROUTES = [save, list_sessions, history, update, remove, search]
