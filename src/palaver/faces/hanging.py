"""Noticing a reader that hangs without a timer for every write: a timer costs more than the write's own work.

Used by whatever writes a stream: it sends through here, and looks in now and then.
"""

from typing import Any

from litestar.types import Send


class Hanging:
    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = 0
        self._ended = 0
        self._looked_at = 0

    async def send(self, message: Any) -> None:
        self._begun += 1
        await self._send(message)
        self._ended += 1

    def look(self) -> bool:
        """Whether the write that was going on at the last look still is."""
        hangs = self._begun > self._ended and self._begun == self._looked_at
        self._looked_at = self._begun
        return hangs
