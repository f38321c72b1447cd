"""The official MCP client at the two inbox servers of a real one, in both eras of the protocol."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
import mcp_types as types
import msgspec
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from palaver.people.authentication import KeyRecord, Kind, token_hash
from tests.flows.served import WAIT_S, Served

INBOX = "ui://chat/inbox"
Era = Literal["legacy", "2026-07-28"]
ERAS: tuple[Era, ...] = ("legacy", "2026-07-28")

TOKENS: dict[Kind, str] = {"human": "human-token", "agent": "agent-token", "observer": "observer-token"}


def with_tokens(data: Path) -> Path:
    """A data folder that knows a token of each kind, named after it."""
    data.mkdir(exist_ok=True)
    records = [KeyRecord(name=f"the {kind}", kind=kind, hash=token_hash(token)) for kind, token in TOKENS.items()]
    (data / "tokens.json").write_bytes(msgspec.json.encode(records))
    return data


class Inbox:
    """One client of one server. Every wait is bounded."""

    def __init__(self, client: Client, era: Era) -> None:
        self.client = client
        self.era = era
        self.told: asyncio.Queue[str] = asyncio.Queue()

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result.content
        assert result.structured_content is not None
        first = result.content[0]
        assert isinstance(first, types.TextContent)
        assert msgspec.json.decode(first.text) == result.structured_content
        return dict(result.structured_content)

    async def refused(self, name: str, **arguments: Any) -> str:
        result = await self.client.call_tool(name, arguments)
        assert result.is_error
        first = result.content[0]
        assert isinstance(first, types.TextContent)
        return first.text

    async def say(self, content: str, mime: str = "text/markdown", **more: Any) -> dict[str, Any]:
        return await self.call("chat.human.post", mime=mime, content=content, **more)

    async def read(self) -> dict[str, Any]:
        """The resource."""
        answer = await self.client.read_resource(INBOX, cache_mode="refresh")
        (content,) = answer.contents
        assert isinstance(content, types.TextResourceContents)
        assert content.mime_type == "application/json"
        return dict(msgspec.json.decode(content.text))

    async def since(self, after_id: str | None = None, limit: int | None = None) -> dict[str, Any]:
        given = {"after_id": after_id, "limit": limit}
        return await self.call("chat_read_since", **{key: value for key, value in given.items() if value is not None})

    async def until(self, *contents: str) -> list[dict[str, Any]]:
        """The messages of the resource, once they end with these."""
        async with asyncio.timeout(WAIT_S):
            while True:
                messages: list[dict[str, Any]] = (await self.read())["messages"]
                if [message["content"] for message in messages[-len(contents) :]] == list(contents):
                    return messages

    async def tools(self) -> dict[str, types.Tool]:
        return {tool.name: tool for tool in (await self.client.list_tools()).tools}

    @asynccontextmanager
    async def subscribed(self) -> AsyncIterator[None]:
        """Updates come into `told`, by whatever the era calls a subscription."""
        if self.era == "legacy":
            subscribe = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=INBOX))
            await self.client.session.send_request(subscribe, types.EmptyResult)
            yield
            leave = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=INBOX))
            await self.client.session.send_request(leave, types.EmptyResult)
            return
        async with self.client.listen(resource_subscriptions=[INBOX]) as events:

            async def hear() -> None:
                async for event in events:
                    await self.told.put(getattr(event, "uri", ""))

            hearing = asyncio.create_task(hear())
            try:
                yield
            finally:
                hearing.cancel()
                await asyncio.wait({hearing})

    async def update(self) -> str:
        async with asyncio.timeout(WAIT_S):
            return await self.told.get()


@asynccontextmanager
async def inbox(
    served: Served, side: str, conversation: str | None, token: str | None = None, era: Era = "2026-07-28"
) -> AsyncIterator[Inbox]:
    """Without a conversation: the server's default inbox."""
    holder: list[Inbox] = []

    async def heard(message: object) -> None:
        # A listener of the newer era is handed its events; those of the older one are heard here.
        if era == "legacy" and isinstance(message, types.ResourceUpdatedNotification):
            await holder[0].told.put(message.params.uri)

    headers = {"Authorization": f"Bearer {token or served.token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=WAIT_S) as http:
        address = f"{served.url}/mcp/{side}" + (f"/{conversation}" if conversation else "")
        transport = streamable_http_client(address, http_client=http)
        client = Client(transport, mode="auto" if era == "2026-07-28" else "legacy", message_handler=heard, cache=None)
        holder.append(Inbox(client, era))
        async with client:
            yield holder[0]
