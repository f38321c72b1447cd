"""Time and fresh ids, injected everywhere: a day of waiting is a test of a second, a clock jump changes no order."""

import asyncio
import itertools
import os
import struct
import time
from typing import Protocol

_POOL = struct.Struct("512Q")
_VARIANT = 0b10 << 62
_NEXT_VARIANT = 0b11 << 62


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
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleeper = (self._elapsed_s + seconds, next(self._tie), woken)
        self._sleepers.append(sleeper)
        try:
            await woken
        finally:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)

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
        self._ms = 0
        self._head = ""
        self._middle = 0
        """The twelve bits after the version. A millisecond begins in their lower half, so there is room for steps."""
        self._tail = 0
        """The variant and the sixty-two bits after it."""
        self._pool: list[int] = []

    def new(self) -> str:
        ms = self._clock.now_ms()
        if ms > self._ms:
            self._begin(ms)
        else:
            self._step()
        tail = f"{self._tail:x}"
        return f"{self._head}{self._middle:03x}-{tail[:4]}-{tail[4:]}"

    def _begin(self, ms: int) -> None:
        digits = f"{ms:012x}"
        self._ms = ms
        self._head = f"{digits[:8]}-{digits[8:]}-7"
        self._middle = self._random() & 0x7FF
        self._tail = _VARIANT | (self._random() >> 2)

    def _step(self) -> None:
        # By sixty random bits: whoever knows one id cannot count on to the next.
        self._tail += 1 + (self._random() >> 4)
        if self._tail >= _NEXT_VARIANT:
            self._tail -= 1 << 62
            self._middle += 1
            if self._middle > 0xFFF:
                self._begin(self._ms + 1)

    def _random(self) -> int:
        if not self._pool:
            # Drawn in bulk: one system call for some hundreds of ids instead of one each.
            self._pool = list(_POOL.unpack(os.urandom(_POOL.size)))
        return self._pool.pop()
