"""Runs in the words of this contract: listed, their children, what was said in them, and stopping them."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from litestar import get
from litestar.params import FromQuery, JSONBody, QueryParameter
from msgspec import Struct

from palaver.agents.runs import ContextSummary, Runs
from palaver.conversation.project_files.transcripts import with_whole_texts
from palaver.faces.bus.activity import tool_detail
from palaver.faces.bus.chat import FACE, BusRequest
from palaver.faces.bus.projection import USER, sender_of
from palaver.faces.bus.views import names_of
from palaver.faces.http.json_route import json_post
from palaver.faces.http.timestamps import iso
from palaver.faces.server import Server, ServerParts, origin_of
from palaver.log.base import Run
from palaver.schema.base import Shown
from palaver.schema.view import Block, ImageBlock, Message, TextBlock, ThinkingBlock, ToolBlock

PAGE_LIMIT = 500


class RunTold(Shown):
    run_id: str
    session_id: str
    agent_id: str
    agent_kind: Literal["main", "subagent"]
    parent_run_id: str | None
    status: Literal["running", "completed", "failed", "cancelled"]
    detail: str | None
    started_at: int
    ended_at: int | None


class Piece(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a message; its fields are those of its type."""

    type: Literal["text", "thinking", "image", "tool"]
    text: str | None = None
    url: str | None = None
    id: str | None = None
    tool: str | None = None
    input: Any = None
    status: str | None = None
    output: str | None = None
    error: str | None = None


CONTRACT_NAMES = {
    "sender": "from",
    "receiver": "to",
    "instant_ms": "timestampMs",
    "activity": "activityEntries",
    "tool_count": "toolCount",
}


class MessageTold(Shown, rename=CONTRACT_NAMES):
    """`timestampMs` and `timestamp` are the contract's names for one moment; `timestamp_ms` is ours, and older."""

    id: str
    role: Literal["user", "agent", "system"]
    sender: str
    receiver: str
    text: str
    timestamp: str
    instant_ms: int
    timestamp_ms: int
    content: list[Piece]
    activity: list[str]
    """A line for each tool call, in the words its status had."""
    tool_count: int
    interrupted: bool


class ContextTold(Shown):
    run: RunTold
    summary: ContextSummary
    messages: list[MessageTold] | None


class Cancelling(Struct, frozen=True, kw_only=True):
    run_id: str


class Cancelled(Shown):
    cancelled_run_ids: list[str]


def tell_run(run: Run) -> RunTold:
    return RunTold(
        run_id=run.run,
        session_id=run.conversation,
        agent_id=run.agent,
        agent_kind="subagent" if run.parent else "main",
        parent_run_id=run.parent,
        status=run.status,
        detail=run.detail,
        started_at=run.started_at,
        ended_at=run.ended_at,
    )


def _message(message: Message, agent: str) -> MessageTold:
    """`agent`: whose run it is."""
    by_agent = message.role == "assistant"
    tools = [block for block in message.blocks if isinstance(block, ToolBlock)]
    return MessageTold(
        id=message.id,
        role="agent" if by_agent else "user" if message.role == "user" else "system",
        sender=message.agent or agent if by_agent else sender_of(message.origin),
        receiver=USER if by_agent else agent,
        text="\n".join(block.text for block in message.blocks if isinstance(block, TextBlock)),
        timestamp=iso(message.ts),
        instant_ms=message.ts,
        timestamp_ms=message.ts,
        content=[_piece(block) for block in message.blocks],
        activity=[tool_detail(tool) for tool in tools],
        tool_count=len(tools),
        interrupted=message.status == "interrupted",
    )


def _piece(block: Block) -> Piece:
    match block:
        case TextBlock():
            return Piece(type="text", text=block.text)
        case ThinkingBlock():
            return Piece(type="thinking", text=block.text)
        case ImageBlock():
            return Piece(type="image", url=block.url)
        case ToolBlock():
            return Piece(
                type="tool",
                id=block.call,
                tool=block.name,
                input=block.input,
                status=block.status,
                output=block.output,
                error=block.error.message if block.error else None,
            )


@get("/api/agent-runs", operation_id="bus_list_runs", tags=["bus"])
async def list_runs(
    server: Server,
    project_root: FromQuery[str | None] = None,
    session_id: FromQuery[str | None] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=PAGE_LIMIT)] = 100,
) -> list[RunTold]:
    """The runs of a project, or a session's own; newest first. Those of subagents are found through `agent-children`."""
    runs = _runs(server)
    if session_id is not None:
        found = list(await runs.list(conversation=session_id, limit=limit))
    else:
        by_run = {
            run.run: run for name in await _names(project_root) for run in await runs.list(project=name, limit=limit)
        }
        found = sorted(by_run.values(), key=lambda run: run.started_at, reverse=True)[:limit]
    return [tell_run(run) for run in found]


async def _names(project_root: str | None) -> Iterable[str | None]:
    return [None] if project_root is None else await names_of(project_root)


@get("/api/agent-children", operation_id="bus_list_children", tags=["bus"])
async def children(server: Server, run_id: FromQuery[str]) -> list[RunTold]:
    """The runs that work or worked for one, oldest first."""
    return [tell_run(run) for run in await _runs(server).children(run_id)]


@get("/api/agent-context", operation_id="bus_run_context", tags=["bus"])
async def context(
    server: Server, run_id: FromQuery[str], view: FromQuery[Literal["summary", "raw"]] = "summary"
) -> ContextTold:
    """What was said in a run, counted; with `view=raw` the messages too."""
    known = await _runs(server).context(run_id, raw=view == "raw")
    said = None if known.messages is None else [await with_whole_texts(one, server.log.blobs) for one in known.messages]
    messages = None if said is None else [_message(message, known.run.agent) for message in said]
    return ContextTold(run=tell_run(known.run), summary=known.summary, messages=messages)


@json_post("/api/agent-cancel", "bus_cancel_run", "bus")
async def cancel(data: JSONBody[Cancelling], request: BusRequest, server: Server) -> Cancelled:
    """Stop a run and all that work for it. One that is over, or unknown, leaves the list empty. The queue goes on."""
    return Cancelled(cancelled_run_ids=list(await _runs(server).cancel(data.run_id, origin_of(request, FACE))))


def _runs(server: ServerParts) -> Runs:
    return Runs(server.directory, server.log)


ROUTES = [list_runs, children, context, cancel]
