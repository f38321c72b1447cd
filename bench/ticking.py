"""A model service that says the time: every token is the moment it was sent at, so whoever reads it knows how old it is."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
from aiohttp import web


@asynccontextmanager
async def ticking_provider(tokens: int, tokens_s: float) -> AsyncIterator[str]:
    """Answers every request with so many tokens at that rate. Both ends must read the same clock: one machine."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        begun = time.monotonic()
        # A stop closes the connection, which is what is measured.
        with suppress(ConnectionError):
            for number in range(tokens):
                await asyncio.sleep(max(0.0, begun + number / tokens_s - time.monotonic()))
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


def ages_ms(line: bytes, now: float) -> list[float]:
    """How old the tokens of one line of an event stream are. Tokens that were sent together count each."""
    if b'"type":"text.delta"' not in line:
        return []
    event = msgspec.json.decode(line.removeprefix(b"data: "))
    return [(now - float(sent)) * 1000 for sent in event["text"].split()]
