"""A client of an inbox that stops reading: the others are told of everything, and it is told once that it has to read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from palaver.backends.script.script import Wait
from palaver.log.memory import MemoryLog
from tests.flows.faces.inbox.client import ERAS, INBOX, Era, inbox
from tests.flows.faces.stalled import Stalled, stalled
from tests.flows.served import WAIT_S, Served, serving

BUFFER_BYTES = 1 << 10
MOST = 1_000
"""Messages after which a client that reads nothing must have been noticed."""
MORE = 30
IN_BETWEEN: dict[Era, int] = {"legacy": 20, "2026-07-28": 3}
"""Notifications that the package holds between us and a connection, by its era."""
JSON = {"Accept": "application/json, text/event-stream", "Content_Type": "application/json"}
UPDATED = "notifications/resources/updated"


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": method, "method": method, "params": params}


@asynccontextmanager
async def deaf_listener(served: Served, path: str, era: Era) -> AsyncIterator[Stalled]:
    """Subscribed, in the way of its era, and not reading."""
    if era == "2026-07-28":
        meta = {
            "io.modelcontextprotocol/protocolVersion": era,
            "io.modelcontextprotocol/clientInfo": {"name": "deaf", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        asked = request("subscriptions/listen", notifications={"resourceSubscriptions": [INBOX]}, _meta=meta)
        named = {"MCP_Protocol_Version": era, "MCP_Method": "subscriptions/listen"}
        async with stalled(served, path, "POST", msgspec.json.encode(asked), BUFFER_BYTES, **JSON, **named) as stream:
            yield stream
        return
    version = "2025-11-25"
    about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "deaf", "version": "1"}}
    headers = {"Accept": JSON["Accept"]}
    opened = await served.http.post(path, json=request("initialize", **about), headers=headers)
    session = {"Mcp_Session_Id": opened.headers["mcp-session-id"], "MCP_Protocol_Version": version}
    headers |= {name.replace("_", "-"): value for name, value in session.items()}
    await served.http.post(path, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    async with stalled(served, path, "GET", b"", BUFFER_BYTES, Accept="text/event-stream", **session) as stream:
        subscribed = await served.http.post(path, json=request("resources/subscribe", uri=INBOX), headers=headers)
        assert subscribed.status_code == 200, subscribed.text
        yield stream


@pytest.fixture
def small_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notification is short: without this it takes hundreds of them to fill what lies before the kernel."""
    made = HttpToolsProtocol.connection_made

    def with_little_room(protocol: HttpToolsProtocol, transport: asyncio.Transport) -> None:
        transport.set_write_buffer_limits(high=BUFFER_BYTES)
        made(protocol, transport)

    monkeypatch.setattr(HttpToolsProtocol, "connection_made", with_little_room)


@pytest.mark.usefixtures("small_transport")
@pytest.mark.parametrize("era", ERAS)
async def test_listener_that_stops_costs_little_and_is_told_once_of_all_it_missed(tmp_path: Path, era: Era) -> None:
    async with serving(tmp_path, [Wait("gate")], log=MemoryLog(), send_buffer_bytes=BUFFER_BYTES) as served:
        conversation = await served.create(message="Begin")
        await served.agent.reached("gate")
        streams = served.app.streams
        async with (
            inbox(served, "human", conversation) as quick,
            quick.subscribed(),
            deaf_listener(served, f"/mcp/human/{conversation}", era) as deaf,
        ):

            async def say(text: str, *, stays: bool = True) -> None:
                """One message; whoever reads is told of it."""
                waiting = await served.send(conversation, text)
                assert await quick.update() == INBOX
                if stays:
                    return
                # The agent is busy and the queue is short: it has been said, and need not be answered.
                removed = await served.command(conversation, type="remove_queued", item=waiting["id"])
                assert removed.status_code == 202, removed.text

            said = 0
            while not streams.unsent_bytes:
                said += 1
                assert said < MOST
                await say(f"message {said}", stays=False)
            for number in range(MORE):
                await say(f"unheard {number}")
            assert 0 < streams.unsent_bytes < 1_000
            assert quick.told.empty()

            told: list[dict[str, Any]] = []

            async def read() -> None:
                while True:
                    told.extend(await deaf.until(lambda event: event.get("method") == UPDATED))

            reading = asyncio.create_task(read())
            try:
                async with asyncio.timeout(WAIT_S):
                    while streams.unsent_bytes:
                        await served.http.get("/api/health")
                    heard = len(told)
                    await say("heard")
                    while len(told) == heard:
                        await served.http.get("/api/health")
            finally:
                reading.cancel()
                await asyncio.wait({reading})
            contents: list[str] = []
            mark: str | None = None
            while messages := (page := await quick.since(mark, limit=200))["messages"]:
                contents += [message["content"] for message in messages]
                mark = page["last_id"]
    updates = [event for event in told if event.get("method") == UPDATED]
    # What had been on its way, one for all that was said while nothing could be written, one for what was said last.
    assert len(updates) <= said + IN_BETWEEN[era] + 2 < said + MORE
    assert contents == ["Begin", *(f"unheard {number}" for number in range(MORE)), "heard"]
