"""How long a token takes from the provider's socket to a client's, at 100 tokens a second."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import msgspec
from aiohttp import web

from bench.served import palaver_serving
from bench.table import Row, Spread
from palaver.client import Client
from palaver.schema.commands import CreateConversation, SendMessage

TOKENS = 500
TOKENS_S = 100


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    async with _ticking_provider() as provider, palaver_serving(provider) as server:
        lags = await _lags(server.url, server.token)
    return [Row(what=f"delivery lag at {TOKENS_S} tokens/s", measured=str(Spread.of(lags)))]


async def _lags(url: str, token: str) -> list[float]:
    """Each token is the time it was sent at; both ends read the same clock."""
    lags: list[float] = []
    headers = {"Authorization": f"Bearer {token}"}
    async with Client.connect(url, token) as client, aiohttp.ClientSession() as http:
        conversation = (await client.create(CreateConversation())).conversation
        async with http.get(f"{url}/api/conversations/{conversation}/events?after=0", headers=headers) as stream:
            await client.command(conversation, SendMessage(content="go"))
            async with asyncio.timeout(60):
                while True:
                    line = await stream.content.readline()
                    now = time.monotonic()
                    if b'"type":"turn.finished"' in line:
                        return lags[20:]
                    if b'"type":"text.delta"' in line:
                        event = msgspec.json.decode(line.removeprefix(b"data: "))
                        lags.extend((now - float(sent)) * 1000 for sent in event["text"].split())


@asynccontextmanager
async def _ticking_provider() -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        begun = time.monotonic()
        for number in range(TOKENS):
            await asyncio.sleep(max(0.0, begun + number / TOKENS_S - time.monotonic()))
            chunk = {"choices": [{"index": 0, "delta": {"content": f"{time.monotonic():.6f} "}}]}
            await response.write(b"data: " + msgspec.json.encode(chunk) + b"\n\n")
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        await response.write(b"data: " + msgspec.json.encode(end) + b"\n\ndata: [DONE]\n\n")
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        assert site._server is not None
        yield f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"  # type: ignore[attr-defined]
    finally:
        await runner.cleanup()
