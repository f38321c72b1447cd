"""From a command to its end, and from `palaver tui` to its prompt, beside an interpreter that does nothing.

The server is a real one on the loopback, and is not measured but where it is started beside the terminal. `send` is what it
takes until the server has the message, so it does not wait for the answer. The best of several tries counts: whatever else runs
on the machine only adds to it.
"""

import asyncio
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from bench.served import Served, free_port, palaver_serving
from bench.table import Row

TRIES = 9
CONVERSATIONS = 30
COMMAND_GOAL_S = 0.35
PROMPT_GOAL_S = 0.8
BESIDE_GOAL_S = 1.5
COLUMNS, LINES = 140, 40
PROMPT = b"Describe the task"
"""What a composer says in which nobody has written yet."""
LONGEST_S = 60
PALAVER = (sys.executable, "-c", "from palaver.cli.main import main; main()")


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    floor_s = _best(partial(_ended_s, [sys.executable, "-c", "pass"]))
    rows = [
        _row(f"palaver {flag}", _best(partial(_ended_s, [*PALAVER, flag])), floor_s) for flag in ("--version", "--help")
    ]
    async with palaver_serving() as server:
        for number in range(CONVERSATIONS):
            _ended_s([*PALAVER, "send", "--no-wait", "--agent", "demo", f"number {number}"], server)
        commands = (["list"], ["send", "--no-wait", "--agent", "demo", "hello"], ["show", "last"])
        for command in commands:
            taken_s = _best(partial(_ended_s, [*PALAVER, *command], server))
            rows.append(_row(f"palaver {command[0]}", taken_s, floor_s, COMMAND_GOAL_S))
        taken_s = _best(partial(_prompt_s, _environment(server), server.data))
        rows.append(_row("terminal: prompt, with a server", taken_s, floor_s, PROMPT_GOAL_S))
    rows.append(_row("terminal: prompt, server started beside it", _best(_beside_s), floor_s, BESIDE_GOAL_S))
    return rows


def _row(what: str, measured_s: float, floor_s: float, goal_s: float | None = None) -> Row:
    return Row(
        what=what,
        measured=f"{measured_s:.2f} s",
        floor=f"python -c pass, {floor_s:.2f} s",
        ratio=measured_s / floor_s,
        goal="" if goal_s is None else f"≤ {goal_s:g} s",
        met=None if goal_s is None else measured_s <= goal_s,
    )


def _best(take_s: Callable[[], float]) -> float:
    return min(take_s() for _ in range(TRIES))


def _environment(server: Served | None, **more: str) -> dict[str, str]:
    at = {} if server is None else {"PALAVER_DATA": str(server.data), "PALAVER_URL": server.url}
    return {"PATH": os.environ["PATH"], "HOME": tempfile.gettempdir(), **at, **more}


def _ended_s(command: Sequence[str], server: Served | None = None) -> float:
    begun = time.monotonic()
    subprocess.run(command, env=_environment(server), stdout=subprocess.DEVNULL, timeout=LONGEST_S, check=True)
    return time.monotonic() - begun


# -- in a terminal


def _beside_s() -> float:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        return _prompt_s(_environment(None, HOME=scratch, PALAVER_PORT=str(free_port())), Path(scratch) / "data")


def _prompt_s(environment: dict[str, str], data: Path) -> float:
    """Until the prompt is on the screen. Ends the terminal then, and the server that it started."""
    begun = time.monotonic()
    pid, master = pty.fork()
    if pid == 0:
        look = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        os.execve(PALAVER[0], [*PALAVER, "tui", "--data", str(data)], environment | look)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    try:
        shown = b""
        while PROMPT not in shown:
            shown += os.read(master, 65_536)
        return time.monotonic() - begun
    finally:
        started = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(master)
        for server in started:
            _end(server)


def _end(server: int) -> None:
    """It is nobody's child any more, so its end can only be seen."""
    os.kill(server, signal.SIGTERM)
    until = time.monotonic() + LONGEST_S
    with suppress(ProcessLookupError):
        while time.monotonic() < until:
            os.kill(server, 0)
            time.sleep(0.01)
