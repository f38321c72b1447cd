"""The development server of the page examples, which acts with its user's token: whom it answers, and which files it gives."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.browser.served import Palaver
from tests.examples.running import EXAMPLES, WAIT_S, running

PAGE = "bus_page"


@pytest.fixture
async def http(page_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=page_url) as client:
        yield client


async def test_page_and_its_calls_have_one_origin(http: httpx.AsyncClient, page_url: str) -> None:
    page = await http.get("/")
    assert page.headers["content-type"] == "text/html"
    assert page.text == (EXAMPLES / PAGE / "index.html").read_text()
    runs = await http.get("/api/agent-runs", headers={"Origin": page_url})
    assert (runs.status_code, runs.json()) == (200, [])


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://elsewhere.example"}, {"Host": "elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}],
)
async def test_other_origins_are_refused(http: httpx.AsyncClient, headers: dict[str, str]) -> None:
    for path in ("/", "/api/agent-runs"):
        assert (await http.get(path, headers=headers)).status_code == 403


@pytest.mark.parametrize("path", ["/../serve_page.py", "/%2e%2e/serve_page.py", "//../serve_page.py", "/.", "/no.js"])
async def test_only_files_of_the_folder_are_given(page_url: str, path: str) -> None:
    host = page_url.removeprefix("http://")
    # By hand: a client's library would tidy the path.
    reader, writer = await asyncio.open_connection(*host.split(":"))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    async with asyncio.timeout(WAIT_S):
        answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 404")


async def test_server_that_is_away_is_an_ended_connection(palaver: Palaver) -> None:
    away = Palaver(palaver.folder, palaver.provider_url, port=1)
    async with running(away, "serve_page.py", str(EXAMPLES / PAGE), "--port", "0") as server:
        url = (await server.shows("\n")).strip()
        async with httpx.AsyncClient(base_url=url) as http:
            with pytest.raises(httpx.RemoteProtocolError):
                await http.get("/api/agent-runs")
