"""Open streams (server-sent events and sockets): how many a key holds, and how they all end at once.

Entered by whatever writes a stream. When a key is rotated or the server stops, the bodies of the streams concerned are
cancelled from here; nobody else ends another's stream.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from palaver.errors import Busy, LogUnavailable
from palaver.faces.keys import Keys, Principal

STREAMS_A_KEY = 32
"""More than the tabs and terminals of one person, fewer than would hurt the others."""

End = Literal["signed_out", "shutdown"]


class StreamEnded(Exception):
    """The stream was ended from here, not by its reader. Raised out of `open`."""

    def __init__(self, reason: End) -> None:
        super().__init__(reason)
        self.reason = reason


class Streams:
    def __init__(self, keys: Keys, limit: int = STREAMS_A_KEY) -> None:
        self._keys = keys
        self._limit = limit
        self._open: dict[asyncio.Timeout, Principal] = {}
        self._ended: dict[asyncio.Timeout, End] = {}
        self._closed = False

    @property
    def count(self) -> int:
        return len(self._open)

    @asynccontextmanager
    async def open(self, principal: Principal) -> AsyncIterator[None]:
        """Raises Busy when the key holds too many already."""
        if self._closed:
            raise LogUnavailable("The server is shutting down; try again in a moment.")
        if sum(holder.key == principal.key for holder in self._open.values()) >= self._limit:
            raise Busy(
                f"This token has {self._limit} open streams already. Close one, or follow several "
                "conversations over one WebSocket.",
                limit=self._limit,
            )
        # A deadline that nobody has set yet: moving it to now is how another task ends this one's body.
        ending = asyncio.timeout(None)
        try:
            async with ending:
                self._open[ending] = principal
                yield
        except TimeoutError:
            if ending not in self._ended:
                raise
            raise StreamEnded(self._ended[ending]) from None
        finally:
            self._open.pop(ending, None)
            self._ended.pop(ending, None)

    def drop_strangers(self) -> None:
        """Ends the streams of keys that are no longer ours."""
        strangers = [ending for ending, principal in self._open.items() if not self._keys.holds(principal)]
        self._end(strangers, "signed_out")

    def close(self) -> None:
        """Ends all of them; none opens any more."""
        self._closed = True
        self._end(list(self._open), "shutdown")

    def _end(self, endings: list[asyncio.Timeout], reason: End) -> None:
        now_s = asyncio.get_running_loop().time()
        for ending in endings:
            del self._open[ending]
            self._ended[ending] = reason
            ending.reschedule(now_s)
