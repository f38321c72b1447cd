"""Time and fresh ids, injected everywhere: a day of waiting is a test of a second, a clock jump changes no order."""

import asyncio
import itertools
import os
import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall time, for people. Never compared to decide an order or an expiry."""
        ...

    def monotonic_s(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class ManualClock:
    """Stands still until told to move; sleepers wake in the order of their deadlines."""

    def __init__(self, now_ms: int = 1_760_000_000_000) -> None:
        self._now_ms = now_ms
        self._elapsed_s = 0.0
        self._tie = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return self._now_ms + int(self._elapsed_s * 1000)

    def monotonic_s(self) -> float:
        return self._elapsed_s

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._elapsed_s + seconds, next(self._tie), woken))
        await woken

    def jump_wall(self, milliseconds: int) -> None:
        """The wall clock is set by hand or by NTP; no time passes."""
        self._now_ms += milliseconds

    async def advance(self, seconds: float) -> None:
        until = self._elapsed_s + seconds
        while due := [sleeper for sleeper in self._sleepers if sleeper[0] <= until]:
            first = min(due)
            self._sleepers.remove(first)
            self._elapsed_s = max(self._elapsed_s, first[0])
            if not first[2].done():
                first[2].set_result(None)
            await asyncio.sleep(0)
        self._elapsed_s = until
        await asyncio.sleep(0)


class Ids:
    """UUIDv7 text, strictly increasing within a process even when the wall clock is set back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0
        self._pool = b""

    def new(self) -> str:
        # Milliseconds in the top 48 bits, 73 random ones below: one growing number, with a bit to spare for the steps
        # taken within a millisecond, so that it never runs over into the time.
        fresh = (self._clock.now_ms() << 80) | (self._random(10) & ((1 << 73) - 1))
        if fresh >> 80 <= self._last >> 80:
            fresh = self._last + 1 + self._random(4)
        self._last = fresh
        head = f"{fresh >> 80:012x}"
        tail = f"{(7 << 76) | (((fresh >> 62) & 0xFFF) << 64) | (0b10 << 62) | (fresh & ((1 << 62) - 1)):020x}"
        return f"{head[:8]}-{head[8:]}-{tail[:4]}-{tail[4:8]}-{tail[8:]}"

    def _random(self, size: int) -> int:
        # Drawn in bulk: one system call for four hundred ids instead of one each.
        if len(self._pool) < size:
            self._pool = os.urandom(4096)
        drawn, self._pool = self._pool[:size], self._pool[size:]
        return int.from_bytes(drawn)
