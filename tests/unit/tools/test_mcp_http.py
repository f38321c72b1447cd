"""MCP servers over streamable HTTP: a real one of the official package, on loopback."""

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn
from mcp.server.mcpserver import Context, MCPServer

from palaver.clock import ManualClock
from palaver.schema.records import AgentRecord, McpServer
from palaver.tools.base import Tool, ToolResult
from palaver.tools.mcp.servers import McpServers
from tests.unit.tools.workshop import ENVIRONMENT, Workshop

pytestmark = pytest.mark.anyio

LIMIT_S = 30.0


def offered() -> MCPServer:
    server = MCPServer("web", version="1")

    @server.tool()
    def add(first: int, second: int) -> int:
        """Add two numbers."""
        return first + second

    @server.tool()
    async def grow(context: Context) -> str:
        """Offer one more tool."""
        server.add_tool(add, name="added")
        await context.notify_tools_changed()
        return "grown"

    return server


@dataclass
class Site:
    """The server, on a port that stays its own when it is started again."""

    port: int
    seen: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    _running: uvicorn.Server | None = None
    _task: "asyncio.Task[None] | None" = None

    async def start(self) -> None:
        app = offered().streamable_http_app()

        async def watched(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                self.seen.append({name.decode(): value.decode() for name, value in scope["headers"]})
            await app(scope, receive, send)

        config = uvicorn.Config(watched, port=self.port, log_config=None, timeout_graceful_shutdown=1, ws="none")
        self._running = uvicorn.Server(config)
        self._task = asyncio.create_task(self._running.serve())
        async with asyncio.timeout(LIMIT_S):
            while not self._running.started:  # noqa: ASYNC110 - uvicorn tells nobody
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        if self._running is not None and self._task is not None:
            self._running.should_exit = True
            async with asyncio.timeout(LIMIT_S):
                await self._task


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    site = Site(port)
    await site.start()
    yield site
    await site.stop()


@pytest.fixture
async def servers() -> AsyncIterator[McpServers]:
    servers = McpServers(ENVIRONMENT, ManualClock())
    yield servers
    async with asyncio.timeout(LIMIT_S):
        await servers.close()


def agent(site: Site) -> AgentRecord:
    url = f"http://127.0.0.1:{site.port}/mcp"
    server = McpServer(name="web", url=url, headers={"Authorization": "Bearer hunter2-hunter2"})
    return AgentRecord(id="a1", name="A", mcp_servers=(server,))


async def tools_of(servers: McpServers, site: Site, workshop: Workshop) -> dict[str, Tool]:
    async with asyncio.timeout(LIMIT_S):
        tools = await servers.tools_of(agent(site), workshop.root, workshop.place.programs)
    assert servers.problems(agent(site), workshop.root) == ()
    return {tool.spec.name: tool for tool in tools}


async def run(workshop: Workshop, tool: Tool, **arguments: Any) -> ToolResult:
    async with asyncio.timeout(LIMIT_S):
        return await workshop.run(tool, **arguments)


async def test_tools_over_http_are_called_with_the_headers_of_the_agent(
    site: Site, servers: McpServers, workshop: Workshop
) -> None:
    tools = await tools_of(servers, site, workshop)
    assert tools["mcp__web__add"].spec.parameters["required"] == ["first", "second"]
    result = await run(workshop, tools["mcp__web__add"], first=2, second=3)
    assert (result.ok, result.output) == (True, "5")
    assert {headers.get("authorization") for headers in site.seen} == {"Bearer hunter2-hunter2"}


async def test_bad_arguments_over_http_are_a_result(site: Site, servers: McpServers, workshop: Workshop) -> None:
    tools = await tools_of(servers, site, workshop)
    result = await run(workshop, tools["mcp__web__add"], first="many")
    assert not result.ok
    assert "second" in result.output + (result.error or "")


async def test_new_tool_over_http_is_offered_without_asking_again_and_again(
    site: Site, servers: McpServers, workshop: Workshop
) -> None:
    tools = await tools_of(servers, site, workshop)
    assert (await run(workshop, tools["mcp__web__grow"])).output == "grown"
    for _ in range(1000):
        if "mcp__web__added" in await tools_of(servers, site, workshop):
            break
        # The news takes its own way, beside the answer.
        await asyncio.sleep(0.01)
    else:
        pytest.fail("the new tool was never offered")
    asked = len(site.seen)
    await tools_of(servers, site, workshop)
    assert len(site.seen) == asked


async def test_server_that_was_away_is_found_again_by_the_next_use(
    site: Site, servers: McpServers, workshop: Workshop
) -> None:
    tools = await tools_of(servers, site, workshop)
    await site.stop()
    gone = await run(workshop, tools["mcp__web__add"], first=2, second=3)
    assert (gone.ok, bool(gone.error)) == (False, True)
    await site.start()
    again = [await run(workshop, tools["mcp__web__add"], first=2, second=3) for _ in range(2)]
    assert again[-1].output == "5", again
