"""A chat over the real wire: the client of the contract fed by real server-sent events, and commands by HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

import httpx
import msgspec

from tests.flows.served import WAIT_S, Sse
from tests.unit.faces.chats.client import ChatsClient, Json

_numbers = count(1)


class Reachable(Protocol):
    """A server with a client that is signed in."""

    @property
    def http(self) -> httpx.AsyncClient: ...


def fresh(word: str = "request") -> str:
    return f"{word}-{next(_numbers)}"


async def command(server: Reachable, chat: str, type: str, **fields: Any) -> httpx.Response:
    body = {"client_request_id": fresh(), **fields, "type": type}
    return await server.http.post(f"/v1/chats/{chat}/commands", json=body)


async def did(server: Reachable, chat: str, type: str, **fields: Any) -> str:
    """A command that is taken; its status."""
    answer = await command(server, chat, type, **fields)
    assert answer.status_code in (200, 202), answer.text
    return str(answer.json()["status"])


@dataclass
class Chat:
    """One subscriber. Everything it hears is applied to the client of the contract, which checks each number."""

    server: Reachable
    id: str
    sse: Sse
    client: ChatsClient = field(default_factory=ChatsClient)
    frames: list[Json] = field(default_factory=list[Json])

    async def next(self) -> Json:
        fields = await self.sse.next()
        while "data" not in fields:
            fields = await self.sse.next()
        frame: Json = msgspec.json.decode(fields["data"])
        # Without a name, so that `EventSource.onmessage` hears it.
        assert (sorted(fields), fields["id"], frame["chat_id"]) == (["data", "id"], str(frame["seq"]), self.id)
        self.client.apply(frame)
        self.frames.append(frame)
        return frame

    async def until(self, last: Callable[[Json], bool]) -> list[Json]:
        """Frames up to the first that fits; from those that come, not those that were."""
        async with asyncio.timeout(WAIT_S):
            heard = [await self.next()]
            while not last(heard[-1]):
                heard.append(await self.next())
            return heard

    async def until_state(self, *states: str) -> list[Json]:
        if self.client.runtime.get("state") in states:
            return []
        return await self.until(lambda frame: frame["type"] == "runtime_updated" and frame["state"] in states)

    async def until_type(self, type: str) -> Json:
        return (await self.until(lambda frame: frame["type"] == type))[-1]

    async def acked(self, request_id: str) -> Json:
        """The ack of a request, also if it came before."""
        known = [ack for ack in self.client.acks if ack["client_request_id"] == request_id]
        if known:
            return known[-1]
        heard = await self.until(lambda frame: frame["type"] == "ack" and frame["client_request_id"] == request_id)
        return heard[-1]

    async def answered(self) -> list[Json]:
        """Frames until a turn that begins, or has begun, came to rest."""
        heard = await self.until_state("generating", "executing_tools")
        return heard + await self.until_state("idle", "error", "completed", "waiting_user_input", "paused")

    async def command(self, type: str, **fields: Any) -> httpx.Response:
        return await command(self.server, self.id, type, **fields)

    async def did(self, type: str, **fields: Any) -> str:
        return await did(self.server, self.id, type, **fields)

    async def say(self, text: str, **fields: Any) -> list[Json]:
        """A message that is answered; the frames until rest."""
        assert await self.did("user_message", content=text, **fields) == "accepted"
        return await self.answered()

    @property
    def texts(self) -> list[tuple[str, Any]]:
        return [(message["role"], message["content"]) for message in self.client.messages]

    async def snapshot(self) -> Json:
        """What a new subscriber is shown now."""
        async with following(self.server, self.id) as other:
            return other.frames[0]


@asynccontextmanager
async def following(server: Reachable, chat: str) -> AsyncIterator[Chat]:
    async with server.http.stream("GET", "/v1/chats/subscribe", params={"chat_id": chat}) as response:
        assert response.status_code == 200, await response.aread()
        chatting = Chat(server, chat, Sse(response))
        assert (await chatting.next())["type"] == "snapshot"
        yield chatting


def types(frames: list[Json]) -> list[str]:
    return [frame["type"] for frame in frames]
