"""An MCP server as a child process, started by the one runner: what an MCP client reads from and writes to.

Called by `connection.py`. A message is a line of JSON on stdin and stdout; what the server says on stderr goes to the log.
The process, and all that it starts, ends with the connection and with the server.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from palaver.backends.process import Child, spawn
from palaver.journal import Journal
from palaver.tools.mcp.error_output import ErrorOutput
from palaver.tools.redact import Redactor

MESSAGE_BYTES = 32 * 1024 * 1024
"""More in one line is no message but a runaway: results hold at most some images."""
GRACE_S = 0.5
"""Between the end of a server's input, which asks it to end, and the stop that makes it."""

logger = Journal(__name__)

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def stdio(
    argv: Sequence[str], cwd: Path, environment: Mapping[str, str], name: str, redactor: Redactor
) -> AsyncGenerator[Streams, None]:
    """The streams of a running server. The read stream ends when the server does."""
    async with (
        spawn(argv, cwd=cwd, environment=environment, stdin=True, drain_stderr=False) as child,
        anyio.create_task_group() as tasks,
    ):
        into_session, from_server = anyio.create_memory_object_stream[Incoming](0)
        to_server, out_of_session = anyio.create_memory_object_stream[SessionMessage](0)
        tasks.start_soon(_listen, child, into_session, name, redactor)
        tasks.start_soon(_speak, child, out_of_session)
        try:
            yield from_server, to_server
        finally:
            with anyio.CancelScope(shield=True):
                for stream in (from_server, to_server):
                    await stream.aclose()
                child.close_stdin()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GRACE_S):
                        await child.ended()
            tasks.cancel_scope.cancel()
            # A task that was cancelled before it began has closed nothing.
            into_session.close()
            out_of_session.close()


async def _listen(child: Child, into_session: MemoryObjectSendStream[Incoming], name: str, redactor: Redactor) -> None:
    waiting = bytearray()
    gone = False
    async with into_session, contextlib.aclosing(child.chunks()) as chunks:
        with contextlib.closing(ErrorOutput(name, redactor)) as errors:
            async for stream, chunk in chunks:
                if stream == "stderr":
                    errors.take(chunk)
                    continue
                *lines, rest = (waiting + chunk).split(b"\n")
                waiting = bytearray(rest)
                for line in filter(None, map(bytes, lines)):
                    if gone:
                        continue
                    try:
                        await into_session.send(_message(line))
                    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                        # The session has ended; what is still said is read so that the server can end too.
                        gone = True
                if len(waiting) > MESSAGE_BYTES:
                    logger.warning("an MCP server sent a line without an end; it is given up", server=name)
                    return


async def _speak(child: Child, out_of_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with out_of_session:
        async for message in out_of_session:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await child.write(text.encode() + b"\n")


def _message(line: bytes) -> Incoming:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error
