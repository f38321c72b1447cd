"""Open streams (server-sent events and sockets): how many a holder has, what they hold, and how they all end at once.

Entered by whatever writes a stream. When a key is rotated, a browser signs out or the server stops, the bodies of the streams
concerned are cancelled from here; nobody else ends another's stream. What is kept for readers is counted here too: a reader
that stops must not cost more than its share, and these numbers say so.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Literal

from palaver.errors import Busy, LogUnavailable
from palaver.faces.http.connections import Connections
from palaver.people.authentication import Keys, Principal

STREAMS_A_HOLDER = 32
"""More than the tabs and terminals of one person, fewer than would hurt the others."""
STREAMS_A_GROUP = 128
"""Of all browsers that signed in with one token as the same kind. The token itself is not among them: it has its own."""

End = Literal["signed_out", "shutdown"]


class StreamEnded(Exception):
    """The stream was ended from here, not by its reader. Raised out of `open`."""

    def __init__(self, reason: End) -> None:
        super().__init__(reason)
        self.reason = reason


class OpenStream:
    """One of them. `unsent_bytes` were handed over and wait until its reader makes room."""

    __slots__ = ("principal", "unsent_bytes")

    def __init__(self, principal: Principal) -> None:
        self.principal = principal
        self.unsent_bytes = 0


class Streams:
    def __init__(self, keys: Keys, limit: int = STREAMS_A_HOLDER) -> None:
        self._keys = keys
        self._limit = limit
        self._connections: list[Connections] = []
        self._open: dict[asyncio.Timeout, OpenStream] = {}
        self._ended: dict[asyncio.Timeout, End] = {}
        self._closed = False
        self.keeping: dict[str, Callable[[], int]] = {}
        """How to ask each face what it keeps for all its readers, in bytes."""

    @property
    def count(self) -> int:
        return len(self._open)

    @property
    def unsent_bytes(self) -> int:
        """What waits for readers that are slow, all streams together."""
        return sum(stream.unsent_bytes for stream in self._open.values())

    @property
    def kept_bytes(self) -> dict[str, int]:
        """What is kept for readers, by face, however many they are."""
        return {face: count() for face, count in self.keeping.items()}

    @asynccontextmanager
    async def open(self, principal: Principal) -> AsyncIterator[OpenStream]:
        """Raises Busy when its holder has too many already."""
        if self._closed:
            raise LogUnavailable("The server is shutting down; try again in a moment.")
        self._check_room(principal)
        # A deadline that nobody has set yet: moving it to now is how another task ends this one's body.
        ending = asyncio.timeout(None)
        try:
            async with ending:
                self._open[ending] = opened = OpenStream(principal)
                yield opened
        except TimeoutError:
            if ending not in self._ended:
                raise
            raise StreamEnded(self._ended[ending]) from None
        finally:
            self._open.pop(ending, None)
            self._ended.pop(ending, None)

    def _check_room(self, principal: Principal) -> None:
        others = [stream.principal for stream in self._open.values()]
        if sum(other.holder == principal.holder for other in others) >= self._limit:
            raise Busy(
                f"This token or browser has {self._limit} open streams already. Close one, or follow several "
                "conversations over one WebSocket.",
                limit=self._limit,
            )
        if principal.session and sum(other.group == principal.group for other in others) >= STREAMS_A_GROUP:
            raise Busy(
                f"Browsers that signed in with this token have {STREAMS_A_GROUP} open streams already. Close one of them.",
                limit=STREAMS_A_GROUP,
            )

    def add_connections(self, connections: Connections) -> None:
        """Those of a listener: they end with the streams."""
        self._connections.append(connections)

    def drop_strangers(self) -> None:
        """Ends the streams and requests of tokens that were taken back, and of browsers that were signed out."""
        strangers = [ending for ending, stream in self._open.items() if not self._keys.holds(stream.principal)]
        self._end(strangers, "signed_out")
        for connections in self._connections:
            connections.drop_strangers(self._keys.holds)

    def close(self) -> None:
        """Ends all of them; none opens any more."""
        self._closed = True
        self._end(list(self._open), "shutdown")

    def _end(self, endings: list[asyncio.Timeout], reason: End) -> None:
        now_s = asyncio.get_running_loop().time()
        for ending in endings:
            self._open.pop(ending, None)
            self._ended[ending] = reason
            # One that is over at this very moment must not keep the others open.
            with suppress(RuntimeError):
                ending.reschedule(now_s)
