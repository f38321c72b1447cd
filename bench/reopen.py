"""Opening a conversation that left memory: its history must not be paid for."""

import asyncio
import tempfile
import time
from pathlib import Path

from bench.logs import long_conversation
from bench.table import Row, Spread
from palaver.conversation.recovery.load import load_state
from palaver.log.sqlite.store import open_sqlite_log

SIZES = (1_000, 10_000, 100_000)
TRIES = 30
GOAL = 2.0


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        async with open_sqlite_log(Path(folder)) as log:
            medians: dict[int, float] = {}
            for size in SIZES:
                await long_conversation(log, f"c{size}", size)
            for size in SIZES:
                times: list[float] = []
                for _ in range(TRIES):
                    begun = time.perf_counter()
                    loaded = await load_state(log, f"c{size}")
                    times.append((time.perf_counter() - begun) * 1000)
                    assert loaded is not None
                    assert loaded[0].seq >= size
                medians[size] = Spread.of(times).median
                ratio = medians[size] / medians[SIZES[0]]
                last = size == SIZES[-1]
                rows.append(
                    Row(
                        what=f"reopen a conversation of {size:,} events",
                        measured=f"{medians[size]:.1f} ms",
                        floor="" if size == SIZES[0] else f"1,000 events, {medians[SIZES[0]]:.1f} ms",
                        ratio=None if size == SIZES[0] else ratio,
                        goal=f"≤ {GOAL} x 1,000 events" if last else "",
                        met=ratio <= GOAL if last else None,
                    )
                )
    return rows
