"""Floods on one connection: requests sent ahead, trailers and chunks without an end, bodies and answers nobody reads.

Each ends with the connection closed, after a bounded number of bytes, and whoever has a token is answered meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import uvicorn
from uvicorn.server import ServerState

from palaver.faces.http import http_bounds
from palaver.faces.http.connections import Connections
from palaver.faces.http.http_bounds import WAITING_REQUESTS, BoundedHttp
from palaver.people.authentication import Principal
from tests.attacks.test_floods import flooding, is_answered, said_by
from tests.flows.served import WAIT_S, Served, serving

pytestmark = pytest.mark.anyio

ENDLESS_BYTES = 16 << 20
"""More than any bound, and than the buffers of both ends."""


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with serving(tmp_path_factory.mktemp("flooded") / "data") as served:
        yield served


# -- requests sent ahead


async def answers_to(server: Served, data: bytes) -> bytes:
    return await said_by(server.url, data.replace(b"{host}", server.host.encode()))


HEALTH = b"GET /api/health HTTP/1.1\r\nHost: {host}\r\n\r\n"
LAST = b"GET /api/health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"


async def test_requests_sent_ahead_within_the_bound_are_answered_in_order(server: Served) -> None:
    wanted = [b"GET /api/health HTTP/1.1", b"GET /api/conversations HTTP/1.1"] * (WAITING_REQUESTS // 2)
    data = b"".join(line + b"\r\nHost: {host}\r\n\r\n" for line in wanted) + LAST

    answer = await answers_to(server, data)

    statuses = [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"401"] * (WAITING_REQUESTS // 2) + [b"200"]


SENT_AHEAD = {
    "health": HEALTH,
    "refused": b"GET /api/conversations HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "page": b"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "with bodies": b"POST /api/session HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\n{}",
    "of HTTP/1.0": b"GET /api/health HTTP/1.0\r\nHost: {host}\r\nConnection: keep-alive\r\n\r\n",
}


@pytest.mark.parametrize("request_", SENT_AHEAD.values(), ids=SENT_AHEAD)
@pytest.mark.parametrize("many", [WAITING_REQUESTS + 2, 500, 4_000])
async def test_more_requests_sent_ahead_close_the_connection(server: Served, request_: bytes, many: int) -> None:
    answer = await answers_to(server, request_ * many)

    # What was written before the connection was closed may be lost with it.
    assert answer.count(b"HTTP/1.1 ") <= WAITING_REQUESTS + 1
    assert await is_answered(server.url, server.token)


async def test_twenty_strangers_who_send_ahead_and_read_nothing_are_closed(server: Served) -> None:
    async with flooding(server.url) as flood:
        await flood.open(20, HEALTH.replace(b"{host}", server.host.encode()) * 4_000)
        assert await is_answered(server.url, server.token)
        for reader, _ in flood.held:
            async with asyncio.timeout(WAIT_S):
                with suppress(ConnectionError):
                    await reader.read()


# -- bodies


CHUNKED = b"Host: {host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
SESSION, REFUSED = b"POST /api/session HTTP/1.1\r\n", b"POST /api/conversations HTTP/1.1\r\n"
GET = b"GET /api/health HTTP/1.1\r\n"
ENDLESS = {
    "a trailer's value": (SESSION + CHUNKED + b"0\r\nX: ", b"x"),
    "a trailer's name": (SESSION + CHUNKED + b"0\r\n", b"x"),
    "trailers": (SESSION + CHUNKED + b"0\r\n", b"X: x\r\n"),
    "a trailer of a refused request": (REFUSED + CHUNKED + b"0\r\nX: ", b"x"),
    "a trailer of a body that nobody reads": (GET + CHUNKED + b"0\r\nX: ", b"x"),
    "a chunk's extension": (SESSION + CHUNKED + b"5;x=", b"x"),
    "extensions of chunks": (SESSION + CHUNKED, b"1;" + b"x" * 200 + b"\r\nx\r\n"),
    "extensions that nobody reads": (GET + CHUNKED, b"1;" + b"x" * 200 + b"\r\nx\r\n"),
    "a chunk's size": (SESSION + CHUNKED, b"0"),
    "chunks of a refused body": (REFUSED + CHUNKED, b"1\r\nx\r\n"),
    "chunks that nobody reads": (GET + CHUNKED, b"1000\r\n" + b"x" * 4096 + b"\r\n"),
    "a refused body": (REFUSED + b"Host: {host}\r\nContent-Length: 1000000000\r\n\r\n", b"x"),
    "a body that nobody reads": (GET + b"Host: {host}\r\nContent-Length: 1000000000\r\n\r\n", b"x"),
}


@pytest.mark.parametrize("endless", ENDLESS.values(), ids=ENDLESS)
async def test_body_without_an_end_is_cut_off(server: Served, endless: tuple[bytes, bytes]) -> None:
    head, piece = endless
    async with flooding(server.url) as flood:
        await flood.open(1, head.replace(b"{host}", server.host.encode()))
        ((reader, writer),) = flood.held
        sent, many = 0, piece * (65_536 // len(piece))
        async with asyncio.timeout(WAIT_S):
            with suppress(ConnectionError):
                while sent < ENDLESS_BYTES and not reader.at_eof():
                    writer.write(many)
                    await writer.drain()
                    sent += len(many)
                    # The end of a connection arrives only while somebody looks.
                    with suppress(TimeoutError):
                        await asyncio.wait_for(reader.read(65_536), 0.001)
    assert sent < ENDLESS_BYTES


async def test_bodies_in_small_chunks_and_with_trailers_are_taken(server: Served) -> None:
    body = b'{"title": "' + b"x" * 1_000 + b'"}'
    head = (
        b"POST /api/conversations HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" % server.token.encode()
    )
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    for said in (chunks + b"0\r\n\r\n", chunks + b"0\r\nX-Digest: abc\r\nX-Other: def\r\n\r\n"):
        answer = await answers_to(server, head + said)
        assert answer.startswith(b"HTTP/1.1 201")


async def test_large_body_of_a_token_is_taken_on_a_new_connection(server: Served) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(8 << 20)

    answer = await server.http.post("/api/uploads", files={"file": picture}, headers={"Connection": "close"})

    assert answer.status_code in (200, 201), answer.text


# -- answers that nobody reads


class Unread(asyncio.Transport):
    """The transport of a peer that takes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = asyncio.Event()

    def abort(self) -> None:
        self.ended.set()

    def close(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self.ended.is_set()


def protocol(connections: Connections, key: str | None) -> tuple[BoundedHttp, Unread]:
    async def app(_scope: object, _receive: object, _send: object) -> None: ...

    connection = connections.admit("10.0.0.1", lambda: None)
    if key is not None:
        connection.authenticate(Principal(key, "owner", key))
    made = BoundedHttp(uvicorn.Config(app), ServerState(), {}, connection=connection)
    transport = Unread()
    made.connection_made(transport)
    return made, transport


async def test_stranger_who_leaves_an_answer_unread_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_bounds, "UNREAD_S", 0.01)
    slow, transport = protocol(Connections(100), None)
    slow.pause_writing()
    async with asyncio.timeout(WAIT_S):
        await transport.ended.wait()
    slow.connection_lost(None)


