"""How long a token takes from the provider's socket to a client's, at 100 tokens a second."""

import asyncio
import time

import aiohttp

from bench.served import palaver_serving
from bench.table import Row, Spread
from bench.ticking import ages_ms, ticking_provider
from palaver.client import Client
from palaver.schema.commands import CreateConversation, SendMessage

TOKENS = 500
TOKENS_S = 100


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    async with ticking_provider(TOKENS, TOKENS_S) as provider, palaver_serving(provider) as server:
        lags = await _lags(server.url, server.token)
    return [Row(what=f"delivery lag at {TOKENS_S} tokens/s", measured=str(Spread.of(lags)))]


async def _lags(url: str, token: str) -> list[float]:
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
                    lags.extend(ages_ms(line, now))
