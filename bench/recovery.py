"""A hundred turns cut by a crash: how long after the start until each is settled."""

import asyncio
import tempfile
import time
from pathlib import Path

from bench.logs import CLOCK, IDS, Writer, turn_events
from bench.table import Row
from palaver.agents.roster import Roster
from palaver.conversation.directory import Directory
from palaver.conversation.folders import ProjectFolders
from palaver.conversation.services import Surroundings
from palaver.feed.feed import Feed
from palaver.log.sqlite.store import open_sqlite_log
from palaver.schema.events import ConversationCreated

TURNS = 100


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        async with open_sqlite_log(Path(folder)) as log:
            for number in range(TURNS):
                writer = Writer.fresh(f"c{number}")
                # All but the last three events: the answer is half written and the turn open.
                await writer.append(
                    log, [ConversationCreated(), *turn_events("Go on", "Half an answer " * 20, 50)[:-3]]
                )
        async with open_sqlite_log(Path(folder)) as log:
            directory: Directory

            async def snapshot(conversation: str) -> tuple[int, bytes]:
                return await directory.snapshot(conversation)

            feed = Feed(log, CLOCK, snapshot)
            directory = Directory(
                Surroundings(log, feed, CLOCK, IDS, Roster((), {}), ProjectFolders(Path(folder), Path(folder)))
            )
            begun = time.perf_counter()
            async with directory.running():
                while await log.unfinished():
                    await feed.anything()
                took_ms = (time.perf_counter() - begun) * 1000
    return [
        Row(
            what=f"settle {TURNS} interrupted turns at start",
            measured=f"{took_ms:.0f} ms",
            goal="≤ 5 s",
            met=took_ms <= 5_000,
        )
    ]
