"""The client's transport against a server that answers byte for byte what the test says, also what no server of ours would."""

import asyncio
import gzip
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from palaver.client.client import Client, Unreachable
from palaver.client.transport import Transport

WAIT_S = 10.0
Answering = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


class Answers:
    """Gives one answer a request, in their order, and keeps what it was asked."""

    def __init__(self, *answers: bytes | Answering) -> None:
        self._answers = list(answers)
        self.heads: list[str] = []
        self._serving: list[asyncio.Task[None]] = []

    @property
    def connections(self) -> int:
        return len(self._serving)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.append(task)
        try:
            while self._answers:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head.decode())
                answer = self._answers.pop(0)
                if isinstance(answer, bytes):
                    writer.write(answer)
                    await writer.drain()
                    if b"Connection: close" in answer or b"HTTP/1.0" in answer:
                        return
                else:
                    await answer(head, writer)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            writer.close()

    async def close(self) -> None:
        """Ends every connection. asyncio does not (3.11): its server stops listening, and its tasks are left to the collector."""
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)


async def hold(head: bytes, writer: asyncio.StreamWriter) -> None:
    """No answer, for as long as the other side waits for one."""
    await writer.wait_closed()


@asynccontextmanager
async def answering(*answers: bytes | Answering) -> AsyncIterator[tuple[Answers, str]]:
    answers_given = Answers(*answers)
    async with asyncio.timeout(WAIT_S):
        server = await asyncio.start_server(answers_given.serve, "127.0.0.1", 0)
        try:
            async with server:
                yield answers_given, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            await answers_given.close()


@asynccontextmanager
async def transporting() -> AsyncIterator[Transport]:
    transport = Transport()
    try:
        yield transport
    finally:
        await transport.close()


