"""Durable appends against a bare group commit of the same bytes: what the log's promises cost on top of the disk."""

import asyncio
import tempfile
import time
from pathlib import Path

import apsw

from bench.logs import Writer
from bench.table import Row
from palaver.log.base import Append
from palaver.log.sqlite import open_sqlite_log
from palaver.schema.events import KnownEvent, TextDelta, encode_event

CONVERSATIONS = 100
EVENTS = 10
ROUNDS = 60
TRIES = 3
GOAL = 0.6


def measure() -> list[Row]:
    floor = max(_bare() for _ in range(TRIES))
    ours = max(asyncio.run(_ours()) for _ in range(TRIES))
    return [
        Row(
            what=f"durable append, {CONVERSATIONS} conversations x {EVENTS} events",
            measured=f"{ours / 1000:,.0f} k events/s",
            floor=f"bare apsw group commit, {floor / 1000:,.0f} k/s",
            ratio=ours / floor,
            goal=f"≥ {GOAL} x floor",
            met=ours / floor >= GOAL,
        )
    ]


def _lines(conversation: str, after: int) -> list[bytes]:
    writer = Writer.fresh(conversation)
    events: list[KnownEvent] = [TextDelta(turn="t" * 36, message="m" * 36, block=0, text="tok ") for _ in range(EVENTS)]
    return [encode_event(event) for event in writer.number(events)]


def _bare() -> float:
    """One row a conversation and round, one transaction a round, nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        connection = apsw.Connection(str(Path(folder) / "floor.db"))
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
        connection.execute(
            "CREATE TABLE segments (conversation INTEGER, first INTEGER, last INTEGER, body BLOB) STRICT"
        )
        bodies = [b"\n".join(_lines(f"c{number}", 0)) for number in range(CONVERSATIONS)]
        begun = time.perf_counter()
        for round_ in range(ROUNDS):
            with connection:
                connection.executemany(
                    "INSERT INTO segments VALUES (?, ?, ?, ?)",
                    [(n, round_ * EVENTS, round_ * EVENTS + EVENTS, body) for n, body in enumerate(bodies)],
                )
        return ROUNDS * CONVERSATIONS * EVENTS / (time.perf_counter() - begun)


async def _ours() -> float:
    with tempfile.TemporaryDirectory() as folder:
        async with open_sqlite_log(Path(folder)) as log:
            lines = {f"c{number}": _lines(f"c{number}", 0) for number in range(CONVERSATIONS)}
            begun = time.perf_counter()
            for round_ in range(ROUNDS):
                await asyncio.gather(*(log.append(Append(name, round_ * EVENTS, body)) for name, body in lines.items()))
            return ROUNDS * CONVERSATIONS * EVENTS / (time.perf_counter() - begun)
