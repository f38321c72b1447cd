"""The two inbox servers as MCP knows them, in both eras of the protocol, over the official package.

Imported only when somebody knocks: the package takes a second to load and belongs to the extra `palaver[mcp]`. One server a
side serves every conversation; each request says in its address which one it means, and who sent it.

What a handshake client subscribes to lasts as long as its session; what a client of 2026-07-28 listens to, as long as its
request. Both are told through the same `updates`.
"""

from collections.abc import Awaitable
from typing import Any, TypeVar

import mcp_types as types
import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from palaver import __version__
from palaver.errors import CallerError, PalaverError
from palaver.faces.inbox.actions import Acts
from palaver.faces.inbox.caller import VISIT, Visit
from palaver.faces.inbox.policy import Denied, judge
from palaver.faces.inbox.subscriptions import INBOX, Context, Subscriptions, require_known
from palaver.faces.inbox.tools import INPUT, OUTPUT, InboxTool, as_key, tools_for
from palaver.faces.inbox.updates import updates
from palaver.faces.rights import Side
from palaver.faces.server import ServerParts
from palaver.people.authentication import Principal

T = TypeVar("T")

JSON = "application/json"

WORDS: dict[Side, str] = {
    "human": "The conversation's inbox, for people and what works for them. Read the resource or page with "
    "chat_read_since, post with chat.human.post; you are told when people have said something new.",
    "assistant": "The conversation's inbox, for its agent. Read what people said with chat_read_since, answer with "
    "chat.assistant.post, end your turn with loop.yield_turn.",
}

SESSION_IDLE_S = 30 * 60
"""A client of the older era that has not been heard of for this long begins a new session when it comes back."""
SESSIONS_MOST = 1_000
BODY_BYTES = 4 << 20
"""A message of 1 MiB, whatever its characters become in JSON."""


def inbox_server(side: Side, parts: ServerParts) -> Server[Any]:
    handlers = _Handlers(side, parts)
    told = Subscriptions(lambda ctx, listening: updates(parts.feed, parts.log, _visit(ctx).conversation, listening))
    return Server(
        f"palaver-{side}",
        version=__version__,
        title="Palaver",
        instructions=WORDS[side],
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=told.subscribe,
        on_unsubscribe_resource=told.unsubscribe,
        on_subscriptions_listen=told.listen,
        get_tool_input_schema=lambda name: next(
            (INPUT[tool.act] for tool in tools_for(side, "owner") if tool.key == as_key(name)), None
        ),
    )


class _Handlers:
    def __init__(self, side: Side, parts: ServerParts) -> None:
        self._side = side
        self._parts = parts

    # -- tools

    async def list_tools(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[_tool_info(tool) for tool in tools_for(self._side, _visit(ctx).caller.kind)]
        )

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        visit = _visit(ctx)
        there = tools_for(self._side, visit.caller.kind)
        tool = next((known for known in there if known.key == as_key(params.name)), None)
        if tool is None:
            names = ", ".join(known.name for known in there)
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name!r} for you here. There are: {names}.")
        try:
            if self._side == "assistant":
                await judge(self._parts, visit, tool, params.arguments or {})
            answer = await self._acts(visit).call(tool, params.arguments)
        except Denied as denied:
            raise MCPError(denied.code, denied.why) from None
        except CallerError as refusal:
            return _failure(refusal)
        except PalaverError as failure:
            raise MCPError(types.INTERNAL_ERROR, failure.message) from None
        text = msgspec.json.encode(answer).decode()
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=answer)

    # -- the resource

    async def list_resources(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        inbox = types.Resource(
            name="inbox",
            title="Inbox",
            uri=INBOX,
            mime_type=JSON,
            description="All messages; of a long inbox the newest, older ones with chat_read_since.",
        )
        return types.ListResourcesResult(resources=[inbox])

    async def list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        require_known(params.uri)
        page = await _explain_errors(self._acts(_visit(ctx)).newest())
        text = msgspec.json.encode(page).decode()
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=INBOX, mime_type=JSON, text=text)])

    def _acts(self, visit: Visit) -> Acts:
        return Acts(self._parts, self._side, visit)


def _visit(ctx: Context) -> Visit:
    visit: Visit = ctx.request.scope[VISIT]
    return visit


async def _explain_errors(work: Awaitable[T]) -> T:
    try:
        return await work
    except PalaverError as refusal:
        raise MCPError(types.INVALID_REQUEST, refusal.message) from None


def _failure(refusal: CallerError) -> types.CallToolResult:
    """In words, and in the shape of all our errors: a client sees whether the same call may succeed later."""
    error = msgspec.to_builtins(refusal.wire(), enc_hook=str)
    return types.CallToolResult(
        content=[types.TextContent(text=refusal.message)], structured_content={"error": error}, is_error=True
    )


def _tool_info(tool: InboxTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=INPUT[tool.act],
        output_schema=OUTPUT[tool.act],
        annotations=types.ToolAnnotations(read_only_hint=tool.act == "read", open_world_hint=False),
    )


# -- over HTTP


def session_manager(side: Side, parts: ServerParts) -> StreamableHTTPSessionManager:
    return StreamableHTTPSessionManager(
        inbox_server(side, parts),
        session_idle_timeout=SESSION_IDLE_S,
        max_sessions=SESSIONS_MOST,
        max_request_body_size=BODY_BYTES,
    )


def session_owner(caller: Principal) -> AuthenticatedUser:
    """In the package's words, so that a session is served to the token alone that began it."""
    return AuthenticatedUser(AccessToken(token=caller.key, client_id=caller.key, scopes=[]))
