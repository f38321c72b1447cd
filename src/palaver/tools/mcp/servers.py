"""The MCP servers of all agents: one connection for each server, agent and project, made on first use.

Held by the backend, asked by its loop for the tools of an agent before each model call, and closed with it. A server that
broke is started again by the next use of it; one that cannot be started is left alone for a while, and the rest works on.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palaver.backends.process import to_the_end
from palaver.backends.program_lookup import ProgramLookup
from palaver.clock import Clock
from palaver.errors import AgentError, NotInstalled
from palaver.journal import Journal
from palaver.schema.records import AgentRecord, McpServer
from palaver.tools.base import Tool
from palaver.tools.mcp.tool import McpTool
from palaver.tools.redact import Redactor

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult

    from palaver.tools.mcp.connection import Connection

RETRY_AFTER_S = 30.0
"""After a failed start: an agent takes many steps, and each would wait for it."""
IDLE_S = 15 * 60.0
"""A server nobody used for so long is closed; it is a process, and the next use starts it again."""
MISSING = "MCP servers need one more package: install `palaver[mcp]`."

logger = Journal(__name__)


class McpServers:
    def __init__(self, environment: Mapping[str, str], clock: Clock) -> None:
        self._environment = environment
        self._clock = clock
        self._known: dict[tuple[str, str, Path], _Server] = {}
        self._closed = False

    async def tools_of(self, agent: AgentRecord, project: Path, programs: ProgramLookup) -> tuple[Tool, ...]:
        """What an agent's servers offer now. A server that cannot be had offers what it last did, or nothing."""
        if self._closed:
            return ()
        await self._close_idle()
        # By name: two servers of one name could not be told apart, and the first is meant.
        records = {record.name: record for record in reversed(agent.mcp_servers)}
        servers = [await self._server(agent, record, project, programs) for record in reversed(records.values())]
        offered = await asyncio.gather(*(server.tools() for server in servers))
        tools: dict[str, Tool] = {}
        for tool in (tool for some in offered for tool in some):
            tools.setdefault(tool.spec.name, tool)
        return tuple(tools.values())

    def problems(self, agent: AgentRecord, project: Path) -> tuple[str, ...]:
        """Why servers of an agent cannot be had, in sentences."""
        known = (self._known.get((agent.id, record.name, project)) for record in agent.mcp_servers)
        return tuple(server.problem for server in known if server is not None and server.problem is not None)

    async def close(self) -> None:
        self._closed = True
        servers = list(self._known.values())
        self._known.clear()
        await to_the_end(_all_closed(servers))

    async def _close_idle(self) -> None:
        before_s = self._clock.monotonic_s() - IDLE_S
        idle = [server for server in self._known.values() if server.idle_since(before_s)]
        if idle:
            await to_the_end(_all_closed(idle, for_good=False))

    async def _server(self, agent: AgentRecord, record: McpServer, project: Path, programs: ProgramLookup) -> "_Server":
        key = (agent.id, record.name, project)
        known = self._known.get(key)
        if known is None or known.record != record:
            self._known[key] = _Server(record, project, self._environment, programs, self._clock)
            if known is not None:
                # Somebody changed the agent: what runs is no longer what is meant.
                await known.close()
        return self._known[key]


class _Server:
    """One server in one place, connected or not."""

    def __init__(
        self,
        record: McpServer,
        project: Path,
        environment: Mapping[str, str],
        programs: ProgramLookup,
        clock: Clock,
    ) -> None:
        self._record = record
        self._project = project
        self._programs = programs
        self._environment = environment
        self._clock = clock
        self._connection: Connection | None = None
        # Held while connecting only, never during a call.
        self._connecting = asyncio.Lock()
        self._retry_at_s = float("-inf")
        self._listed: object = None
        self._tools: tuple[Tool, ...] = ()
        self.problem: str | None = None
        self._closed = False
        self._used_s = clock.monotonic_s()
        self._calls = 0

    def idle_since(self, before_s: float) -> bool:
        return self._connection is not None and not self._calls and self._used_s < before_s

    @property
    def record(self) -> McpServer:
        return self._record

    async def tools(self) -> tuple[Tool, ...]:
        self._used_s = self._clock.monotonic_s()
        if self._connection is None and self._clock.monotonic_s() < self._retry_at_s:
            return self._tools
        try:
            connection = await self._connected()
            listed = await connection.list()
        except AgentError as error:
            self._failed(error.message)
            return self._tools
        if listed is not self._listed:
            self._listed = listed
            self._tools = tuple(McpTool(self, tool) for tool in listed)
        return self._tools

    async def call(
        self, tool: str, arguments: Mapping[str, Any], limit_s: float, progress: "ProgressFnT"
    ) -> "CallToolResult":
        self._calls += 1
        try:
            connection = await self._connected()
            try:
                return await connection.call(tool, arguments, limit_s, progress)
            finally:
                if connection.broken:
                    await to_the_end(self._drop(connection))
        finally:
            self._calls -= 1
            self._used_s = self._clock.monotonic_s()

    async def close(self, *, for_good: bool = True) -> None:
        """Not for good: the next use connects again."""
        self._closed = self._closed or for_good
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connected(self) -> "Connection":
        async with self._connecting:
            if self._closed:
                raise NotInstalled(f"The MCP server {self._record.name} was changed or closed; try again.")
            if self._connection is not None and not self._connection.broken:
                return self._connection
            if self._connection is not None:
                await self._drop(self._connection)
            connection = await _open(self._record, self._project, self._environment, self._programs)
            self._connection = connection
            self.problem = None
            return connection

    async def _drop(self, connection: "Connection") -> None:
        if self._connection is connection:
            self._connection = None
        await connection.close()

    def _failed(self, why: str) -> None:
        # Words of the server may be among them, and with them its keys.
        why = Redactor({**self._environment, **self._record.environment, **self._record.headers}).redact(why)
        if self.problem != why:
            logger.warning("an MCP server cannot be used", server=self._record.name, reason=why)
        self.problem = why
        self._retry_at_s = self._clock.monotonic_s() + RETRY_AFTER_S


async def _open(
    record: McpServer, project: Path, environment: Mapping[str, str], programs: ProgramLookup
) -> "Connection":
    try:
        # In a thread: it brings a hundred modules along.
        make = await asyncio.to_thread(_connection_class)
    except ImportError as error:
        raise NotInstalled(MISSING) from error
    connection = make(record, project, environment, programs)
    await connection.open()
    return connection


def _connection_class() -> "type[Connection]":
    from palaver.tools.mcp.connection import Connection

    return Connection


async def _all_closed(servers: Sequence[_Server], *, for_good: bool = True) -> None:
    await asyncio.gather(*(server.close(for_good=for_good) for server in servers), return_exceptions=True)
