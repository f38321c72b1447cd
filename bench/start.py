"""From the command to the first answered request, with ten thousand conversations on disk."""

import asyncio
import tempfile
from pathlib import Path

from bench.logs import many_conversations
from bench.served import palaver_serving
from bench.table import Row, Spread
from palaver.log.sqlite import open_sqlite_log

CONVERSATIONS = 10_000
TRIES = 5
GOAL_S = 2.0


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    empty = [await _ready_s(None) for _ in range(TRIES)]
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        async with open_sqlite_log(data) as log:
            await many_conversations(log, CONVERSATIONS)
        full = [await _ready_s(data) for _ in range(TRIES)]
    median, floor = Spread.of(full).median, Spread.of(empty).median
    return [
        Row(
            what=f"ready with {CONVERSATIONS:,} conversations",
            measured=f"{median:.2f} s",
            floor=f"empty, {floor:.2f} s",
            ratio=median / floor,
            goal=f"≤ {GOAL_S:.0f} s",
            met=median <= GOAL_S,
        )
    ]


async def _ready_s(data: Path | None) -> float:
    async with palaver_serving(data=data) as server:
        return server.ready_s
