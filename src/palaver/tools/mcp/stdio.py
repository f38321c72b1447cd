"""An MCP server as a child process, started by the one runner: what an MCP client reads from and writes to.

Called by `connection.py`. A message is a line of JSON on stdin and stdout; what else it says goes to the journal, through
`error_output.py` alone.
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
from palaver.tools.mcp.error_output import ErrorOutput

MESSAGE_BYTES = 32 * 1024 * 1024
"""More in one line is no message but a runaway: results hold at most some images."""
GRACE_S = 0.5
"""Between the end of a server's input, which asks it to end, and the stop that makes it."""

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def stdio(
    argv: Sequence[str], cwd: Path, environment: Mapping[str, str], output: ErrorOutput
) -> AsyncGenerator[Streams, None]:
    """The streams of a running server. The read stream ends when the server does."""
    async with (
        spawn(argv, cwd=cwd, environment=environment, stdin=True, drain_stderr=False) as child,
        anyio.create_task_group() as tasks,
    ):
        into_session, from_server = anyio.create_memory_object_stream[Incoming](0)
        to_server, out_of_session = anyio.create_memory_object_stream[SessionMessage](0)
        tasks.start_soon(_listen, child, into_session, output)
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


async def _listen(child: Child, into_session: MemoryObjectSendStream[Incoming], output: ErrorOutput) -> None:
    waiting = bytearray()
    gone = False
    async with into_session, contextlib.aclosing(child.chunks()) as chunks:
        with contextlib.closing(output):
            async for stream, chunk in chunks:
                if stream == "stderr":
                    output.take(chunk)
                    continue
                *lines, rest = (waiting + chunk).split(b"\n")
                waiting = bytearray(rest)
                for line in filter(None, map(bytes, lines)):
                    if gone:
                        continue
                    message = _message(line)
                    if message is None:
                        output.refuse(line)
                        # Others get their turn: a flood is read as fast as it comes.
                        await asyncio.sleep(0)
                        continue
                    try:
                        await into_session.send(message)
                    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                        # The session has ended; what is still said is read so that the server can end too.
                        gone = True
                if len(waiting) > MESSAGE_BYTES:
                    output.say("an MCP server is given up", f"a line of more than {MESSAGE_BYTES:,} bytes")
                    return


async def _speak(child: Child, out_of_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with out_of_session:
        async for message in out_of_session:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await child.write(text.encode() + b"\n")


def _message(line: bytes) -> SessionMessage | None:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None
