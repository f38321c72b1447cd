"""What a flood in one conversation costs another: the longest wait for the event loop while an agent writes without pause.

The floor is the same wait with nothing else to do, which says how quick the machine is at the moment.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path

from bench.table import Row
from palaver.backends.script.script import Say, Step, Tool, Tools
from tests.flows.served import Served, serving

CALLS = 1_000
FRAGMENTS = 20_000
GOAL_MS = 100.0
TICK_S = 0.001


def measure() -> list[Row]:
    calls = [Tools(tuple(Tool("read", {"path": str(at)}, output="ok") for at in range(CALLS)))]
    text = [Say("word " * FRAGMENTS, chunk=5)]
    return [
        asyncio.run(_measure(f"stall of others, {CALLS:,} calls in one answer", calls)),
        asyncio.run(_measure(f"stall of others, {FRAGMENTS:,} fragments", text)),
    ]


async def _measure(what: str, script: Sequence[Step]) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data")
        data.mkdir()  # noqa: ASYNC240 - nothing runs yet
        async with serving(data, script) as server:
            await _flood(server)  # The first turn imports what it runs on.
            floor_ms = await _longest_wait_ms(asyncio.sleep(0.5))
            stall_ms = await _longest_wait_ms(_flood(server))
    return Row(
        what=what,
        measured=f"{stall_ms:.0f} ms",
        floor=f"the same loop at rest, {floor_ms:.0f} ms",
        ratio=stall_ms / max(floor_ms, 1.0),
        goal=f"≤ {GOAL_MS:.0f} ms",
        met=stall_ms <= GOAL_MS,
    )


async def _flood(server: Served) -> None:
    conversation = await server.create()
    await server.send(conversation, "Go")
    while (await server.state(conversation))["turn"] is not None:  # noqa: ASYNC110 - the reader's own work would count
        await asyncio.sleep(0.5)


async def _longest_wait_ms(work: Awaitable[object]) -> float:
    running = asyncio.ensure_future(work)
    longest_s = 0.0
    while not running.done():
        # Of this thread's own time: what other processes of the machine take is not the flood's.
        begun = time.thread_time()
        await asyncio.sleep(TICK_S)
        longest_s = max(longest_s, time.thread_time() - begun)
    await running
    return longest_s * 1000
