"""One connection to one MCP server: made, listened to, and closed by a task of its own.

Made by `servers.py`, which imports this module only when an agent has MCP servers: it is the one place (with `stdio.py`)
that knows the `mcp` package. A connection that broke stays broken; whoever uses the server next makes another. What goes
wrong is an AgentError with a sentence.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from mcp import Client, Implementation, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    REQUEST_TIMEOUT,
    CallToolResult,
    ServerNotification,
    Tool,
)
from mcp_types import ToolListChangedNotification as ListChanged

from palaver.backends.process import to_the_end
from palaver.backends.program_lookup import ProgramLookup
from palaver.errors import AgentError, Exited, Invalid, NotInstalled, ProtocolBroken, TimedOut
from palaver.schema.records import McpServer
from palaver.tools.mcp.error_output import ErrorOutput
from palaver.tools.mcp.launch import prepare_server
from palaver.tools.mcp.stdio import stdio
from palaver.tools.redact import Redactor

START_LIMIT_S = 30.0
"""A server's start and its greeting. One that is fetched first (npx) takes its seconds."""
LIST_LIMIT_S = 20.0
CLOSE_LIMIT_S = 5.0
"""For a connection to end; the process behind it is stopped within two seconds."""
PAGES = 20
TOOLS_LIMIT = 128
"""A server's tools that a model is told of: each is part of every model call."""

T = TypeVar("T")

for _name in ("client", "mcp.client"):
    # The package's own lines quote servers at length, without a limit and with their keys: what matters is said here.
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)

_BROKEN = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT, INVALID_REQUEST})
"""Errors after which a connection is no longer used: closed, hanging, or (over HTTP) a session the server has dropped."""


