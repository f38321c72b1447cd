"""The two inbox servers as MCP knows them, in both eras of the protocol, over the official package.

Imported only when somebody knocks: the package takes a second to load and belongs to the extra `palaver[mcp]`. One server a
side serves every conversation; each request says in its address which one it means, and who sent it.

What a handshake client subscribes to lasts as long as its session; what a client of 2026-07-28 listens to, as long as its
request. Both are told through the same `updates`.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import aclosing
from typing import Any, TypeVar

import mcp_types as types
import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from palaver import __version__
from palaver.errors import CallerError, PalaverError
from palaver.faces.inbox.acts import Acts
from palaver.faces.inbox.policy import Denied, judged
from palaver.faces.inbox.tools import INPUT, OUTPUT, InboxTool, Side, as_key, offered
from palaver.faces.inbox.updates import updates
from palaver.faces.inbox.visit import VISIT, Visit
from palaver.faces.keys import Principal
from palaver.faces.server import ServerParts

T = TypeVar("T")

INBOX = "ui://chat/inbox"
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

Context = Any
"""The package's request context; its parameters are of no interest here."""


def inbox_server(side: Side, parts: ServerParts) -> Server[Any]:
    handlers = _Handlers(side, parts)
    return Server(
        f"palaver-{side}",
        version=__version__,
        title="Palaver",
        instructions=WORDS[side],
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=handlers.subscribe,
        on_unsubscribe_resource=handlers.unsubscribe,
        on_subscriptions_listen=handlers.listen,
        get_tool_input_schema=lambda name: next(
            (INPUT[tool.act] for tool in offered(side, "owner") if tool.key == as_key(name)), None
        ),
    )


class _Handlers:
    def __init__(self, side: Side, parts: ServerParts) -> None:
        self._side = side
        self._parts = parts

    # -- tools

    async def list_tools(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_shown(tool) for tool in offered(self._side, _visit(ctx).caller.kind)])

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        visit = _visit(ctx)
        there = {tool.key: tool for tool in offered(self._side, visit.caller.kind)}
        tool = there.get(as_key(params.name))
        if tool is None:
            names = ", ".join(known.name for known in there.values())
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name!r} for you here. There are: {names}.")
        try:
            if self._side == "assistant":
                await judged(self._parts, visit, tool, params.arguments or {})
            answer = await self._acts(visit).call(tool, params.arguments)
        except Denied as denied:
            raise MCPError(denied.code, denied.why) from None
        except CallerError as refusal:
            return _failed(refusal)
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
            description="The newest messages; older ones with chat_read_since.",
        )
        return types.ListResourcesResult(resources=[inbox])

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        _known(params.uri)
        page = await _told(self._acts(_visit(ctx)).newest())
        text = msgspec.json.encode(page).decode()
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=INBOX, mime_type=JSON, text=text)])

    # -- subscriptions

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        _known(params.uri)
        subscribed = _subscriptions(ctx)
        if INBOX not in subscribed:
            listening = asyncio.Event()
            telling = asyncio.create_task(self._tell(ctx, listening), name="tell an inbox's subscriber")
            subscribed[INBOX] = telling
            await _either(listening, telling)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        _known(params.uri)
        if telling := _subscriptions(ctx).pop(INBOX, None):
            telling.cancel()
        return types.EmptyResult()

    async def _tell(self, ctx: Context, listening: asyncio.Event) -> None:
        """As long as the session lasts, or the conversation."""
        try:
            async with aclosing(updates(self._parts.feed, _visit(ctx).conversation, listening)) as news:
                async for _ in news:
                    await ctx.session.send_resource_updated(INBOX)
        except PalaverError:
            # Deleted; whoever reads next is told so.
            return

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        bus, listening = InMemorySubscriptionBus(), asyncio.Event()

        async def publish() -> None:
            async with aclosing(updates(self._parts.feed, _visit(ctx).conversation, listening)) as news:
                async for _ in news:
                    await bus.publish(ResourceUpdated(uri=INBOX))

        publishing = asyncio.create_task(publish(), name="tell an inbox's listener")
        try:
            # Before the acknowledgement: whatever is posted after it must be told.
            await _either(listening, publishing)
            return await ListenHandler(bus)(ctx, params)
        finally:
            publishing.cancel()
            await asyncio.wait({publishing})

    def _acts(self, visit: Visit) -> Acts:
        return Acts(self._parts, self._side, visit.conversation, visit.caller, visit.client)


def _visit(ctx: Context) -> Visit:
    visit: Visit = ctx.request.scope[VISIT]
    return visit


def _subscriptions(ctx: Context) -> dict[str, asyncio.Task[None]]:
    """Those of a session; they end with it."""
    # The package shows handlers no connection, and tells them of its end in no other way (mcp 2.3).
    connection: Any = ctx.session._connection
    held: dict[str, asyncio.Task[None]] | None = connection.state.get(VISIT)
    if held is None:
        held = connection.state[VISIT] = {}

        def end(tasks: dict[str, asyncio.Task[None]] = held) -> None:
            for task in tasks.values():
                task.cancel()

        connection.exit_stack.callback(end)
    return held


async def _either(happened: asyncio.Event, task: asyncio.Task[None]) -> None:
    """Until the event, or the task's own failure."""
    waiting = asyncio.create_task(happened.wait())
    try:
        await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if task.done():
        await _told(_result(task))


async def _result(task: asyncio.Task[None]) -> None:
    task.result()


async def _told(work: Awaitable[T]) -> T:
    try:
        return await work
    except PalaverError as refusal:
        raise MCPError(types.INVALID_REQUEST, refusal.message) from None


def _known(uri: Any) -> None:
    if str(uri) != INBOX:
        raise MCPError(types.INVALID_PARAMS, f"There is no resource {uri} here; there is {INBOX}.", {"uri": str(uri)})


def _failed(refusal: CallerError) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=refusal.message)], is_error=True)


def _shown(tool: InboxTool) -> types.Tool:
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
