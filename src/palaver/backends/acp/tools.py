"""Our tools for an ACP agent, as an MCP server that only this agent's process can reach.

Opened by `link` for as long as the process runs, and told to the agent with each session. The agent starts `relay.py`, which
every agent can (HTTP servers are optional in ACP), and that speaks to a socket in a folder of our own: nothing listens on
the network, and whoever comes without the secret is not heard. Calls go to the turn that runs; it carries them out.

The MCP package belongs to the extra `palaver[mcp]` and takes a second to load. Without it an agent has its own tools alone.
"""

import asyncio
import contextlib
import hmac
import importlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palaver import __version__
from palaver.backends.acp import relay
from palaver.backends.own_tools import OVER
from palaver.installation import BARE_INTERPRETER
from palaver.journal import Journal
from palaver.tools.base import ToolResult, ToolSpec
from palaver.tools.shell.locked_folder import locked_folder, tidy

if TYPE_CHECKING:
    import mcp_types as types
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.lowlevel import Server
    from mcp.shared.message import SessionMessage

NAME = "palaver"
GREETING_S = 5.0
"""For the secret, which the relay sends with its first breath."""
LINE_BYTES = 1 << 20
"""Of one message: a task may be 40,000 characters, each up to twelve bytes of JSON."""
CONNECTIONS_MOST = 8
"""An agent needs one a session, and for a moment two when it loads one."""
SIGN_OF_LIFE_S = 10.0
"""A task takes its time; opencode 1.18 gives up after a minute without progress."""
PATH_CHARS = 100
"""Of a socket's address: systems allow 104 or 108 bytes."""

logger = Journal(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class OwnCall:
    """The agent calls a tool of ours. Cancelled: it no longer wants the answer."""

    name: str
    given: Mapping[str, Any]
    answer: "asyncio.Future[ToolResult]"


class Door:
    """`offered` is what the agent is told of; `receive` takes a call, and says no when no turn runs."""

    def __init__(self, place: Path, offered: Sequence[ToolSpec]) -> None:
        self.offered = offered
        self.receive: Callable[[OwnCall], bool] = lambda _: False
        self._place = place
        self._secret = secrets.token_urlsafe(32)
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def server(self) -> Mapping[str, Any]:
        """As ACP names a server of tools."""
        environment = {relay.PLACE: str(self._place), relay.SECRET: self._secret}
        return {
            "name": NAME,
            "command": BARE_INTERPRETER,
            "args": ["-I", "-S", "-E", str(relay.__file__)],
            "env": [{"name": name, "value": value} for name, value in environment.items()],
        }

    async def close(self) -> None:
        connections = list(self._connections)
        for task in connections:
            task.cancel()
        if connections:
            await asyncio.wait(connections)

    # -- one connection

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            if len(self._connections) <= CONNECTIONS_MOST and await self._is_known(reader):
                await self._serve(reader, writer)
        except asyncio.CancelledError:
            # By `close` alone; the stream server would take it for a failure.
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _is_known(self, reader: asyncio.StreamReader) -> bool:
        try:
            async with asyncio.timeout(GREETING_S):
                said = await reader.readline()
        except (TimeoutError, ValueError, OSError):
            return False
        return hmac.compare_digest(said.strip(), self._secret.encode())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        import anyio
        from mcp.shared.message import SessionMessage

        into_session, from_agent = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_agent, out_of_session = anyio.create_memory_object_stream[SessionMessage](0)
        server = self._mcp()
        async with anyio.create_task_group() as tasks, from_agent, to_agent:
            tasks.start_soon(_listen, reader, into_session)
            tasks.start_soon(_speak, writer, out_of_session)
            await server.run(from_agent, to_agent, server.create_initialization_options())
            tasks.cancel_scope.cancel()

    # -- what MCP asks

    def _mcp(self) -> "Server[Any]":
        import mcp_types as types
        from mcp.server.lowlevel import Server

        async def list_tools(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
            return types.ListToolsResult(tools=[_tool_info(spec) for spec in self.offered])

        async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
            return _call_result(await self._call(ctx, params))

        return Server(NAME, version=__version__, title="Palaver", on_list_tools=list_tools, on_call_tool=call_tool)

    async def _call(self, ctx: Any, params: "types.CallToolRequestParams") -> ToolResult:
        call = OwnCall(params.name, params.arguments or {}, asyncio.get_running_loop().create_future())
        if not self.receive(call):
            return OVER
        try:
            waited = 0
            while not (await asyncio.wait({call.answer}, timeout=SIGN_OF_LIFE_S))[0]:
                waited += 1
                await ctx.session.report_progress(float(waited))
            return call.answer.result()
        finally:
            call.answer.cancel()


def _tool_info(spec: ToolSpec) -> "types.Tool":
    import mcp_types as types

    # Whoever is set to work asks for its own effects: an agent need not ask, and may make several calls at once.
    harmless = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return types.Tool(
        name=spec.name, description=spec.description, input_schema=dict(spec.parameters), annotations=harmless
    )


def _call_result(result: ToolResult) -> "types.CallToolResult":
    import mcp_types as types

    text = result.output if result.ok else result.error or ""
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=not result.ok)


async def _listen(
    reader: asyncio.StreamReader, into_session: "MemoryObjectSendStream[SessionMessage | Exception]"
) -> None:
    from anyio import BrokenResourceError
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    async with into_session:
        # A line that is too long for anybody's message ends the connection; so does the session's own end.
        with contextlib.suppress(ValueError, OSError, BrokenResourceError):
            while line := await reader.readline():
                try:
                    message: SessionMessage | Exception = SessionMessage(
                        jsonrpc_message_adapter.validate_json(line, by_name=False)
                    )
                except ValueError as error:
                    message = error
                await into_session.send(message)


async def _speak(writer: asyncio.StreamWriter, out_of_session: "MemoryObjectReceiveStream[SessionMessage]") -> None:
    async with out_of_session:
        async for message in out_of_session:
            writer.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            with contextlib.suppress(OSError):
                await writer.drain()


@asynccontextmanager
async def opened(offered: Sequence[ToolSpec]) -> AsyncGenerator[Door | None, None]:
    """None: there is nothing to offer, or no way to."""
    if not offered or not await _is_there():
        yield None
        return
    await asyncio.to_thread(tidy)
    with locked_folder() as folder:
        place = folder / "tools"
        if len(str(place)) > PATH_CHARS:
            where = str(folder)
            logger.info("an agent is offered none of our tools: the temporary folder's name is too long", folder=where)
            yield None
            return
        async with _listening(Door(place, offered), place) as door:
            yield door


@asynccontextmanager
async def _listening(door: Door, place: Path) -> AsyncIterator[Door]:
    listener = await asyncio.start_unix_server(door.connected, place, limit=LINE_BYTES)
    try:
        yield door
    finally:
        listener.close()
        await door.close()


async def _is_there() -> bool:
    try:
        # In a thread: it takes a second, in which nobody else should wait.
        await asyncio.to_thread(importlib.import_module, "mcp.server.lowlevel")
    except ImportError:
        logger.info("an agent is offered none of our tools: install palaver[mcp] for that")
        return False
    return True
