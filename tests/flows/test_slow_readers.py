"""A reader that stops reading costs itself its place, and nobody else anything."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from palaver.backends.script.script import Say
from palaver.faces.http import sse
from palaver.faces.native import socket as native_socket
from tests.flows.served import PATIENCE_S, Served, ended_turn, serving

pytestmark = pytest.mark.anyio

FLOOD = "x" * 12_000_000
"""More than a kernel buffers for one connection."""


@pytest.fixture
async def flooding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(sse, "SEND_S", PATIENCE_S)
    monkeypatch.setattr(native_socket, "SEND_S", PATIENCE_S)
    async with serving(tmp_path, (Say(FLOOD, chunk=60_000),)) as server:
        yield server


@contextmanager
def deaf(server: Served) -> Iterator[socket.socket]:
    """A connection whose owner never reads."""
    with socket.create_connection(("127.0.0.1", int(server.host.rpartition(":")[2]))) as connection:
        connection.setblocking(False)
        yield connection


async def test_stalled_event_stream_is_let_go_and_the_others_read_on(flooding: Served) -> None:
    conversation = await flooding.create()
    request = (
        f"GET /api/conversations/{conversation}/events?after=0 HTTP/1.1\r\nHost: {flooding.host}\r\n"
        f"Authorization: Bearer {flooding.token}\r\n\r\n"
    )
    with deaf(flooding) as connection:
        await asyncio.get_running_loop().sock_sendall(connection, request.encode())
        async with flooding.events(conversation, after=0) as stream:
            await stream.next()
            await flooding.send(conversation, "flood me")
            seen = [event async for event in stream.until(ended_turn)]
        await flooding.deserted()

    assert seen[-1]["type"] == "turn.finished"
    assert [event["seq"] for event in seen if "state" not in event] != []


async def test_stalled_socket_is_let_go_and_the_others_read_on(flooding: Served) -> None:
    conversation = await flooding.create()
    url = flooding.url.replace("http", "ws", 1) + "/api/socket"
    headers = {"Authorization": f"Bearer {flooding.token}"}
    # One frame is all that this client takes in before it stops reading.
    async with connect(url, additional_headers=headers, max_queue=1, max_size=None, close_timeout=0.1) as deaf_socket:
        await deaf_socket.send(f'{{"type":"subscribe","conversation":"{conversation}"}}')
        async with flooding.socket() as reader:
            await reader.say(type="subscribe", conversation=conversation)
            await reader.until(type="caught_up")
            await flooding.send(conversation, "flood me")
            ended = (await reader.until(type="turn.finished"))[-1]
        await flooding.deserted()

    assert ended["conversation"] == conversation
