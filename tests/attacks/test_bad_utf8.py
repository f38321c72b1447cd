"""Bytes that are no UTF-8, wherever a request has bytes: a refusal in words on every face, never a 5xx."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from websockets.asyncio.client import connect
from websockets.frames import Frame, Opcode

from tests.flows.served import WAIT_S, Served, serving

pytestmark = pytest.mark.anyio

BAD = {
    "no start": b"\xff\xfe",
    "cut": b"\xe2\x82",
    "overlong": b"\xc0\xaf",
    "surrogate": b"\xed\xa0\x80",
    "beyond": b"\xf5\x80\x80\x80",
    "latin-1": b"\xe4",
}


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with serving(tmp_path_factory.mktemp("served") / "data") as served:
        yield served


async def operations(server: Served) -> list[tuple[str, str]]:
    described = (await server.http.get("/api/schema/openapi.json")).json()["paths"]
    methods = ("get", "put", "post", "delete", "patch")
    return [(method.upper(), path) for path, known in described.items() for method in methods if method in known]


async def status(server: Served, method: str, target: bytes, fields: bytes = b"", body: bytes = b"") -> int:
    """Of a request that no client library would send. The answer's head is all that is read: some are streams."""
    host, _, port = server.host.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    writer.write(
        b"%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n%s%s\r\n%s"
        % (method.encode(), target, server.host.encode(), server.token.encode(), fields, length, body)
    )
    try:
        async with asyncio.timeout(WAIT_S):
            return int((await reader.readline()).split()[1])
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def percent(data: bytes) -> bytes:
    return b"".join(b"%%%02X" % byte for byte in data)


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_no_route_of_any_face_fails_over_bytes_in_its_path_query_headers_or_body(
    server: Served, bad: bytes
) -> None:
    failed: list[str] = []
    known = await operations(server)
    assert len(known) > 100
    for method, path in known:
        plain = re.sub(r"\{[^}]*\}", "x", path).encode()
        hostile = re.sub(rb"\{[^}]*\}", percent(bad), path.encode())
        query = (
            plain
            + b"?"
            + b"&".join(
                name + b"=" + percent(bad)
                for name in (b"q", b"query", b"project", b"path", b"cursor", b"after", b"chat_id", b"role")
            )
        )
        tried = {
            "raw path": (plain + b"/" + bad, b"", b""),
            "path": (hostile, b"", b""),
            "query": (query, b"", b""),
            "query name": (plain + b"?" + percent(bad) + b"=1", b"", b""),
            "raw query": (plain + b"?q=" + bad, b"", b""),
            "headers": (
                plain,
                b"".join(
                    name + b": " + bad + b"\r\n"
                    for name in (
                        b"Palaver-Client",
                        b"Cookie",
                        b"Last-Event-ID",
                        b"Accept",
                        b"Palaver-Proof",
                        b"X-Any",
                        b"Mcp-Session-Id",
                        b"If-None-Match",
                        b"Range",
                    )
                ),
                b"",
            ),
            "media type": (plain, b"Content-Type: text/" + bad + b"; charset=" + bad + b"\r\n", b"{}"),
            "body": (plain, b"Content-Type: application/json\r\n", b'{"content": "' + bad + b'"}'),
            "body alone": (plain, b"Content-Type: application/json\r\n", bad),
            "form": (
                plain,
                b"Content-Type: multipart/form-data; boundary=x\r\n",
                b'--x\r\nContent-Disposition: form-data; name="file"; filename="' + bad + b'"\r\n'
                b"Content-Type: text/" + bad + b"\r\n\r\n" + bad + b"\r\n--x--\r\n",
            ),
            "form name": (
                plain,
                b"Content-Type: multipart/form-data; boundary=x\r\n",
                b'--x\r\nContent-Disposition: form-data; name="' + bad + b'"\r\n\r\n' + bad + b"\r\n--x--\r\n",
            ),
            "form border": (
                plain,
                b"Content-Type: multipart/form-data; boundary=" + bad + b"\r\n",
                b"--" + bad + b"\r\n",
            ),
        }
        for place, (target, fields, body) in tried.items():
            if body and method == "GET":
                continue
            if (found := await status(server, method, target, fields, body)) >= 500:
                failed.append(f"{method} {path}, {place}: {found}")
    assert failed == []


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_secret_that_is_no_utf8_is_a_wrong_secret(server: Served, bad: bytes) -> None:
    port = server.host.rpartition(":")[2].encode()
    for fields in (
        b"Authorization: Bearer " + bad + b"\r\n",
        b"Cookie: palaver_" + port + b"=" + bad + b"\r\nPalaver-Proof: " + bad + b"\r\n",
        b"Origin: http://" + bad + b"\r\n",
    ):
        host, _, number = server.host.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(number))
        writer.write(b"GET /api/agents HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (server.host.encode(), fields))
        async with asyncio.timeout(WAIT_S):
            found = int((await reader.readline()).split()[1])
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        assert found in (401, 403, 429)


@pytest.mark.parametrize("path", ["/api/socket", "/ws"])
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_socket_ends_over_such_a_frame_and_the_server_goes_on(server: Served, path: str, bad: bytes) -> None:
    headers = {"Authorization": f"Bearer {server.token}"}
    async with connect(server.url.replace("http", "ws", 1) + path, additional_headers=headers) as socket:
        socket.transport.write(Frame(Opcode.TEXT, bad).serialize(mask=True))
        async with asyncio.timeout(WAIT_S):
            await socket.wait_closed()
        assert socket.close_code == 1007
    assert (await server.http.get("/api/agents")).status_code == 200


@pytest.mark.parametrize("place", [b"/ws/%s", b"/ws?x=%s", b"/api/socket?%s"])
@pytest.mark.parametrize("bad", [*BAD.values(), *map(percent, BAD.values())])
async def test_socket_address_of_such_bytes_is_refused_or_read(server: Served, place: bytes, bad: bytes) -> None:
    upgrade = (
        b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        b"Sec-WebSocket-Protocol: " + bad + b"\r\nX-Any: " + bad + b"\r\n"
    )
    host, _, port = server.host.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: upgrade\r\n%s\r\n"
        % (place % bad, server.host.encode(), server.token.encode(), upgrade)
    )
    async with asyncio.timeout(WAIT_S):
        found = await reader.readline()
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()

    assert int(found.split()[1]) < 500
