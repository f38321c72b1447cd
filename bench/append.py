"""Durable appends against a bare group commit of the same bytes: what the log's promises cost on top of the disk.

The floor is what any group commit must do: many callers on an event loop, one thread, one transaction and one fsync for all
that wait, an answer for each. It keeps rows that can be read back and nothing else: no numbering, no heads, no chain, no
lists. Beside it stands what SQLite takes with no callers at all, a loop of `executemany`.
"""

import asyncio
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from queue import Empty, SimpleQueue

import apsw

from bench.logs import Writer
from bench.table import Row
from palaver.log.base import Append
from palaver.log.sqlite.store import open_sqlite_log
from palaver.schema.events import KnownEvent, TextDelta, encode_event

CONVERSATIONS = 100
EVENTS = 10
ROUNDS = 60
TRIES = 5
GOAL = 0.6

_Row = tuple[int, int, int, bytes]
_AppendOne = Callable[[int, int], Awaitable[object]]


def measure() -> list[Row]:
    # Taken in turns, so that a neighbour's load falls on both alike.
    floors, ours, alone = [], [], []
    for _ in range(TRIES):
        floors.append(asyncio.run(_bare()))
        ours.append(asyncio.run(_ours()))
        alone.append(_without_callers())
    floor, mine, raw = max(floors), max(ours), max(alone)
    return [
        Row(
            what=f"durable append, {CONVERSATIONS} conversations x {EVENTS} events",
            measured=f"{mine / 1000:,.0f} k events/s",
            floor=f"bare apsw group commit, {floor / 1000:,.0f} k/s",
            ratio=mine / floor,
            goal=f"≥ {GOAL} x floor",
            met=mine / floor >= GOAL,
        ),
        Row(
            what="the same against SQLite without callers",
            measured=f"{mine / 1000:,.0f} k events/s",
            floor=f"a loop of executemany, {raw / 1000:,.0f} k/s",
            ratio=mine / raw,
        ),
    ]


def _lines(conversation: str) -> list[bytes]:
    writer = Writer.fresh(conversation)
    events: list[KnownEvent] = [TextDelta(turn="t" * 36, message="m" * 36, block=0, text="tok ") for _ in range(EVENTS)]
    return [encode_event(event) for event in writer.number(events)]


def _body(number: int) -> bytes:
    return b"\n".join(_lines(f"c{number}"))


async def _owners(append: _AppendOne) -> float:
    """As many owners as conversations, each with the next append when the last one is on disk."""

    async def own(number: int) -> None:
        for round_ in range(ROUNDS):
            await append(number, round_ * EVENTS)

    begun = time.perf_counter()
    await asyncio.gather(*(own(number) for number in range(CONVERSATIONS)))
    return ROUNDS * CONVERSATIONS * EVENTS / (time.perf_counter() - begun)


async def _ours() -> float:
    with tempfile.TemporaryDirectory() as folder:
        async with open_sqlite_log(Path(folder)) as log:
            lines = [_lines(f"c{number}") for number in range(CONVERSATIONS)]
            return await _owners(lambda number, after: log.append(Append(f"c{number}", after, lines[number])))


async def _bare() -> float:
    with tempfile.TemporaryDirectory() as folder:
        loop = asyncio.get_running_loop()
        connection = _table(Path(folder))
        waiting: SimpleQueue[tuple[_Row, asyncio.Future[None]] | None] = SimpleQueue()

        def answer(futures: list[asyncio.Future[None]]) -> None:
            for future in futures:
                future.set_result(None)

        def write() -> None:
            given = waiting.get()
            while given is not None:
                rows, futures = [given[0]], [given[1]]
                try:
                    while (given := waiting.get_nowait()) is not None:
                        rows.append(given[0])
                        futures.append(given[1])
                except Empty:
                    given = None
                with connection:
                    connection.executemany("INSERT INTO segments VALUES (?, ?, ?, ?)", rows)
                loop.call_soon_threadsafe(answer, futures)
                given = waiting.get()

        bodies = [_body(number) for number in range(CONVERSATIONS)]

        async def append(number: int, after: int) -> None:
            future: asyncio.Future[None] = loop.create_future()
            waiting.put(((number, after + 1, after + EVENTS, bodies[number]), future))
            await future

        thread = threading.Thread(target=write)
        thread.start()
        try:
            return await _owners(append)
        finally:
            waiting.put(None)
            thread.join()


def _without_callers() -> float:
    with tempfile.TemporaryDirectory() as folder:
        connection = _table(Path(folder))
        bodies = [_body(number) for number in range(CONVERSATIONS)]
        begun = time.perf_counter()
        for round_ in range(ROUNDS):
            with connection:
                connection.executemany(
                    "INSERT INTO segments VALUES (?, ?, ?, ?)",
                    [(n, round_ * EVENTS + 1, (round_ + 1) * EVENTS, body) for n, body in enumerate(bodies)],
                )
        return ROUNDS * CONVERSATIONS * EVENTS / (time.perf_counter() - begun)


def _table(folder: Path) -> apsw.Connection:
    connection = apsw.Connection(str(folder / "floor.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute("CREATE TABLE segments (conversation INTEGER, first INTEGER, last INTEGER, body BLOB) STRICT")
    # Without it nobody could read a conversation back, and then it would not be a log.
    connection.execute("CREATE UNIQUE INDEX segments_last ON segments (conversation, last)")
    return connection
