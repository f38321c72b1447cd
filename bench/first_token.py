"""From sending a message to the first token on a client's stream, against asking the provider directly.

Three roads, taken in turns so that a busy moment of the machine meets all of them: through Palaver; through a bare relay
that keeps the same promise, a message and a first piece on disk before anybody sees them (`relay_server.py`); and directly.
All use the same HTTP client with connections that are open already. The relay and the direct road send the very request
that the server made, with its history and its tools: reading it is the provider's work, whoever sends it.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec

from bench.served import Served, free_port, palaver_serving, provider_serving
from bench.table import Row, Spread
from palaver.client import Client
from palaver.schema.commands import CreateConversation, SendMessage

TRIES = 100
WARM_UP = 20
GOAL_MS = 5.0
TEXT = "!say Hello there, this is an answer."


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    ours, bare, direct = Times(), Times(), Times()
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(provider_serving())
        server = await stack.enter_async_context(palaver_serving(provider))
        relay = await stack.enter_async_context(_relaying(provider))
        http = await stack.enter_async_context(aiohttp.ClientSession(headers={"content-type": "application/json"}))
        through_palaver = await stack.enter_async_context(_palaver_road(server, http))
        through_relay = await stack.enter_async_context(_relay_road(relay, http))
        for _ in range(TRIES + WARM_UP):
            await through_palaver.go(ours)
            request = await _last_request(provider, http)
            await through_relay.go(bare, request)
            await _directly(provider, http, request, direct)
    floor = direct.spread.median
    overhead, least = ours.spread.median - floor, bare.spread.median - floor
    return [
        Row(
            what="first token, beyond the provider's own",
            measured=f"{overhead:.2f} ms p50 ({ours.spread.median:.2f} ms in all, p99 {ours.spread.at(0.99):.2f})",
            floor=f"provider directly, {floor:.2f} ms",
            ratio=ours.spread.median / floor,
            goal=f"≤ {GOAL_MS:.0f} ms p50",
            met=overhead <= GOAL_MS,
        ),
        Row(
            what="the same against a bare relay with two durable commits",
            measured=f"{overhead:.2f} ms p50",
            floor=f"bare relay, {least:.2f} ms",
            ratio=overhead / least,
        ),
    ]


class Times:
    def __init__(self) -> None:
        self._ms: list[float] = []

    def add(self, begun: float) -> None:
        self._ms.append((time.perf_counter() - begun) * 1000)

    @property
    def spread(self) -> Spread:
        return Spread.of(self._ms[WARM_UP:])


# -- through Palaver


class PalaverRoad:
    def __init__(self, client: Client, conversation: str, stream: aiohttp.ClientResponse) -> None:
        self._client = client
        self._conversation = conversation
        self._stream = stream

    async def go(self, times: Times) -> None:
        begun = time.perf_counter()
        sending = asyncio.create_task(self._client.command(self._conversation, SendMessage(content=TEXT)))
        await _until(self._stream, b'"type":"text.delta"')
        times.add(begun)
        await _until(self._stream, b'"type":"turn.finished"')
        await sending


@asynccontextmanager
async def _palaver_road(server: Served, http: aiohttp.ClientSession) -> AsyncIterator[PalaverRoad]:
    headers = {"Authorization": f"Bearer {server.token}"}
    async with Client.connect(server.url, server.token) as client:
        conversation = (await client.create(CreateConversation())).conversation
        address = f"{server.url}/api/conversations/{conversation}/events?after=0"
        async with http.get(address, headers=headers) as stream:
            yield PalaverRoad(client, conversation, stream)


# -- through the relay


class RelayRoad:
    def __init__(self, url: str, http: aiohttp.ClientSession, stream: aiohttp.ClientResponse) -> None:
        self._url = url
        self._http = http
        self._stream = stream

    async def go(self, times: Times, request: bytes) -> None:
        async with self._http.put(f"{self._url}/request", data=request) as response:
            response.raise_for_status()
        begun = time.perf_counter()
        sending = asyncio.create_task(self._sent())
        await _until(self._stream, b'"content":"', but=b'"content":""')
        times.add(begun)
        await _until(self._stream, b"[DONE]")
        await sending

    async def _sent(self) -> None:
        async with self._http.post(f"{self._url}/send", data=TEXT.encode()) as response:
            response.raise_for_status()
            await response.read()


@asynccontextmanager
async def _relaying(provider: str) -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.relay_server", str(port), provider, str(Path(folder) / "log.db"))
        )
        try:
            url = f"http://127.0.0.1:{port}"
            await _answering(url)
            yield url
        finally:
            process.kill()  # It waits for its readers, else.
            await process.wait()


async def _answering(url: str) -> None:
    async with asyncio.timeout(20), aiohttp.ClientSession() as http:
        while True:
            try:
                async with http.get(url) as response:
                    response.raise_for_status()
                    return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def _relay_road(url: str, http: aiohttp.ClientSession) -> AsyncIterator[RelayRoad]:
    async with http.get(f"{url}/events") as stream:
        yield RelayRoad(url, http, stream)


# -- directly


async def _directly(provider: str, http: aiohttp.ClientSession, request: bytes, times: Times) -> None:
    begun = time.perf_counter()
    async with http.post(f"{provider}/v1/chat/completions", data=request) as response:
        response.raise_for_status()
        await _until(response, b'"content":"', but=b'"content":""')
        times.add(begun)
        await response.read()


async def _last_request(provider: str, http: aiohttp.ClientSession) -> bytes:
    async with http.get(f"{provider}/control/requests") as response:
        made = msgspec.json.decode(await response.read())
    async with http.post(f"{provider}/control/reset") as response:
        response.raise_for_status()
    return msgspec.json.encode(made[-1]["body"])


async def _until(stream: aiohttp.ClientResponse, wanted: bytes, but: bytes = b"\0") -> None:
    """Reads line by line, so that nothing of the next answer is taken with it."""
    async with asyncio.timeout(20):
        while True:
            line = await stream.content.readline()
            if not line:
                raise ConnectionError("the stream ended too early")
            if wanted in line and but not in line:
                return
