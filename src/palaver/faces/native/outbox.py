"""What waits to be written to one socket: whole lines, bounded in bytes, taken all at once.

Filled by the socket's subscriptions, emptied by its one writer. When it is full, whoever puts waits; nothing is dropped but
what an ended subscription left behind.
"""

import asyncio
from collections import deque


class Outbox:
    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._waiting: deque[tuple[object, bytes]] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def put(self, source: object, lines: bytes) -> None:
        """Newline-ended lines of one source. Waits for room; a piece larger than the limit goes alone."""
        while self._bytes >= self._limit_bytes:
            self._room.clear()
            await self._room.wait()
        self._waiting.append((source, lines))
        self._bytes += len(lines)
        self._filled.set()

    def forget(self, source: object) -> None:
        """Drops what a source put and nobody took yet."""
        self._waiting = deque((owner, lines) for owner, lines in self._waiting if owner is not source)
        self._bytes = sum(len(lines) for _, lines in self._waiting)
        self._room.set()

    async def take(self) -> bytes:
        """Everything that waits, joined; waits for something to wait."""
        while not self._waiting:
            self._filled.clear()
            await self._filled.wait()
        joined = b"".join(lines for _, lines in self._waiting)
        self._waiting.clear()
        self._bytes = 0
        self._room.set()
        return joined