@pytest.mark.parametrize("key", [None, "k"])
async def test_answer_that_is_read_in_time_or_belongs_to_a_token_goes_on(
    monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    monkeypatch.setattr(http_bounds, "UNREAD_S", 0.0)
    slow, transport = protocol(Connections(100), key)
    slow.pause_writing()
    if key is None:
        slow.resume_writing()
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, passed.set)
    async with asyncio.timeout(WAIT_S):
        await passed.wait()
    assert not transport.ended.is_set()
    slow.connection_lost(None)


def test_strangers_together_begin_so_many_requests_a_second() -> None:
    connections = Connections(4_000)
    one, other = (connections.admit(f"10.0.0.{number}", lambda: None) for number in (1, 2))
    mine = connections.admit("10.0.0.3", lambda: None)
    mine.authenticate(Principal("k", "owner", "k"))
    assert (one.wait_s(100.0), other.wait_s(100.0)) == (0.0, 0.0), "the first may show a token"
    at_once = sum(one.wait_s(100.0) == 0.0 for _ in range(2_000))
    assert 400 <= at_once <= 401
    assert 0.0 < other.wait_s(100.0) <= 5.0
    assert connections.admit("10.0.0.2", lambda: None).wait_s(100.0) == 0.0
    assert all(mine.wait_s(100.0) == 0.0 for _ in range(1_000))
    later = [other.wait_s(105.0) for _ in range(3)]
    assert later == pytest.approx([0.0, 0.005, 0.01], abs=0.01)
    assert other.wait_s(1_000.0) == 0.0
