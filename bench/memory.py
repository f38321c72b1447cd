"""What rests in memory: a conversation that was let go, and a subscriber that waits."""

import asyncio
import gc
import os
import sys
import tempfile
from pathlib import Path

from bench.fanout import readers
from bench.logs import CLOCK, IDS, many_conversations
from bench.served import free_port
from bench.table import Row
from palaver.agents.roster import Roster
from palaver.conversation.directory import Directory
from palaver.conversation.folders import ProjectFolders
from palaver.conversation.services import Surroundings
from palaver.feed.feed import Feed
from palaver.log.sqlite.store import open_sqlite_log
from palaver.schema.commands import SetDraft

CONVERSATIONS = 2_000
SUBSCRIBERS = 1_000
GOAL_KB = 60


def measure() -> list[Row]:
    return [*asyncio.run(_conversations()), asyncio.run(_subscribers())]


async def _conversations() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        async with open_sqlite_log(Path(folder)) as log:
            await many_conversations(log, CONVERSATIONS)
            directory: Directory

            async def snapshot(conversation: str) -> tuple[int, bytes]:
                return await directory.snapshot(conversation)

            feed = Feed(log, CLOCK, snapshot)
            directory = Directory(
                Surroundings(log, feed, CLOCK, IDS, Roster((), {}), ProjectFolders(Path(folder), Path(folder)))
            )
            async with directory.running():
                await _touch_all(directory, "warm")
                await directory.let_rest(0)
                before = _objects()
                await _touch_all(directory, "open")
                opened = _objects() - before
                await directory.let_rest(0)
                left = _objects() - before
                assert directory.open_count == 0
    return [
        Row(what="objects an open conversation holds", measured=f"{opened / CONVERSATIONS:.0f}"),
        Row(
            what="objects left of an idle conversation after eviction",
            measured=f"{left / CONVERSATIONS:.2f}",
            goal="0",
            met=abs(left) / CONVERSATIONS < 0.5,
        ),
    ]


async def _touch_all(directory: Directory, text: str) -> None:
    for number in range(CONVERSATIONS):
        await directory.command(f"conversation-{number}", SetDraft(text=text), None)


def _objects() -> int:
    gc.collect()
    return len(gc.get_objects())


async def _subscribers() -> Row:
    """Resident memory of the whole server, so that sockets, tasks and buffers are all in it."""
    port = free_port()
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.fanout_server", "palaver", "1", "1", str(port)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert server.stdout is not None
    try:
        token = (await asyncio.wait_for(server.stdout.readline(), 30)).decode().strip()
        await readers(port, token, 50)
        before = _resident_kb(server.pid)
        counter = await readers(port, token, SUBSCRIBERS)
        each = (_resident_kb(server.pid) - before) / SUBSCRIBERS
        assert len(counter.transports) == SUBSCRIBERS
    finally:
        server.kill()
        await server.wait()
    return Row(
        what="memory an idle subscriber (SSE, whole server)",
        measured=f"{each:.0f} KB",
        goal=f"≤ {GOAL_KB} KB",
        met=each <= GOAL_KB,
    )


def _resident_kb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024
