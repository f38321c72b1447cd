"""One answer to a hundred readers of each face, against the native face: CPU time of the server an event and reader.

Each face says an event in its own way, some in fewer frames than there are events, so the cost is counted by events of the
log. Projected and encoded once a face, another face may cost half as much again as the bytes that the log has already.
"""

import asyncio
import json
from contextlib import suppress
from functools import partial

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from bench.fanout import Counter, Join, cost, listening, readers
from bench.table import Row

SUBSCRIBERS = 100
GOAL = 1.5
ROUNDS = 2
"""Of all faces one after the other. Another program on the machine can only make one of them dearer."""


async def _socket(port: int, token: str, count: int) -> Counter:
    await listening(port)
    counter = Counter()
    for _ in range(count):
        opened = await connect(f"ws://127.0.0.1:{port}/ws", additional_headers={"Authorization": f"Bearer {token}"})
        hello = {"type": "hello", "protocolVersion": 2, "subscriptions": ["bench"]}
        await opened.send(json.dumps(hello))
        await opened.recv()
        counter.transports.append((opened, asyncio.create_task(_drained(opened))))
    return counter


async def _drained(opened: ClientConnection) -> None:
    # The server is killed when the time is up.
    with suppress(ConnectionClosed):
        async for _ in opened:
            pass


FACES: dict[str, Join] = {
    "bus": partial(readers, path="/api/events"),
    "socket": _socket,
    "stream": partial(readers, path="/api/chat/stream?sessionId=bench&after=0"),
    "chats": partial(readers, path="/v1/chats/subscribe?chat_id=bench"),
}


def measure() -> list[Row]:
    joins: dict[str, Join] = {"native": partial(readers), **FACES}
    rounds = [{name: _cost(join) for name, join in joins.items()} for _ in range(ROUNDS)]
    best = {name: min(costs[name] for costs in rounds) for name in joins}
    return [_row(face, best[face], best["native"]) for face in FACES]


def _cost(join: Join) -> float:
    async def witnessed(port: int, token: str, count: int) -> Counter:
        counter = await join(port, token, count)
        counter.witness = await readers(port, token, 1)
        return counter

    return asyncio.run(cost("palaver", SUBSCRIBERS, witnessed))


def _row(face: str, ours: float, native: float) -> Row:
    return Row(
        what=f"fan-out of the {face} face to {SUBSCRIBERS} readers",
        measured=f"{ours:.1f} µs CPU an event and reader",
        floor=f"the native face, {native:.1f} µs",
        ratio=ours / native,
        goal=f"≤ {GOAL} x native",
        met=ours <= GOAL * native,
    )
