"""A browser signs in only under an address that the server holds: where another program can listen on an address of the same
name, the page's requests would go there."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from palaver.cli.serve import listening
from palaver.config import Config
from palaver.errors import ConfigurationError
from tests.browser.conftest import anyio_backend, chromium, palaver, provider, visitors, wire
from tests.browser.served import Palaver, free_port
from tests.browser.visitor import Visitors
from tests.flows.served import WAIT_S, PageKey, Served, read_challenge, serving

__all__ = ["anyio_backend", "chromium", "palaver", "provider", "visitors", "wire"]

pytestmark = pytest.mark.anyio

OTHERS = ["localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"]
"""Names of loopback that a server on 127.0.0.1 does not hold as a whole."""


@asynccontextmanager
async def listening_at(address: str, port: int) -> AsyncIterator[list[str]]:
    """What a command of an agent may run there: a page, and a note of each request that comes."""
    heard: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, address, port):
        yield heard


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "data") as served:
        yield served


def named(server: Served, name: str) -> str:
    return name.format(port=server.host.rpartition(":")[2])


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    "target", ["/", "/c/abc?x=%20y&z", "/settings", "/assets/none.js", "//evil.example/", "/theme.js"]
)
async def test_page_under_a_name_that_others_share_is_at_the_held_address(
    server: Served, name: str, target: str
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.host.rpartition(":")[2]))
    head = (
        f"GET {target} HTTP/1.1\r\nHost: {named(server, name)}\r\nSec-Fetch-Dest: document\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode())
    async with asyncio.timeout(WAIT_S):
        answer = (await reader.read()).decode("latin-1")
    writer.close()

    assert answer.startswith("HTTP/1.1 308 ")
    assert re.findall(r"^location: (.*?)\r?$", answer, re.MULTILINE) == [f"http://{server.host}{target}"]
    assert "set-cookie" not in answer.lower()


@pytest.mark.parametrize("name", OTHERS)
async def test_nobody_signs_in_under_a_name_that_others_share(server: Served, name: str) -> None:
    headers = {"Host": named(server, name)}
    async with server.browser() as page:
        for credentials in ({"token": server.token}, {"code": server.app.keys.new_code()}):
            answer = await page.post("/api/session", json=credentials, headers=headers)
            assert answer.status_code == 403
            assert server.host in answer.json()["message"]
            assert "set-cookie" not in answer.headers
        by_token = await page.post("/api/session", json={}, headers={**headers, **server.http.headers})

    assert by_token.status_code == 403


@pytest.mark.parametrize("name", OTHERS)
async def test_sign_in_counts_under_no_name_that_others_share(server: Served, name: str) -> None:
    host = named(server, name)
    async with server.browser() as page:
        key = PageKey((await page.post("/api/session", json={"token": server.token})).json()["key"])
        challenge = await read_challenge(page)
        for method, path in (("GET", "/api/agents"), ("GET", "/api/session"), ("POST", "/api/session/code")):
            for proven in (host, host.lower(), server.host):
                proof = key.prove(challenge, method, proven, path)
                answer = await page.request(method, path, headers={"Host": host, "Palaver-Proof": proof})
                assert answer.status_code == 403
        cookie = "; ".join(f"{name}={value}" for name, value in page.cookies.items())
    for path in ("/api/socket", "/ws"):
        offered = await key.prove_socket(server.url, path)
        with pytest.raises(InvalidStatus) as refused:
            async with connect(
                f"ws://{host.lower()}{path}",
                host="127.0.0.1",
                additional_headers={"Cookie": cookie},
                subprotocols=offered,
                origin=Origin(f"http://{host.lower()}"),
                open_timeout=WAIT_S,
            ):
                pass
        assert refused.value.response.status_code == 403


@pytest.mark.parametrize("name", OTHERS)
async def test_program_with_a_token_is_answered_under_every_name_of_loopback(server: Served, name: str) -> None:
    assert (await server.http.get("/api/agents", headers={"Host": named(server, name)})).status_code == 200


async def test_page_under_the_held_address_is_not_moved(server: Served) -> None:
    async with server.browser() as page:
        assert (await page.get("/", headers={"Sec-Fetch-Dest": "document"})).status_code == 200


async def test_server_of_both_families_keeps_others_out_of_both() -> None:
    port = free_port()
    with listening(Config(data=Path("/nowhere"), home=Path("/nowhere"), host="::", port=port)):
        for address in ("127.0.0.1", "::1", "0.0.0.0", "::"):
            with pytest.raises((ConfigurationError, OSError)):
                await asyncio.start_server(lambda *_: None, address, port)


@pytest.mark.browser
async def test_browser_that_opened_localhost_gives_nothing_to_whoever_listens_beside_the_server(
    palaver: Palaver, visitors: Visitors
) -> None:
    ada = await visitors.stranger(palaver.url)
    visitors.complaints.expect("401", "WebSocket", "favicon", f"//localhost:{palaver.port}/")
    await ada.page.goto(palaver.link.replace("127.0.0.1", "localhost"))
    await expect(ada.list).to_be_visible()
    await expect(ada.page).to_have_url(f"{palaver.url}/")
    async with listening_at("::1", palaver.port) as heard:
        await ada.page.reload()
        await expect(ada.list).to_be_visible()
        other = await ada.page.context.new_page()
        await other.goto(f"http://localhost:{palaver.port}/")
        await expect(other.get_by_text("hi", exact=True)).to_be_visible()
        await other.evaluate(
            "fetch('/api/session').then(() => new WebSocket('/api/socket'.replace(/^/, location.origin)))"
        )
        kept = await other.evaluate("[{...localStorage}, document.cookie]")
        await other.close()

    assert heard, "the browser goes there"
    assert not re.search(r"palaver[._-](key|proof|\d+)", "".join(heard), re.IGNORECASE)
    assert kept == [{}, ""]
