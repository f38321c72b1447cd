"""From sending a message to the first token on a client's stream, against asking the provider directly.

Both sides use the same HTTP client with connections that are open already. Directly asked are the very requests that the
server made, with their history and their tools: reading those is the provider's work, whoever sends them.
"""

import asyncio
import time

import aiohttp
import msgspec

from bench.served import palaver_serving, provider_serving
from bench.table import Row, Spread
from palaver.client import Client
from palaver.schema.commands import CreateConversation, SendMessage

TRIES = 60
WARM_UP = 10
GOAL_MS = 5.0
TEXT = "!say Hello there, this is an answer."


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    async with provider_serving() as provider, palaver_serving(provider) as server:
        ours = await _through_palaver(server.url, server.token)
        direct = await _directly(provider)
    overhead = ours.median - direct.median
    return [
        Row(
            what="first token, beyond the provider's own",
            measured=f"{overhead:.2f} ms p50 ({ours.median:.2f} ms in all, p99 {ours.at(0.99):.2f})",
            floor=f"provider directly, {direct.median:.2f} ms",
            ratio=ours.median / direct.median,
            goal=f"≤ {GOAL_MS:.0f} ms p50",
            met=overhead <= GOAL_MS,
        )
    ]


async def _directly(provider: str) -> Spread:
    times: list[float] = []
    async with aiohttp.ClientSession(headers={"content-type": "application/json"}) as http:
        for body in await _requests_made(provider, http):
            begun = time.perf_counter()
            async with http.post(f"{provider}/v1/chat/completions", data=body) as response:
                response.raise_for_status()
                seen = b""
                async for chunk in response.content.iter_any():
                    seen += chunk
                    if b'"content":"' in seen.replace(b'"content":""', b""):
                        break
                times.append((time.perf_counter() - begun) * 1000)
                await response.read()
    return Spread.of(times[WARM_UP:])


async def _requests_made(provider: str, http: aiohttp.ClientSession) -> list[bytes]:
    async with http.get(f"{provider}/control/requests") as response:
        made = msgspec.json.decode(await response.read())
    return [msgspec.json.encode(request["body"]) for request in made]


async def _through_palaver(url: str, token: str) -> Spread:
    times: list[float] = []
    headers = {"Authorization": f"Bearer {token}"}
    async with Client.connect(url, token) as client, aiohttp.ClientSession() as http:
        conversation = (await client.create(CreateConversation())).conversation
        async with http.get(f"{url}/api/conversations/{conversation}/events?after=0", headers=headers) as stream:
            for _ in range(TRIES + WARM_UP):
                begun = time.perf_counter()
                sending = asyncio.create_task(client.command(conversation, SendMessage(content=TEXT)))
                await _until(stream, b'"type":"text.delta"')
                times.append((time.perf_counter() - begun) * 1000)
                await _until(stream, b'"type":"turn.finished"')
                await sending
    return Spread.of(times[WARM_UP:])


async def _until(stream: aiohttp.ClientResponse, wanted: bytes) -> None:
    """Reads event by event, so that nothing of the next turn is taken with it."""
    async with asyncio.timeout(20):
        while True:
            line = await stream.content.readline()
            if wanted in line:
                return
