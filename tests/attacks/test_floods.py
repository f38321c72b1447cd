"""Floods by strangers: idle connections, slow and huge heads, slow bodies, no descriptors left. Whoever has a token still
gets in, and what is open stays open."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.flows.served import WAIT_S, Served, http_client, serving

pytestmark = pytest.mark.anyio

START_S = 60.0
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "data") as served:
        yield served


@dataclass
class Child:
    """A server in a process of its own (`flooded_server.py`)."""

    url: str
    token: str
    process: asyncio.subprocess.Process

    async def order(self, word: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{word}\n".encode())
        async with asyncio.timeout(WAIT_S):
            assert (await self.process.stdout.readline()).decode().strip() == word


@pytest.fixture(scope="module")
async def child(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Child]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.attacks.flooded_server", str(tmp_path_factory.mktemp("flooded")), "256"),
        cwd=ROOT,
        env=os.environ,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            url, token = (await process.stdout.readline()).decode().split()
        yield Child(url, token, process)
    finally:
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), WAIT_S)
        except TimeoutError:
            process.kill()
            await process.wait()


class Flood:
    """Connections that were opened and are held."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("http://").rpartition(":")
        self.host, self.port = host, int(port)
        self.held: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def open(self, count: int, said: bytes = b"") -> None:
        for _ in range(count):
            with suppress(OSError):
                async with asyncio.timeout(WAIT_S):
                    reader, writer = await asyncio.open_connection(self.host, self.port)
                self.held.append((reader, writer))
                writer.write(said)

    async def close(self) -> None:
        for _, writer in self.held:
            writer.close()
        for _, writer in self.held:
            with suppress(OSError):
                await writer.wait_closed()


@asynccontextmanager
async def flooding(url: str) -> AsyncIterator[Flood]:
    flood = Flood(url)
    try:
        yield flood
    finally:
        await flood.close()


async def is_answered(url: str, token: str) -> bool:
    """A new connection with the token. A few tries, as any client makes: the flood may displace one before it speaks."""
    for _ in range(20):
        with suppress(httpx.TransportError):
            async with http_client(url, {"Authorization": f"Bearer {token}"}) as http:
                return (await http.get("/api/conversations")).status_code == 200
    return False


async def said_by(url: str, data: bytes) -> bytes:
    """All that the server says to these bytes until it closes."""
    flood = Flood(url)
    await flood.open(1, data)
    ((reader, _),) = flood.held
    try:
        async with asyncio.timeout(WAIT_S):
            with suppress(ConnectionError):
                return await reader.read()
        return b""
    finally:
        await flood.close()


IDLE = {
    "silent": b"",
    "half a head": b"GET /api/conversations HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    "a body that never comes": b"POST /api/session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{",
    "health, kept alive": b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a socket without a token": (
        b"GET /api/socket HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ),
    "an MCP session without a token": b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n",
}


@pytest.mark.parametrize("said", IDLE.values(), ids=IDLE)
async def test_server_with_few_descriptors_answers_the_token_and_keeps_open_streams(child: Child, said: bytes) -> None:
    async with in_use(child) as kept, flooding(child.url) as flood:
        await flood.open(600, said)
        during = await is_answered(child.url, child.token), (await kept.get("/api/agents")).status_code
    after = await is_answered(child.url, child.token)

    assert during == (True, 200)
    assert after


async def test_server_whose_descriptors_are_all_taken_accepts_again_once_some_are_free(child: Child) -> None:
    async with in_use(child) as kept, flooding(child.url) as flood:
        await child.order("exhaust")
        await flood.open(100)
        during = (await kept.get("/api/agents")).status_code
        await child.order("release")
        after = await is_answered(child.url, child.token)

    assert during == 200
    assert after


@asynccontextmanager
async def in_use(child: Child) -> AsyncIterator[httpx.AsyncClient]:
    """An open socket, which must still answer at the end, and a connection that is kept alive."""
    headers = {"Authorization": f"Bearer {child.token}"}
    async with (
        connect(child.url.replace("http", "ws", 1) + "/api/socket", additional_headers=headers) as socket,
        http_client(child.url, headers) as kept,
    ):
        await kept.get("/api/agents")
        yield kept
        await socket.send('{"type": "ping", "nonce": "alive"}')
        async with asyncio.timeout(WAIT_S):
            while '"pong"' not in str(await socket.recv()):
                pass


@pytest.mark.long
@pytest.mark.parametrize("said", IDLE.values(), ids=IDLE)
async def test_two_thousand_connections_of_strangers_change_nothing_for_the_token(server: Served, said: bytes) -> None:
    async with server.socket() as socket, flooding(server.url) as flood:
        await socket.next()
        await flood.open(2_000, said)
        assert await is_answered(server.url, server.token)
        await socket.say(type="ping", nonce="alive")
        await socket.until(type="pong")


async def test_strangers_connections_are_few_and_the_tokens_own_are_not_counted(server: Served) -> None:
    async with flooding(server.url) as flood:
        assert (await server.http.get("/api/agents")).status_code == 200
        await flood.open(300)
        for reader, _ in flood.held[:100]:
            async with asyncio.timeout(WAIT_S):
                with suppress(ConnectionError):
                    assert await reader.read() == b"", "the oldest of them give way"
        assert (await server.http.get("/api/agents")).status_code == 200


# -- slow ones


@pytest.fixture
def short_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    from palaver.faces.http import http_bounds

    monkeypatch.setattr(http_bounds, "HEAD_S", 0.5)
    monkeypatch.setattr(http_bounds, "BODY_S", 0.5)


@pytest.mark.usefixtures("short_bounds")
@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\nHost: ", b"HTTP/1.1 408"),
        (b"\r\n\r\n", b"HTTP/1.1 408"),
        (b"POST /api/session HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\n{", b"HTTP/1.1 408"),
        (b"POST /api/session HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n", b"HTTP/1.1 408"),
        (b"POST /api/agents HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\n{", b"HTTP/1.1 401"),
    ],
    ids=["silent", "half a head", "empty lines", "half a body", "half a chunk", "half a refused body"],
)
async def test_slow_request_ends_in_time(server: Served, said: bytes, status: bytes) -> None:
    answer = await said_by(server.url, said.replace(b"{host}", server.host.encode()))

    assert answer.startswith(status)
    assert answer.count(b"HTTP/1.1") == (1 if status else 0)


