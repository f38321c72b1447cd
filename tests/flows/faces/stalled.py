"""Clients that stop reading, over real sockets with little room in them, and what a server may hold for one of them."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import h11
import msgspec
import pytest

from palaver.backends.script.script import Say
from palaver.faces import projection
from palaver.faces.bus import pump
from palaver.faces.http.rings import PIECE_BYTES
from tests.flows.served import LOOK_EVERY_S, WAIT_S, Served

BUFFER_BYTES = 32 << 10
"""Of the kernel, on either side: as little as it takes."""
RING_BYTES = 384 << 10
"""What a face keeps for its readers in these tests: a real ring, only sooner full."""
ROUND_CHARS = 60_000
"""What is said in a turn: less than a ring holds, so that whoever reads misses nothing."""
ROUNDS = 16
"""Several times more than all that stands between a server and a reader that stopped."""
FLOOD = (Say("x" * ROUND_CHARS, chunk=10_000),)


@pytest.fixture
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "RING_BYTES", RING_BYTES)
    monkeypatch.setattr(projection, "RING_BYTES", RING_BYTES)


async def small_socket(server: Served, buffer_bytes: int = BUFFER_BYTES) -> socket.socket:
    connection = socket.socket()
    connection.setblocking(False)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", int(server.host.rpartition(":")[2])))
    return connection


class Stalled:
    """A stream of server-sent events that is open and not read, until `until` reads on."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._http = h11.Connection(h11.CLIENT)
        self._pending = b""

    async def ask(self, server: Served, method: str, path: str, body: bytes = b"", **headers: str) -> None:
        given = {"Host": server.host, "Authorization": f"Bearer {server.token}", "Content-Length": str(len(body))}
        named = [(name.replace("_", "-"), value) for name, value in {**given, **headers}.items()]
        request = self._http.send(h11.Request(method=method, target=path, headers=named)) or b""
        request += (self._http.send(h11.Data(data=body)) or b"") + (self._http.send(h11.EndOfMessage()) or b"")
        await asyncio.get_running_loop().sock_sendall(self._connection, request)
        # The status, so that what is sent from now on is sent to somebody who listens.
        while not isinstance(event := await self._next(), h11.Response):
            pass
        assert event.status_code == 200

    async def _next(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            async with asyncio.timeout(WAIT_S):
                data = await asyncio.get_running_loop().sock_recv(self._connection, 65_536)
            assert data, "the server hung up"
            self._http.receive_data(data)
        return event

    async def next(self) -> dict[str, str]:
        """The fields of the next event; a comment has the field ''."""
        while b"\n\n" not in self._pending:
            event = await self._next()
            assert isinstance(event, h11.Data)
            self._pending += bytes(event.data).replace(b"\r\n", b"\n")
        block, _, self._pending = self._pending.partition(b"\n\n")
        lines = [line.decode().partition(":") for line in block.split(b"\n")]
        return {name: value.removeprefix(" ") for name, _, value in lines}

    async def until(self, last: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """The data of every event through the first that is the last; comments are passed over."""
        told: list[dict[str, Any]] = []
        while not told or not last(told[-1]):
            fields = await self.next()
            if fields.get("data"):
                told.append(msgspec.json.decode(fields["data"]))
        return told


@asynccontextmanager
async def stalled(
    server: Served,
    path: str,
    method: str = "GET",
    body: bytes = b"",
    buffer_bytes: int = BUFFER_BYTES,
    **headers: str,
) -> AsyncIterator[Stalled]:
    with await small_socket(server, buffer_bytes) as connection:
        stream = Stalled(connection)
        await stream.ask(server, method, path, body, **headers)
        yield stream


async def waits(server: Served) -> None:
    """Until something waits for a reader that does not make room."""
    async with asyncio.timeout(WAIT_S):
        while not server.app.streams.unsent_bytes:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(LOOK_EVERY_S)


def held(server: Served, face: str) -> None:
    """No more than its share is held for one that stopped: one write, and what all readers share."""
    assert 0 < server.app.streams.unsent_bytes <= PIECE_BYTES
    assert 0 < server.app.streams.kept_bytes[face] <= RING_BYTES


def is_told_around_a_gap(told: list[Any], marks: list[Any], everything: list[Any]) -> None:
    """The beginning of everything, then the one mark, then its end; and something was left out."""
    (place,) = [place for place, one in enumerate(told) if one in marks]
    before, after = told[:place], told[place + 1 :]
    assert before == everything[: len(before)]
    assert after == everything[len(everything) - len(after) :]
    assert len(before) + len(after) < len(everything)
    assert after
