"""The SDK's way to the program: its lines, over a child of our own runner instead of one that the SDK would start.

So the program stands under the warden, sees the environment we picked, and may write lines of any length. The SDK is given
only what belongs to the control protocol; all other lines go to `deliver` as they are, because the SDK's classes drop
fields we need. Made by `program`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
from claude_agent_sdk import Transport

from palaver.backends.json_lines import decode_line
from palaver.backends.process import Child
from palaver.errors import Exited
from palaver.journal import Journal

CONTROL = "control_"

Deliver = Callable[[dict[str, Any]], Awaitable[None]]
logger = Journal(__name__)


class Wire(Transport):
    def __init__(self, child: Child, deliver: Deliver, ended: Callable[[Exited], None]) -> None:
        self._child = child
        self._deliver = deliver
        self._ended = ended
        self._open = True

    async def connect(self) -> None:
        """It runs already."""

    async def write(self, data: str) -> None:
        await self._child.write(data.encode())

    def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        return self._read()

    async def _read(self) -> AsyncIterator[dict[str, Any]]:
        async with aclosing(self._child.lines()) as lines:
            async for line in lines:
                message = _decode(line)
                if message is None:
                    continue
                if str(message.get("type")).startswith(CONTROL):
                    yield message
                else:
                    await self._deliver(message)
        end = await self._child.ended()
        if not self._open:
            return
        failure = Exited(_why(self._child, end.code), exit_code=end.code)
        self._open = False
        self._ended(failure)
        # Raised for the SDK too, so that nothing of it waits for an answer that will not come.
        raise failure

    def leave(self) -> None:
        """From here on its end is no surprise."""
        self._open = False

    async def close(self) -> None:
        self.leave()
        self._child.close_stdin()

    def is_ready(self) -> bool:
        return self._open

    async def end_input(self) -> None:
        self._child.close_stdin()


def _decode(line: bytes) -> dict[str, Any] | None:
    try:
        message = decode_line(line, "Claude Code")
    except msgspec.DecodeError:
        # Some builds write diagnostics there.
        logger.debug("a line of claude is not JSON", line=line[:200])
        return None
    return message if isinstance(message, dict) else None


def _why(child: Child, code: int) -> str:
    said = child.stderr_tail.decode(errors="replace").strip()
    how = f"Claude Code ended with code {code}"
    return f"{how}: {said[-2000:]}" if said else f"{how} and did not say why."