@pytest.mark.usefixtures("short_bounds")
async def test_head_that_comes_byte_by_byte_ends_in_time(server: Served) -> None:
    async with flooding(server.url) as flood:
        await flood.open(1, b"GET / HTTP/1.1\r\n")
        ((reader, writer),) = flood.held

        async def trickle() -> None:
            with suppress(ConnectionError):
                while not writer.is_closing():
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.05)

        trickling = asyncio.create_task(trickle())
        async with asyncio.timeout(WAIT_S):
            with suppress(ConnectionError):
                assert (await reader.read()).startswith(b"HTTP/1.1 408")
        trickling.cancel()


@pytest.mark.usefixtures("short_bounds")
async def test_body_of_a_token_that_pauses_is_refused_and_one_that_moves_is_taken(server: Served) -> None:
    async def slowly(pause_s: float, pieces: int) -> AsyncIterator[bytes]:
        yield b'{"title": "'
        for _ in range(pieces):
            await asyncio.sleep(pause_s)
            yield b"x"
        yield b'"}'

    taken = await server.http.post("/api/conversations", content=slowly(0.2, 5))
    with suppress(httpx.TransportError):
        refused = await server.http.post("/api/conversations", content=slowly(2.0, 1))
        assert refused.status_code == 408
    assert taken.status_code == 201


# -- large ones


HEADS = {
    "a long value": b"GET / HTTP/1.1\r\nHost: {host}\r\nX-Long: " + b"x" * 200_000 + b"\r\n\r\n",
    "a value without an end": b"GET / HTTP/1.1\r\nHost: {host}\r\nX-Long: " + b"x" * 2_000_000,
    "many fields": b"GET / HTTP/1.1\r\nHost: {host}\r\n" + b"X-Many: x\r\n" * 1_000 + b"\r\n",
    "a long address": b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "a long name": b"GET / HTTP/1.1\r\nHost: {host}\r\n" + b"x" * 200_000 + b": x\r\n\r\n",
    "many cookies": b"GET / HTTP/1.1\r\nHost: {host}\r\n" + b"Cookie: a=b\r\n" * 1_000 + b"\r\n",
    "a socket with many fields": b"GET /api/socket HTTP/1.1\r\nHost: {host}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    + b"X-Many: x\r\n" * 1_000
    + b"\r\n",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
async def test_huge_head_is_refused_in_words_or_cut_off(server: Served, head: bytes) -> None:
    answer = await said_by(server.url, head.replace(b"{host}", server.host.encode()))

    # With bytes still on their way the kernel may reset the connection before the answer is read.
    assert answer == b"" or (answer.startswith(b"HTTP/1.1 431") and b'"message"' in answer)
    assert (await server.http.get("/api/agents")).status_code == 200


async def test_head_a_little_beyond_the_bound_is_told_so(server: Served) -> None:
    answer = await server.http.get("/api/agents", headers={"X-Long": "x" * 66_000})

    assert (answer.status_code, answer.json()["details"]) == (431, {"limit_bytes": 65_536})


@pytest.mark.parametrize(
    "said",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00" * 100,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST /api/session HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/session HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /api/session HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /api/socket HTTP/1.1\r\nHost: {host}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"POST /api/socket HTTP/1.1\r\nHost: {host}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused_and_the_connection_closed(server: Served, said: bytes) -> None:
    answer = await said_by(server.url, said.replace(b"{host}", server.host.encode()))

    assert answer.split(b" ", 2)[1][:1] == b"4"


async def test_sockets_without_a_token_are_refused_by_the_hundred(server: Served) -> None:
    async def handshake() -> int:
        try:
            async with connect(server.url.replace("http", "ws", 1) + "/ws", open_timeout=WAIT_S):
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code

    assert set(await asyncio.gather(*(handshake() for _ in range(100)))) == {401}
    assert (await server.http.get("/api/agents")).status_code == 200