async def got(transport: Transport, url: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
    async with transport.request(method, url, {"Authorization": "Bearer secret"}, None, body) as response:
        return response.status, await response.read()


def whole(body: bytes, *fields: str) -> bytes:
    head = "\r\n".join(("HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *fields, "", ""))
    return head.encode() + body


async def test_connection_is_used_again_for_the_next_request() -> None:
    async with answering(whole(b"one"), whole(b"two")) as (server, url), transporting() as transport:
        assert await got(transport, url) == (200, b"one")
        assert await got(transport, url) == (200, b"two")
        assert server.connections == 1


async def test_connection_that_the_server_closed_meanwhile_is_replaced() -> None:
    closing = whole(b"one", "Connection: close")
    async with answering(closing, whole(b"two")) as (server, url), transporting() as transport:
        assert await got(transport, url) == (200, b"one")
        assert await got(transport, url) == (200, b"two")
        assert server.connections == 2


async def test_what_may_be_asked_twice_is_when_a_used_connection_breaks_and_nothing_else() -> None:
    async def vanish(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()
        raise ConnectionResetError

    async with answering(whole(b"one"), vanish, whole(b"two"), vanish) as (server, url), transporting() as transport:
        assert await got(transport, url) == (200, b"one")
        assert await got(transport, url) == (200, b"two")
        with pytest.raises(ConnectionError):
            await got(transport, url, "POST", b"{}")
        assert len(server.heads) == 4


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nher\r\n4\r\nring\r\n0\r\n\r\n", id="chunks"
        ),
        pytest.param(b"HTTP/1.0 200 OK\r\n\r\nherring", id="until the end of the connection"),
        pytest.param(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + whole(b"herring"), id="after a hint"),
        pytest.param(whole(gzip.compress(b"herring"), "Content-Encoding: gzip"), id="compressed"),
    ],
)
async def test_body_is_read_in_whatever_form_it_comes(answer: bytes) -> None:
    async with answering(answer) as (_, url), transporting() as transport:
        assert await got(transport, url) == (200, b"herring")


async def test_answer_that_breaks_off_is_a_failure_and_not_a_short_answer() -> None:
    async def half(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nherr")
        await writer.drain()
        raise ConnectionResetError

    async with answering(half) as (_, url), transporting() as transport:
        with pytest.raises(ConnectionError, match="before the answer was whole"):
            await got(transport, url)


async def test_answer_that_is_no_http_is_told_so() -> None:
    async with answering(b"SSH-2.0-OpenSSH_9.6\r\n") as (_, url), Client.connect(url, "") as client:
        with pytest.raises(Unreachable, match="no HTTP"):
            await client.conversations()


async def test_silence_ends_a_stream() -> None:
    silent = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nher\r\n"
    async with answering(silent, hold, hold) as (_, url), transporting() as transport:
        async with transport.request("GET", url, {}, silence_s=0.05) as response:
            pieces = response.pieces()
            assert await anext(pieces) == b"her"
            with pytest.raises(TimeoutError):
                await anext(pieces)
        # Nor is a head waited for without an end.
        with pytest.raises(TimeoutError):
            async with transport.request("GET", url, {}, silence_s=0.05):
                pass


async def test_whoever_gives_up_leaves_no_connection_behind() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        try:
            assert await reader.read() == b""
        except ConnectionError:
            pass
        finally:
            writer.close()
            gone.set()

    async with asyncio.timeout(WAIT_S), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with transporting() as transport:
            waiting = asyncio.create_task(got(transport, url))
            await asked.wait()
            waiting.cancel()
            await gone.wait()
            with pytest.raises(asyncio.CancelledError):
                await waiting


async def test_refusal_that_comes_before_all_is_sent_is_heard() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}"
    async with answering(refusal, hold) as (_, url), transporting() as transport:
        assert await got(transport, url, "POST", b"x" * (32 << 20)) == (413, b"{}")


async def test_long_body_waits_with_the_system_until_it_is_read() -> None:
    body = b"herring " * (2 << 20)
    async with answering(whole(body)) as (_, url), transporting() as transport:
        whole_body = b""
        async with transport.request("GET", url, {}) as response:
            async for piece in response.pieces():
                whole_body += piece
        assert whole_body == body


async def test_redirect_is_followed_and_the_token_told_to_nobody_else() -> None:
    async with answering(whole(b"there")) as (other, elsewhere):
        moved = f"HTTP/1.1 307 Moved\r\nLocation: {elsewhere}/new\r\nContent-Length: 0\r\n\r\n".encode()
        async with answering(moved) as (server, url), transporting() as transport:
            assert await got(transport, f"{url}/old") == (200, b"there")
            assert "Bearer secret" in server.heads[0]
            assert other.heads[0].startswith("GET /new HTTP/1.1\r\n")
            assert "secret" not in other.heads[0]


async def test_redirects_without_an_end_are_given_up() -> None:
    around = b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"
    async with answering(*[around] * 20) as (_, url), transporting() as transport:
        with pytest.raises(ConnectionError, match="without an end"):
            await got(transport, url)


async def test_nothing_in_a_path_or_a_token_becomes_a_line_of_the_request() -> None:
    async with answering(whole(b"")) as (server, url), transporting() as transport:
        await got(transport, f"{url}/a b\u00e4%20c%0d")
        assert server.heads[0].startswith("GET /a%20b%C3%A4%20c%0d HTTP/1.1\r\n")
        with pytest.raises(ConnectionError, match="line break"):
            async with transport.request("GET", url, {"Authorization": "Bearer a\r\nHost: evil"}):
                pass


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:9", "Connection refused"),
        ("http://localhost:9", "Connection refused"),
        ("http://nobody.invalid", "nobody.invalid .*[Nn]ame"),
        ("localhost:9", "begins with http://"),
        ("http://", "begins with http://"),
        ("http://[::1", "begins with http://"),
    ],
)
async def test_failure_to_connect_is_told_in_the_words_of_the_system(url: str, words: str) -> None:
    async with asyncio.timeout(WAIT_S), Client.connect(url, "") as client:
        with pytest.raises(Unreachable, match=words):
            await client.conversations()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """One that nobody signed, with its key beside it."""
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=x -keyout key -out cert"
    )
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "cert"


async def test_certificate_is_checked(certificate: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, certificate.with_name("key"))
    answers = Answers(whole(b"secret"))
    server = await asyncio.start_server(answers.serve, "127.0.0.1", 0, ssl=context)
    async with asyncio.timeout(WAIT_S), server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with Client.connect(url, "") as client:
            with pytest.raises(Unreachable, match="self-signed certificate"):
                await client.conversations()
    assert not answers.heads


# -- a file as the body


async def test_file_is_sent_whole_and_again_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(b"0123456789" * 200_000)
    received: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"Content-Length: 2000000\r\n" in head
            received.append(await reader.readexactly(2_000_000))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    transport = Transport()
    async with asyncio.timeout(WAIT_S), server:
        with path.open("rb") as body:
            for _ in range(2):
                async with transport.request("POST", url, {}, body=body) as response:
                    assert await response.read() == b"ok"
        await transport.close()

    assert received == [path.read_bytes()] * 2


async def test_refusal_before_the_end_of_a_file_is_heard_and_the_connection_not_used_again(tmp_path: Path) -> None:
    path = tmp_path / "body"
    with path.open("wb") as file:
        file.truncate(64 << 20)
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await writer.drain()
        # Nothing more is read: whoever sends on waits, and has to hear the answer all the same.
        while await reader.read(1 << 16):
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    transport = Transport()
    async with asyncio.timeout(WAIT_S), server:
        for _ in range(2):
            with path.open("rb") as body:
                async with transport.request("POST", url, {}, body=body) as response:
                    assert (response.status, await response.read()) == (413, b"no")
        await transport.close()

    assert connections == 2
