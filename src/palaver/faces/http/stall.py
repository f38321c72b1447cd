"""Noticing a reader that hangs without a timer for every write: a timer costs more than the write's own work.

Used by whatever writes a stream: it sends through here, and looks in now and then.
"""

from typing import Any

from litestar.types import Send

from palaver.faces.http.open_streams import OpenStream


class Hanging:
    def __init__(self, send: Send, stream: OpenStream | None = None) -> None:
        """With its `stream`, what is being written is counted there."""
        self._send = send
        self._stream = stream
        self._begun = 0
        self._ended = 0
        self._looked_at = 0

    async def send(self, message: Any) -> None:
        self._begun += 1
        await self._send(message)
        self._ended += 1

    async def send_bytes(self, message: Any, size_bytes: int) -> None:
        """As `send`, and counted while it waits."""
        stream = self._stream
        if stream is None:
            await self.send(message)
            return
        stream.unsent_bytes += size_bytes
        self._begun += 1
        try:
            # Not by way of `send`: every piece for every reader passes here.
            await self._send(message)
        finally:
            stream.unsent_bytes -= size_bytes
        self._ended += 1

    def look(self) -> bool:
        """Whether the write that was going on at the last look still is."""
        hangs = self._begun > self._ended and self._begun == self._looked_at
        self._looked_at = self._begun
        return hangs
