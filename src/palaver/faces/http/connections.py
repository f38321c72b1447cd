"""Connection limits: how many strangers and each token may hold, which one gives way to a new one, and how fast strangers ask.

The acceptor of the listener admits every connection here; the gate says whose it is once a request on it was authenticated.
A new connection is always taken, and the oldest stranger's gives way: who has a token shows it at once and is a stranger no
longer, while a flood only displaces itself. Nobody else closes a connection for want of room.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from palaver.people.authentication import Principal

EXTENSION = "palaver.connection"
"""In `scope["extensions"]`: the connection that a request came on."""

STRANGERS = 512
"""More than a browser and its speculative connections, few enough to cost nothing."""
STRANGERS_A_PEER = 128
"""Of one address: the others still find room beside a flood from there."""
CONNECTIONS_A_KEY = 256
"""Of one token, the latest used. Those beyond are treated as strangers'."""
STRANGERS_REQUESTS = 200
"""Of all strangers, begun in a second. The first on a connection never waits: it may show a token."""
STRANGERS_AHEAD_S = 2.0
"""What was not used of that for so long may come at once: the page and all that it loads."""
STRANGERS_WAIT_S = 5.0
"""At most, for one request: it also occupies a connection."""
FAREWELL_S = 2.0
"""How long a stream may take to say why it ends, once its reader has lost the right to it."""
RELIEF = 32
"""How many strangers go at once when descriptors have run out."""


class Connection:
    __slots__ = ("_all", "_is_first", "close", "is_answered", "key", "peer", "principal", "refuse", "takes_leave")

    def __init__(self, all_connections: "Connections", peer: str, close: Callable[[], Any]) -> None:
        self._all = all_connections
        self.peer = peer
        self.close = close
        """Ends it at once. Replaced when a transport takes the socket over."""
        self.key: str | None = None
        """Of the token that was shown on it; None: a stranger's."""
        self._is_first = True
        self.principal: Principal | None = None
        """Of the request that came last, until the next one comes."""
        self.takes_leave = False
        """That request is a stream, which ends itself when it is told to."""
        self.is_answered: Callable[[], bool] = lambda: True
        """Whether all of its answer is on its way, so that nothing is left to be ended."""
        self.refuse: Callable[[], Any] = self.close
        """Ends it because its principal may not go on: with a refusal where the request was not complete."""

    def wait_s(self, now: float) -> float:
        """How long a request on it has to wait before it is begun."""
        is_first, self._is_first = self._is_first, False
        return 0.0 if is_first or self.key is not None else self._all.wait_s(now)

    def authenticate(self, principal: Principal) -> None:
        self.principal = principal
        self.takes_leave = False
        self._all.authenticate(self, principal.group)

    def take_leave(self) -> None:
        """Its last request may be answered although it took away its own right: a sign-out."""
        self.principal = None

    def release(self) -> None:
        """It is closed."""
        self._all.release(self)


class Connections:
    def __init__(self, descriptors: int, *, trusts_peers: bool = False) -> None:
        """`descriptors`: how many the process may have. `trusts_peers`: one address stands for many, as a proxy's does."""
        share = max(descriptors // 4, 8)
        self._strangers_most = min(STRANGERS, share)
        self._peers_most = self._strangers_most if trusts_peers else min(STRANGERS_A_PEER, share)
        self._keys_most = min(CONNECTIONS_A_KEY, share)
        self._strangers: OrderedDict[Connection, None] = OrderedDict()
        self._peers: dict[str, OrderedDict[Connection, None]] = {}
        self._keys: dict[str, OrderedDict[Connection, None]] = {}
        self._next_begin = 0.0
        """When the next request of a stranger is begun, if they come evenly."""

    def wait_s(self, now: float) -> float:
        begin = min(max(self._next_begin, now - STRANGERS_AHEAD_S), now + STRANGERS_WAIT_S)
        self._next_begin = begin + 1 / STRANGERS_REQUESTS
        return max(begin - now, 0.0)

    @property
    def strangers(self) -> int:
        return len(self._strangers)

    def admit(self, peer: str, close: Callable[[], Any]) -> Connection:
        connection = Connection(self, peer, close)
        self._add_stranger(connection)
        return connection

    def authenticate(self, connection: Connection, key: str) -> None:
        if connection.key is None and connection not in self._strangers:
            return  # Closed meanwhile.
        if connection.key == key:
            self._keys[key].move_to_end(connection)
            return
        self.release(connection)
        connection.key = key
        held = self._keys.setdefault(key, OrderedDict())
        held[connection] = None
        if len(held) > self._keys_most:
            oldest = next(iter(held))
            self.release(oldest)
            self._add_stranger(oldest)

    def release(self, connection: Connection) -> None:
        if connection.key is not None:
            _discard(self._keys, connection.key, connection)
            connection.key = None
            return
        self._strangers.pop(connection, None)
        _discard(self._peers, connection.peer, connection)

    def drop_strangers(self, holds: Callable[[Principal], bool]) -> None:
        """Ends the requests of principals that are let in no more: bodies that still come, answers that still go."""
        for connection in [*self._strangers, *(one for held in self._keys.values() for one in held)]:
            if connection.principal is None or connection.is_answered() or holds(connection.principal):
                continue
            if connection.takes_leave:
                loop = asyncio.get_running_loop()
                loop.call_later(FAREWELL_S, self._refuse, connection, connection.principal)
            else:
                self._refuse(connection, connection.principal)

    def _refuse(self, connection: Connection, principal: Principal) -> None:
        if connection.principal is principal and not connection.is_answered():
            connection.principal = None
            connection.refuse()

    def relieve(self) -> None:
        """Makes room when the system has none: the oldest strangers go."""
        for connection in list(self._strangers)[:RELIEF]:
            self._end(connection)

    def _add_stranger(self, connection: Connection) -> None:
        of_peer = self._peers.setdefault(connection.peer, OrderedDict())
        self._strangers[connection] = of_peer[connection] = None
        if len(of_peer) > self._peers_most:
            self._end(next(iter(of_peer)))
        elif len(self._strangers) > self._strangers_most:
            self._end(next(iter(self._strangers)))

    def _end(self, connection: Connection) -> None:
        self.release(connection)
        connection.close()


def _discard(held: dict[str, OrderedDict[Connection, None]], name: str, connection: Connection) -> None:
    known = held.get(name)
    if known is None:
        return
    known.pop(connection, None)
    if not known:
        del held[name]
