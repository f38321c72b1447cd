"""Named gates: an answer waits at one until a test opens it, and a test can wait until an answer stands there.

No test needs to sleep to catch an answer in the middle. Every wait is bounded.
"""

import asyncio
from collections import defaultdict

WAIT_S = 60.0
"""Longer than any test should take to open a gate, shorter than a test may last."""


class Gates:
    def __init__(self) -> None:
        self._opened: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._reached: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def open(self, name: str) -> None:
        self._opened[name].set()

    def shut(self, name: str) -> None:
        """A gate may be used again."""
        self._opened[name].clear()
        self._reached[name].clear()

    async def reached(self, name: str) -> None:
        """Until an answer waits at the gate."""
        async with asyncio.timeout(WAIT_S):
            await self._reached[name].wait()

    async def pass_through(self, name: str) -> None:
        self._reached[name].set()
        async with asyncio.timeout(WAIT_S):
            await self._opened[name].wait()

    def open_all(self) -> None:
        for gate in self._opened.values():
            gate.set()
