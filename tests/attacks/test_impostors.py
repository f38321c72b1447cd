"""A page that is open while another program takes the server's port tells it nothing that opens the server afterwards."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from playwright.async_api import expect

from tests.attacks.test_page_key import STORED, handshake
from tests.browser.conftest import anyio_backend, chromium, palaver, provider, visitors, wire
from tests.browser.served import Palaver
from tests.browser.visitor import Visitors
from tests.flows.served import WAIT_S, http_client, read_challenge

__all__ = ["anyio_backend", "chromium", "palaver", "provider", "visitors", "wire"]

pytestmark = [pytest.mark.anyio, pytest.mark.browser]

CHALLENGE = "A" * 22


@dataclass
class Impostor:
    """Answers everything as the server might, with a challenge of its own, and takes down what comes."""

    body: bytes = b'{"ok": true, "items": []}'
    heads: list[str] = field(default_factory=list[str])
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.heads.append(head)
        self.news.set()
        is_page = re.match(r"GET /(c/\S*)? ", head)
        kind, body = ("text/html", b"<title>hi</title>hi") if is_page else ("application/json", self.body)
        status = "200 OK" if is_page or "GET /api/health " in head else "401 Unauthorized"
        fields = f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\nPalaver-Challenge: {CHALLENGE}\r\nConnection: close"
        writer.write(f"HTTP/1.1 {status}\r\n{fields}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    @asynccontextmanager
    async def listen(self, port: int) -> AsyncIterator[None]:
        async with await asyncio.start_server(self.answer, "127.0.0.1", port):
            yield

    async def hears(self, pattern: str) -> None:
        async with asyncio.timeout(WAIT_S):
            while not any(re.search(pattern, head, re.IGNORECASE) for head in self.heads):
                self.news.clear()
                await self.news.wait()

    def found(self, pattern: str) -> set[str]:
        return {text.strip() for head in self.heads for text in re.findall(pattern, head, re.IGNORECASE)}


async def test_what_an_open_page_told_an_impostor_opens_nothing_after_the_restart(
    palaver: Palaver, visitors: Visitors
) -> None:
    visitors.complaints.expect("401", "ERR_", "WebSocket", "Failed to load", "Failed to fetch", "Unable to preload")
    ada = await visitors.owner(palaver.url, palaver.token)
    await ada.go()
    await expect(ada.list).to_be_visible()
    secret = ada.key.partition(".")[2]
    await palaver.stop()
    impostor = Impostor()
    async with impostor.listen(palaver.port):
        await impostor.hears(r"palaver-proof: \S+\.|palaver\.proof\.")
        # What a page of the impostor's own finds in this origin.
        thief = await ada.page.context.new_page()
        await thief.goto(f"{palaver.url}/")
        stored = await thief.evaluate(STORED)
        await thief.close()
        await ada.page.close()
    cookies = impostor.found(r"\r\ncookie: *([^\r]*)")
    proofs = impostor.found(r"palaver-proof: *(\S+)") | impostor.found(r"palaver\.proof\.([\w.-]+)")
    targets = impostor.found(r"^(?:GET|POST) (\S+)")

    assert cookies
    assert proofs
    assert secret not in str([impostor.heads, stored])
    assert [key[1:] for key in stored["keys"]] == [["CryptoKey", False]]

    await palaver.start()
    async with http_client(palaver.url) as http:
        challenge = await read_challenge(http)
        for cookie in cookies:
            for proof in proofs:
                renamed = proof.replace(CHALLENGE, challenge)
                for tried in (proof, renamed):
                    for target in (*targets, "/api/agents", "/api/session"):
                        if not target.startswith("/api/") or target == "/api/health":
                            continue
                        headers = {"Cookie": cookie, "Palaver-Proof": tried, "Palaver-Key": tried}
                        assert (await http.get(target, headers=headers)).status_code == 401
                    offered = ("palaver", f"palaver.proof.{tried}")
                    assert await handshake(palaver.url, "/api/socket", {"Cookie": cookie}, offered) == 401


async def test_page_goes_on_by_itself_once_its_own_server_is_back(palaver: Palaver, visitors: Visitors) -> None:
    visitors.complaints.expect("401", "ERR_", "WebSocket", "Failed to load", "Failed to fetch", "Unable to preload")
    ada = await visitors.owner(palaver.url, palaver.token)
    await ada.begin("Hello there")
    await ada.rests()
    await palaver.stop()
    await palaver.start()
    await ada.send("And again")
    await ada.rests()
    await expect(ada.log).to_contain_text("And again")
