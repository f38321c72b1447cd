"""One stream to many readers against a bare relay of prepared bytes: CPU time of the server an event delivered.

CPU time and not throughput, because readers share the machine: what a relay costs is steady, how fast it goes is not.
"""

import asyncio
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.table import Row

SUBSCRIBERS = (1, 10, 100, 1_000)
DELIVERIES_S = 40_000
"""Events delivered a second in all, so that neither server nor readers are ever the limit."""
MOST_EVENTS_S = 1_000
BATCH = 10
SECONDS = 5.0
GOAL = 0.7
ROUNDS = 3
"""Of the row that has a goal: one round alone differs by a fifth from the next."""


def measure() -> list[Row]:
    return [_row(count) for count in SUBSCRIBERS]


def _row(subscribers: int) -> Row:
    at_goal = subscribers == 100
    pairs = [
        (asyncio.run(cost("bare", subscribers)), asyncio.run(cost("palaver", subscribers)))
        for _ in range(ROUNDS if at_goal else 1)
    ]
    # The round in the middle, whole: its two sides met the same machine.
    floor, ours = sorted(pairs, key=lambda pair: pair[0] / pair[1])[len(pairs) // 2]
    return Row(
        what=f"fan-out to {subscribers:,} subscribers",
        measured=f"{ours:.1f} µs CPU an event delivered",
        floor=f"bare uvicorn relay, {floor:.1f} µs",
        ratio=floor / ours,
        goal=f"≥ {GOAL} x floor" if at_goal else "",
        met=floor / ours >= GOAL if at_goal else None,
    )


@dataclass
class _Reader(asyncio.Protocol):
    request: bytes
    counter: "Counter"
    first: asyncio.Future[None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        if not self.first.done():
            self.first.set_result(None)
        self.counter.events += data.count(b"\ndata: ")


@dataclass
class Counter:
    events: int = 0
    transports: list[Any] = field(default_factory=list[Any])
    """Kept, so that nobody closes them."""
    witness: "Counter | None" = None
    """One more reader, of the native face: on a busy machine it knows how many events there really were."""


Join = Callable[[int, str, int], Awaitable[Counter]]
"""Port, token, how many readers."""


async def cost(kind: str, subscribers: int, join: "Join | None" = None) -> float:
    """CPU of the server an event and reader, in µs. With a `join` of its own a reader may be told less than every event."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    rate = min(MOST_EVENTS_S, DELIVERIES_S / subscribers)
    batch = max(1, min(BATCH, int(rate / 10)))
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.fanout_server", kind, str(rate), str(batch), str(port)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        token = (await asyncio.wait_for(server.stdout.readline(), 30)).decode().strip()
        counter = await readers(port, token, subscribers) if join is None else await join(port, token, subscribers)
        server.stdin.write(b"go\n")
        await asyncio.sleep(1.0)
        cpu, events, begun = _cpu_s(server.pid), counter.events, time.monotonic()
        seen = counter.witness.events if counter.witness else 0
        await asyncio.sleep(SECONDS)
        spent, delivered = _cpu_s(server.pid) - cpu, counter.events - events
        expected = rate * subscribers * (time.monotonic() - begun)
        if counter.witness is not None:
            return spent / ((counter.witness.events - seen) * subscribers) * 1e6
        if delivered < 0.7 * expected:
            raise RuntimeError(f"{kind} fell behind: {delivered} of {expected:.0f} events. Is the machine busy?")
        return spent / delivered * 1e6
    finally:
        server.kill()
        await server.wait()


async def readers(port: int, token: str, count: int, path: str = "/api/conversations/bench/events") -> Counter:
    loop = asyncio.get_running_loop()
    counter = Counter()
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    await listening(port)
    for _ in range(count):
        first: asyncio.Future[None] = loop.create_future()
        transport, _ = await loop.create_connection(partial(_Reader, request, counter, first), "127.0.0.1", port)
        counter.transports.append(transport)
        await asyncio.wait_for(first, 20)
    return counter


async def listening(port: int) -> None:
    for _ in range(100):
        try:
            transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, "127.0.0.1", port)
            transport.close()
            return
        except OSError:
            await asyncio.sleep(0.1)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
