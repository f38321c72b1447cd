"""The ACP library's transport over our runner's child: one JSON object a line, of any length.

Made by the link. What is no message is passed over: some agents write a greeting where their protocol should be.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from palaver.backends.json_lines import decode_line
from palaver.backends.process import Child
from palaver.errors import AgentError
from palaver.journal import Journal

logger = Journal(__name__)


class Lines:
    """`room` waits while nobody has room for more; `ended` is told the end of the child's output."""

    def __init__(self, child: Child, room: Callable[[], Awaitable[None]], ended: Callable[[], None]) -> None:
        self._child = child
        self._lines = child.lines()
        self._room = room
        self._ended = ended

    async def send(self, message: dict[str, Any]) -> None:
        await self._child.write(msgspec.json.encode(message) + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        await self._room()
        try:
            async for line in self._lines:
                if (message := _message(line)) is not None:
                    return message
                if line.strip():
                    logger.debug("an agent wrote what is no message", program=self._child.name, line=line[:200])
        except AgentError as failure:
            logger.warning("an agent's output cannot be read", program=self._child.name, reason=failure.message)
        self._ended()
        return None

    async def close(self) -> None:
        """The reader may be at work still; the child's end ends it."""


def _message(line: bytes) -> dict[str, Any] | None:
    try:
        message = decode_line(line, "The agent")
    except msgspec.DecodeError:
        return None
    return message if isinstance(message, dict) else None
