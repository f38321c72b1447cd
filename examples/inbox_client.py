"""Both sides of a chat over MCP: a person's inbox and an assistant that answers from it.

    python examples/inbox_client.py human [CONVERSATION] [--server URL]
    python examples/inbox_client.py assistant [CONVERSATION] [--server URL]

Needs the official `mcp` package. The token is read from $PALAVER_TOKEN or ~/.palaver/token.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2  # comes with mcp
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import Subscription

INBOX = "ui://chat/inbox"
READ_EVERY_S = 1.0
"""Messages of the assistant raise no notification, so that a person's client also reads now and then."""

Message = dict[str, Any]


class Inbox:
    """One side of the chat, and the id up to which this client has read."""

    def __init__(self, client: Client, last_id: str | None = None) -> None:
        self.client = client
        self.last_id = last_id

    async def read_all(self) -> list[Message]:
        """The resource: everything that is in the inbox."""
        content: Any = (await self.client.read_resource(INBOX)).contents[0]
        inbox = json.loads(content.text)
        self.last_id = inbox["last_id"]
        return list(inbox["messages"])

    async def read_new(self) -> list[Message]:
        """Everything after the high-water mark, page by page."""
        found: list[Message] = []
        while page := await self._page():
            found += page
        return found

    async def _page(self) -> list[Message]:
        answer = await self.call("chat_read_since", after_id=self.last_id)
        self.last_id = answer["last_id"]
        return list(answer["messages"])

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        given = {name: value for name, value in arguments.items() if value is not None}
        result = await self.client.call_tool(tool, given)
        if result.is_error:
            raise RuntimeError(getattr(result.content[0], "text", tool))
        return dict(result.structured_content or {})


@asynccontextmanager
async def connected(server: str, side: str, conversation: str, token: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    address = "/".join(part for part in (server.rstrip("/"), "mcp", side, conversation) if part)
    # An update may be hours away.
    async with (
        httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=None)) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        yield client


# -- The person's side


async def run_human(client: Client) -> None:
    inbox = Inbox(client)
    show(await inbox.read_all())
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(show_new(inbox))
        while line := await asyncio.to_thread(sys.stdin.readline):
            await inbox.call("chat.human.post", mime="text/markdown", content=line.strip())
        reading.cancel()


async def show_new(inbox: Inbox) -> None:
    changed = asyncio.Event()
    async with inbox.client.listen(resource_subscriptions=[INBOX]) as updates, asyncio.TaskGroup() as tasks:
        tasks.create_task(notice(updates, changed))
        while True:
            show(await inbox.read_new())
            with suppress(TimeoutError):
                async with asyncio.timeout(READ_EVERY_S):
                    await changed.wait()
            changed.clear()


async def notice(updates: Subscription, changed: asyncio.Event) -> None:
    async for _ in updates:
        changed.set()


def show(messages: list[Message]) -> None:
    for message in messages:
        print(f"{message['ts']} {message['author']}: {message['content']}")


# -- The assistant's side


class Mark:
    """The high-water mark in a file: the id of the last message that was dealt with."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> str | None:
        return self.path.read_text() if self.path.exists() else None

    def save(self, last_id: str) -> None:
        self.path.write_text(last_id)


async def run_assistant(client: Client, mark: Mark) -> None:
    """Answer every message of a person in order, also those that came while this program was not running."""
    inbox = Inbox(client, mark.load())
    async with client.listen(resource_subscriptions=[INBOX]) as updates:
        await answer_new(inbox, mark)
        async for _ in updates:
            await answer_new(inbox, mark)


async def answer_new(inbox: Inbox, mark: Mark) -> None:
    for message in await inbox.read_new():
        if message["author"] == "user":
            await inbox.call("chat.assistant.post", mime="text/markdown", content=respond(message["content"]))
            await inbox.call("loop.yield_turn")
        # Last: what a crash interrupts is answered again after it, and never left out.
        mark.save(message["id"])
        print(f"read {message['id']}")


def respond(text: str) -> str:
    """Your assistant goes here."""
    return f"Acknowledged: {text}"


async def main() -> None:
    parser = argparse.ArgumentParser(description="Both sides of a chat over MCP")
    parser.add_argument("side", choices=["human", "assistant"])
    parser.add_argument("conversation", nargs="?", default="")
    parser.add_argument("--server", default="http://127.0.0.1:8420")
    parser.add_argument("--mark", type=Path, default=Path("inbox-mark.txt"), help="where the assistant keeps its place")
    options = parser.parse_args()
    token = os.environ.get("PALAVER_TOKEN") or (Path.home() / ".palaver/token").read_text()
    async with connected(options.server, options.side, options.conversation, token.strip()) as client:
        await (run_human(client) if options.side == "human" else run_assistant(client, Mark(options.mark)))


if __name__ == "__main__":
    asyncio.run(main())
