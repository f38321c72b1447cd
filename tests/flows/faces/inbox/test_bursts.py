"""Many posts at once, from several clients: each is taken once or refused so that it can be sent again; order is kept."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from palaver.backends.script.script import Say, Wait, turns
from tests.flows.faces.inbox.client import Inbox, inbox
from tests.flows.served import WAIT_S, Served, serving

CLIENTS, POSTS = 8, 25


async def post(client: Inbox, text: str) -> str | None:
    """The id, or None for a refusal that says it may be tried again."""
    try:
        result = await client.client.call_tool("chat.human.post", {"mime": "text/plain", "content": text})
    except MCPError as refused:  # Too many calls of one token at once.
        error: dict[str, Any] = refused.error.data
        assert (error["code"], error["retryable"]) == ("busy", True)
        return None
    content: dict[str, Any] = result.structured_content or {}
    if not result.is_error:
        return str(content["id"])
    first = result.content[0]
    assert isinstance(first, types.TextContent)
    assert first.text == content["error"]["message"]
    assert (content["error"]["code"], content["error"]["retryable"]) == ("busy", True)
    return None


async def texts(client: Inbox) -> dict[str, str]:
    """What people said, by its id, in order."""
    found: dict[str, str] = {}
    last: str | None = None
    while (page := await _page(client, last))["messages"]:
        found |= {one["id"]: one["content"] for one in page["messages"] if one["author"] == "user"}
        last = page["last_id"]
    return found


async def _page(client: Inbox, after: str | None) -> dict[str, Any]:
    """A call counts until the server has let go of it, a moment after its answer was read: one may have to try again."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                return await client.since(after, limit=200)
            except MCPError as refused:
                if not refused.error.data["retryable"]:
                    raise


async def delivered(served: Served, conversation: str) -> list[str]:
    view = await served.state(conversation)
    items = (await served.http.get(f"/api/conversations/{conversation}/messages", params={"limit": 500})).json()[
        "items"
    ]
    assert view["queue"] == []
    return [block["text"] for message in items if message["role"] == "user" for block in message["blocks"]]


async def test_two_hundred_posts_at_once_are_each_taken_once_or_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, turns([Wait("gate"), Say("Done.")])) as served, AsyncExitStack() as stack:
        conversation = await served.create()
        clients = [await stack.enter_async_context(inbox(served, "human", conversation)) for _ in range(CLIENTS)]
        names = {f"{number} {post}": client for number, client in enumerate(clients) for post in range(POSTS)}
        async with asyncio.timeout(3 * WAIT_S):
            ids = await asyncio.gather(*(post(client, name) for name, client in names.items()))
        taken = {id: name for name, id in zip(names, ids, strict=True) if id is not None}
        assert 0 < len(taken) < len(names)
        assert len(taken) == sum(id is not None for id in ids)
        assert await texts(clients[0]) == taken


async def test_clients_that_try_again_get_all_in_and_in_their_order(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation) as reader:

            async def stream(client: int) -> list[str]:
                async with inbox(served, "human", conversation) as own:
                    for number in range(POSTS):
                        while await post(own, f"{client} {number}") is None:
                            pass  # The agent answers meanwhile: each attempt lets it.
                    return [f"{client} {number}" for number in range(POSTS)]

            async with asyncio.timeout(3 * WAIT_S):
                said = await asyncio.gather(*map(stream, range(CLIENTS)))
            found = list((await texts(reader)).values())
            assert sorted(found) == sorted(name for many in said for name in many)
            for many in said:
                assert [name for name in found if name in many] == many
            async with asyncio.timeout(WAIT_S):
                while (await served.state(conversation))["queue"]:
                    pass
            assert await delivered(served, conversation) == found