class Connection:
    def __init__(
        self, server: McpServer, project: Path, environment: Mapping[str, str], programs: ProgramLookup
    ) -> None:
        self._server = server
        self._project = project
        self._programs = programs
        secrets = {**environment, **server.environment, **server.headers}
        self._output = ErrorOutput(server.name, Redactor(secrets))
        self._environment = environment
        self._client: Client | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.tools: tuple[Tool, ...] = ()
        self.stale = True
        """The server's tools are not known, or have changed."""
        self.broken = False

    async def open(self) -> None:
        """Raises AgentError when there is nothing to connect to."""
        self._task = asyncio.create_task(self._hold(), name=f"MCP server {self._server.name}")
        try:
            async with asyncio.timeout(START_LIMIT_S):
                await asyncio.shield(self._ready)
        except TimeoutError:
            await self.close()
            raise TimedOut(f"The MCP server {self._server.name} did not answer within {START_LIMIT_S:.0f} s.") from None
        except BaseException:
            await self.close()
            raise

    async def list(self) -> tuple[Tool, ...]:
        """The tools it has now."""
        if self.stale:
            # Before asking: what changes while we ask makes it stale again.
            self.stale = False
            try:
                self.tools = await self._bounded(self._all_tools(), LIST_LIMIT_S, "tell its tools")
            except BaseException:
                self.stale = True
                raise
        return self.tools

    async def call(
        self, tool: str, arguments: Mapping[str, Any], limit_s: float, progress: ProgressFnT
    ) -> CallToolResult:
        client = self._connected()
        return await self._bounded(
            client.call_tool(tool, dict(arguments), progress_callback=progress), limit_s, f"answer {tool}"
        )

    async def close(self) -> None:
        """Ends it and the process behind it, in bounded time, and any number of times."""
        self.broken = True
        self._closing.set()
        if self._task is not None:
            await to_the_end(self._end(self._task))

    async def _end(self, task: "asyncio.Task[None]") -> None:
        if self._client is None:
            task.cancel()
        done, _ = await asyncio.wait([task], timeout=CLOSE_LIMIT_S)
        if not done:
            task.cancel()
            await asyncio.wait([task], timeout=CLOSE_LIMIT_S)
        if not self._ready.done():
            self._ready.cancel()
        elif not self._ready.cancelled():
            self._ready.exception()

    # -- the task

    async def _hold(self) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                transport = await self._transport(stack)
                client = await stack.enter_async_context(
                    Client(
                        transport,
                        client_info=Implementation(name="palaver", version="1"),
                        message_handler=self._heard,
                        cache=None,
                    )
                )
                self._client = client
                self._ready.set_result(None)
                await self._until_closed(client)
        except asyncio.CancelledError:
            if not self._closing.is_set():
                raise
        except Exception as failure:  # noqa: BLE001 - the border of what a server may do; told to whoever waits
            if not self._ready.done():
                self._ready.set_exception(_explained(failure, self._server))
            else:
                self._output.say("a connection to an MCP server broke", _words(failure))
        finally:
            self.broken = True
            self._client = None

    async def _transport(self, stack: contextlib.AsyncExitStack) -> Any:
        server = self._server
        if server.url is not None:
            if not server.url.startswith(("http://", "https://")):
                raise ProtocolBroken(
                    f"The address of the MCP server {server.name} must begin with http:// or https://."
                )
            http = await stack.enter_async_context(create_mcp_http_client(headers=dict(server.headers)))
            return streamable_http_client(server.url, http_client=http)
        if not server.command:
            raise ProtocolBroken(f"The MCP server {server.name} has neither a command nor a url.")
        command, environment, folder = await asyncio.to_thread(
            prepare_server, server, self._project, self._environment, self._programs
        )
        return stdio(command, folder, environment, self._output)

    async def _until_closed(self, client: Client) -> None:
        """Holds the connection open. Newer servers tell of changes only to those who listen."""
        closing = asyncio.create_task(self._closing.wait())
        listening = asyncio.create_task(self._follow(client))
        try:
            await asyncio.wait([closing])
        finally:
            for task in (closing, listening):
                task.cancel()
            await asyncio.wait([closing, listening])

    async def _follow(self, client: Client) -> None:
        with contextlib.suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self.stale = True

    async def _heard(self, message: ServerNotification | Exception) -> None:
        if isinstance(message, ListChanged):
            self.stale = True
        elif isinstance(message, Exception):
            self._output.say("an MCP server sent what is no message", str(message))

    # -- asking

    async def _all_tools(self) -> tuple[Tool, ...]:
        client = self._connected()
        if client.server_capabilities.tools is None:
            return ()
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(PAGES):
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None or len(tools) >= TOOLS_LIMIT:
                break
        if len(tools) > TOOLS_LIMIT:
            self._output.say("an MCP server has too many tools", f"those beyond {TOOLS_LIMIT} are left out")
        return tuple(tools[:TOOLS_LIMIT])

    def _connected(self) -> Client:
        if self._client is None or self.broken:
            raise Exited(f"The MCP server {self._server.name} is not running.")
        return self._client

    async def _bounded(self, work: Awaitable[T], limit_s: float, what: str) -> T:
        """An answer, or an AgentError. A server that hangs or is gone is not asked again on this connection."""
        name = self._server.name
        limit = asyncio.timeout(limit_s)
        try:
            async with limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
            self.broken = True
            raise TimedOut(
                f"The MCP server {name} did not {what} within {limit_s:g} s; it is started anew when needed."
            ) from None
        except MCPError as error:
            if error.code in _BROKEN:
                self.broken = True
            if error.code == CONNECTION_CLOSED:
                raise Exited(f"The MCP server {name} ended in the middle; it is started anew when needed.") from error
            if error.code == INVALID_PARAMS:
                raise Invalid(f"The MCP server {name} refuses the arguments: {error.message}") from error
            raise ProtocolBroken(f"The MCP server {name} answered with an error: {error.message}") from error
        except (OSError, ValueError, RuntimeError) as error:
            self.broken = True
            raise ProtocolBroken(f"The MCP server {name} could not be understood: {_words(error)}.") from error


def _explained(failure: BaseException, server: McpServer) -> AgentError:
    reason = _innermost(failure)
    if isinstance(reason, NotInstalled):
        return NotInstalled(f"The MCP server {server.name} cannot be started: {reason.message}")
    if isinstance(reason, AgentError):
        return reason
    if isinstance(reason, MCPError) and reason.code == CONNECTION_CLOSED:
        return Exited(f"The MCP server {server.name} ended as soon as it was started; the log has what it said.")
    return Exited(f"The MCP server {server.name} cannot be reached: {_words(reason)}.")


def _innermost(failure: BaseException) -> BaseException:
    """The first real reason within the groups that task groups make of failures."""
    while isinstance(failure, BaseExceptionGroup) and failure.exceptions:
        failure = failure.exceptions[0]
    return failure


def _words(failure: BaseException) -> str:
    return (str(_innermost(failure)).strip().rstrip(".") or type(failure).__name__)[:500]
