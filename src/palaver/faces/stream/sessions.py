"""The list of sessions, their histories, and searching them, in the words of this contract. Each is a read of the log."""

import re
from collections.abc import Iterable
from operator import itemgetter
from typing import Literal

from litestar import get, put
from litestar.params import FromPath, JSONBody
from msgspec import Struct
from msgspec.structs import replace

from palaver.conversation.project_files.transcripts import with_whole_texts
from palaver.errors import Gone, Invalid, LogCorrupt, NotFound, PalaverError
from palaver.faces.http.body import JsonBody
from palaver.faces.http.json_route import json_post
from palaver.faces.http.timestamps import iso
from palaver.faces.server import Server, ServerParts, origin_of
from palaver.faces.stream.answer import DEFAULT_AGENT, StreamRequest, Success
from palaver.faces.stream.projection import Json, as_object
from palaver.faces.stream.session_ids import conversation_of
from palaver.faces.stream.uploads import upload_url
from palaver.history.programs.foreign import milliseconds
from palaver.journal import Journal
from palaver.log.base import Found
from palaver.schema.base import Id, Origin, Shown
from palaver.schema.commands import CreateConversation, DeleteConversation, UpdateConversation
from palaver.schema.view import Block, ImageBlock, Listing, Message, Role, TextBlock, ThinkingBlock, ToolBlock

logger = Journal(__name__)

MISSING: dict[type[PalaverError], str] = {
    NotFound: "There is no session under this id; a message to it begins one.",
    Gone: "This session was deleted.",
    LogCorrupt: "The history of this session is damaged and cannot be read; the log of the server says more.",
}
"""Why a history is empty, for whoever asks for it."""
PAGE = 500
HITS = 200
"""Messages looked at for one search: enough for more sessions than anybody reads."""


class Saving(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a client knows of a session. Counts are ours to know, and so is when it changed."""

    id: Id | None = None
    title: str | None = None
    agent_id: Id | None = None
    created_at: str | None = None


class Naming(Struct, frozen=True, kw_only=True, rename="camel"):
    """A session, under either of the names that are in use for its id."""

    id: Id | None = None
    session_id: Id | None = None

    @property
    def session(self) -> str:
        named = self.id or self.session_id
        if named is None:
            raise Invalid("`id`: say which session.")
        return named


class Updating(Naming, frozen=True, kw_only=True, rename="camel"):
    """`messageCount` may be there too; it is ours to count."""

    title: str | None = None
    agent_id: Id | None = None


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


def _session_info(row: Listing) -> Saved:
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


@json_post("/api/chat/sessions/save", "stream_save_session", "stream")
async def save(data: JSONBody[Saving], request: StreamRequest, server: Server) -> Saved:
    """Make a session, or give a known one the title and the agent that are said. Answers what is known of it now."""
    origin = origin_of(request, "stream")
    known = await conversation_of(data.id, request.auth, server, origin) if data.id else None
    if known is None:
        body = CreateConversation(id=data.id, title=data.title or None, agent=data.agent_id or DEFAULT_AGENT)
        created_at = min(milliseconds(data.created_at), server.clock.now_ms())
        made = await server.directory.create(body, origin, created_at=created_at)
        return _session_info(await _row(server, made.conversation))
    # Many clients save what they leave empty as an empty text.
    return await _update(known, data.title or None, data.agent_id, origin, server)


async def _update(known: str, title: str | None, agent: str | None, origin: Origin, server: ServerParts) -> Saved:
    row = await _row(server, known)
    if row.deleted:
        raise Gone("This session was deleted.", id=row.id)
    if title is not None or agent is not None:
        await server.directory.command(known, UpdateConversation(title=title, agent=agent), origin)
    return _session_info(await _row(server, known))


@get("/api/chat/sessions/list", operation_id="stream_list_sessions", tags=["stream"])
async def list_sessions(server: Server) -> SessionList:
    """All of them, newest first."""
    return SessionList(sessions=[session(row) for row in await _rows(server)])


@get(
    "/api/chat/sessions/history/{session_id:str}",
    operation_id="stream_session_history",
    tags=["stream"],
)
async def history(session_id: FromPath[str], request: StreamRequest, server: Server) -> History:
    """What was said in a session. One that nobody knows has said nothing."""
    known = await conversation_of(session_id, request.auth, server, origin_of(request, "stream"))
    try:
        state = await server.directory.whole(known or session_id)
        messages = chat_messages([await with_whole_texts(message, server.log.blobs) for message in state.messages])
    except (NotFound, Gone, LogCorrupt) as problem:
        logger.warning("no history for a session", session=session_id, reason=problem.message)
        return History(messages=[], warning=MISSING[type(problem)])
    return History(messages=messages, warning=None if messages else "Nothing was said in this session yet.")


@put(
    "/api/chat/sessions/update",
    dto=JsonBody,
    operation_id="stream_update_session",
    tags=["stream"],
)
async def update(data: JSONBody[Updating], request: StreamRequest, server: Server) -> Saved:
    """Change the title or the agent. A title that a person gave is never overwritten by another than a person's."""
    origin = origin_of(request, "stream")
    known = await conversation_of(data.session, request.auth, server, origin)
    return await _update(known or data.session, data.title, data.agent_id, origin, server)


@json_post("/api/chat/sessions/delete", "stream_delete_session", "stream")
async def remove(data: JSONBody[Naming], request: StreamRequest, server: Server) -> Success:
    """Stop what runs in a session and take it from every list."""
    origin = origin_of(request, "stream")
    known = await conversation_of(data.session, request.auth, server, origin)
    await server.directory.command(known or data.session, DeleteConversation(), origin)
    return Success()


@json_post("/api/chat/sessions/search", "stream_search_sessions", "stream")
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
