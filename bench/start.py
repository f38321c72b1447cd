"""From the command to a server that is ready, and to its first answers, beside an interpreter that does nothing.

Ready means that the link is printed. The best of several tries counts: whatever else runs on the machine only adds to it.
"""

import asyncio
import http.client
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.logs import many_conversations
from bench.served import free_port
from bench.table import Row
from palaver.log.sqlite.store import open_sqlite_log

CONVERSATIONS = 10_000
TRIES = 7
READY_GOAL_S = 0.5
ANSWER_GOAL_S = 0.7
FULL_GOAL_S = 2.0
FIRST = ("/api/conversations", "/api/session", "/")
"""What the command line and the page ask for first."""


class Start(NamedTuple):
    """Seconds since the command."""

    ready_s: float
    answered_s: float
    """All of `FIRST`, one after the other."""


def measure() -> list[Row]:
    floor_s = min(_nothing_s() for _ in range(TRIES))
    empty = _best([_start(None) for _ in range(TRIES)])
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        asyncio.run(_fill(data))
        full = _best([_start(data) for _ in range(TRIES)])
    return [
        _row("server ready", empty.ready_s, floor_s, READY_GOAL_S),
        _row("first API answers and page", empty.answered_s, floor_s, ANSWER_GOAL_S),
        _row(f"ready with {CONVERSATIONS:,} conversations", full.ready_s, floor_s, FULL_GOAL_S),
    ]


def _row(what: str, measured_s: float, floor_s: float, goal_s: float) -> Row:
    return Row(
        what=what,
        measured=f"{measured_s:.2f} s",
        floor=f"python -c pass, {floor_s:.2f} s",
        ratio=measured_s / floor_s,
        goal=f"≤ {goal_s:g} s",
        met=measured_s <= goal_s,
    )


def _best(starts: list[Start]) -> Start:
    return Start(min(start.ready_s for start in starts), min(start.answered_s for start in starts))


async def _fill(data: Path) -> None:
    async with open_sqlite_log(data) as log:
        await many_conversations(log, CONVERSATIONS)


def _nothing_s() -> float:
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.monotonic() - begun


def _start(data: Path | None) -> Start:
    with tempfile.TemporaryDirectory() as scratch:
        folder, port = data or Path(scratch) / "data", free_port()
        begun = time.monotonic()
        with subprocess.Popen(
            [
                *(sys.executable, "-c", "from palaver.cli.main import main; main()", "serve", "--json"),
                *("--no-open", "--port", str(port), "--data", str(folder)),
            ],
            env={"PATH": os.environ["PATH"], "HOME": scratch},
            stdout=subprocess.PIPE,
        ) as process:
            try:
                assert process.stdout is not None
                told = msgspec.json.decode(process.stdout.readline())
                ready_s = time.monotonic() - begun
                _ask(port, Path(told["token_file"]).read_text().strip())
                return Start(ready_s, time.monotonic() - begun)
            finally:
                process.terminate()


def _ask(port: int, token: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        for path in FIRST:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, (path, answer.status)
    finally:
        connection.close()
