"""A hundred conversations that stream at once, each read by three: nothing is lost, and how late it comes.

The model service and all readers share this process and one core, the server has the other, as on a small machine; so
the lag holds what the readers themselves are late by.
"""

import asyncio
import time

import aiohttp
import msgspec

from bench.served import palaver_serving
from bench.table import Row, Spread
from bench.ticking import ages_ms, ticking_provider
from palaver.client import Client
from palaver.schema.commands import CreateConversation, SendMessage

CONVERSATIONS = 100
READERS = 3
A_TAB = 10
"""Conversations that one WebSocket follows: thirty tabs in all, as many as one token may have open."""
TOKENS_S = 30
TOKENS = 300
WARM_UP = 30
"""Of each reader's tokens: a hundred turns begin at one moment, which is another number."""


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    async with ticking_provider(TOKENS, TOKENS_S) as provider, palaver_serving(provider) as server:
        read = await _read_all(server.url, server.token)
    lost = sum(TOKENS - len(ages) for ages in read)
    lags = Spread.of([age for ages in read for age in ages[WARM_UP:]])
    return [
        Row(
            what=f"{CONVERSATIONS} conversations at {TOKENS_S} events/s, {READERS} readers each: lag",
            measured=str(lags),
        ),
        Row(
            what="the same: tokens lost",
            measured=f"{lost} of {CONVERSATIONS * READERS * TOKENS:,}",
            goal="0",
            met=lost == 0,
        ),
    ]


async def _read_all(url: str, token: str) -> list[list[float]]:
    headers = {"Authorization": f"Bearer {token}"}
    async with Client.connect(url, token) as client, aiohttp.ClientSession(headers=headers) as http:
        made = [(await client.create(CreateConversation())).conversation for _ in range(CONVERSATIONS)]
        tabs = [made[first : first + A_TAB] for first in range(0, CONVERSATIONS, A_TAB)] * READERS
        followed = asyncio.Semaphore(0)
        reading = [asyncio.create_task(_read(http, url, tab, followed)) for tab in tabs]
        for _ in range(CONVERSATIONS * READERS):
            await followed.acquire()
        await asyncio.gather(*(client.command(conversation, SendMessage(content="go")) for conversation in made))
        return [ages for tab in await asyncio.gather(*reading) for ages in tab]


async def _read(
    http: aiohttp.ClientSession, url: str, conversations: list[str], followed: asyncio.Semaphore
) -> list[list[float]]:
    """One tab: the ages of all tokens, by conversation."""
    ages: dict[str, list[float]] = {conversation: [] for conversation in conversations}
    left = len(conversations)
    async with http.ws_connect(f"{url}/api/socket", max_msg_size=0) as socket, asyncio.timeout(120):
        for conversation in conversations:
            await socket.send_json({"type": "subscribe", "conversation": conversation, "after": 1})
        while left:
            lines = str(await socket.receive_str()).encode().splitlines()
            now = time.monotonic()
            for line in lines:
                if b'"type":"caught_up"' in line:
                    followed.release()
                left -= b'"type":"turn.finished"' in line
                if found := ages_ms(line, now):
                    ages[msgspec.json.decode(line)["conversation"]].extend(found)
    return list(ages.values())
