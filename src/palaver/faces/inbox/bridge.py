"""An inbox server over standard streams, for MCP clients that start programs: a bridge to the running server.

Run by `palaver mcp`. It keeps nothing and decides nothing: every call is made again at the server, with the same token and
the same answer. The client on this side may speak either era of the protocol; the other side is always the newer one.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from palaver import __version__
from palaver.errors import Forbidden, Gone, LogUnavailable, NotFound, PalaverError, Unauthorized
from palaver.faces.inbox.subscriptions import INBOX, Context, Subscriptions
from palaver.faces.rights import Side

CONNECT_S = 10.0
AGAIN_S = 1.0
"""How long to wait before listening again to a server that went away."""

REFUSALS: dict[int, type[PalaverError]] = {401: Unauthorized, 403: Forbidden, 404: NotFound, 410: Gone}


async def bridge(url: str, token: str, side: Side, conversation: str | None) -> None:
    """Serves standard input and output until the client closes them. Without a conversation: the server's default inbox."""
    headers = {"Authorization": f"Bearer {token}"}
    # A call may wait for a person, who may take as long as it takes; a server that ends closes the connection.
    timeout = httpx2.Timeout(None, connect=CONNECT_S)
    address = f"{url.rstrip('/')}/mcp/{side}" + (f"/{conversation}" if conversation else "")
    async with httpx2.AsyncClient(headers=headers, timeout=timeout) as http:
        await _reachable(http, address)
        async with (
            Client(streamable_http_client(address, http_client=http), cache=None) as far,
            stdio_server() as (incoming, outgoing),
        ):
            near = make_bridge(far, side)
            await near.run(incoming, outgoing, near.create_initialization_options())


async def _reachable(http: httpx2.AsyncClient, address: str) -> None:
    """The server's own words when it would refuse, before a client is kept waiting for nothing."""
    try:
        answer = await http.delete(address)
    except httpx2.HTTPError as failure:
        raise LogUnavailable(f"No server answers at {address}: {failure}. Start it with `palaver serve`.") from failure
    # Anything else is MCP's own answer to a session that does not exist.
    body: Any = answer.json() if answer.headers.get("content-type", "").startswith("application/json") else {}
    if "code" in body and answer.status_code >= 400:
        raise REFUSALS.get(answer.status_code, LogUnavailable)(str(body.get("message")))


def make_bridge(far: Client, side: Side) -> Server[Any]:
    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return await far.list_tools()

    async def call_tool(_: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await far.call_tool(params.name, dict(params.arguments or {}))

    async def list_resources(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return await far.list_resources()

    async def read_resource(_: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await far.read_resource(str(params.uri))

    told = Subscriptions(lambda _, listening: _updates(far, listening))
    return Server(
        f"palaver-{side}",
        version=__version__,
        title="Palaver",
        instructions=far.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_subscribe_resource=told.subscribe,
        on_unsubscribe_resource=told.unsubscribe,
        on_subscriptions_listen=told.listen,
    )


async def _updates(far: Client, listening: asyncio.Event) -> AsyncGenerator[None, None]:
    """The server's, also after it went away and came back; then there may be something that nobody was told of."""
    while True:
        try:
            async with far.listen(resource_subscriptions=[INBOX]) as events:
                if listening.is_set():
                    yield
                listening.set()
                async for _ in events:
                    yield
        except (SubscriptionLost, MCPError):
            if not listening.is_set():
                raise
        await asyncio.sleep(AGAIN_S)
