"""How long a stop takes while an answer streams: from the click to the event that says the turn is settled."""

import asyncio
import time

import aiohttp

from bench.served import palaver_serving
from bench.table import Row, Spread
from bench.ticking import ticking_provider
from palaver.client import Client
from palaver.schema.commands import CreateConversation, Interrupt, SendMessage

STOPS = 60
GOAL_MS = 100.0
TOKENS_S = 100
TOKENS_BEFORE = 5
"""Read before the stop: it is in the middle of its answer."""


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    async with ticking_provider(60 * TOKENS_S, TOKENS_S) as provider, palaver_serving(provider) as server:
        took = Spread.of(await _stops(server.url, server.token))
    return [
        Row(
            what="interrupt to settled, while streaming",
            measured=str(took),
            goal=f"≤ {GOAL_MS:.0f} ms p50",
            met=took.median <= GOAL_MS,
        )
    ]


async def _stops(url: str, token: str) -> list[float]:
    took: list[float] = []
    headers = {"Authorization": f"Bearer {token}"}
    async with Client.connect(url, token) as client, aiohttp.ClientSession() as http:
        conversation = (await client.create(CreateConversation())).conversation
        async with http.get(f"{url}/api/conversations/{conversation}/events?after=0", headers=headers) as stream:
            for _ in range(STOPS):
                await client.command(conversation, SendMessage(content="go"))
                await _until(stream, b'"type":"text.delta"', TOKENS_BEFORE)
                begun = time.monotonic()
                stopping = asyncio.create_task(client.command(conversation, Interrupt()))
                await _until(stream, b'"type":"turn.interrupted"')
                took.append((time.monotonic() - begun) * 1000)
                await stopping
    return took


async def _until(stream: aiohttp.ClientResponse, mark: bytes, times: int = 1) -> None:
    async with asyncio.timeout(30):
        while times:
            times -= mark in await stream.content.readline()
