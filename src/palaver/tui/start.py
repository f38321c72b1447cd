"""The server a terminal talks to: find it, and start one in the background where none runs.

Called by `palaver tui` before there is a screen, with every path and command given to it. A server that was started here has a
session of its own: a terminal that is closed, or a connection by ssh that breaks, leaves it and its agents at work. Leaving
the terminal UI on purpose ends it, unless the person chose to keep it; what was chosen is the app's to ask.
"""

import asyncio
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from palaver.client.client import Client
from palaver.errors import ConfigurationError, PalaverError

READY_S = 30.0
"""A server is ready in about a second; a slow disk or a recovery takes longer."""
LOOK_S = 0.05
STOP_S = 10.0
"""It settles every turn and ends every process before it goes."""
LAST_WORDS_BYTES = 4_000


@dataclass(frozen=True, slots=True)
class StartedServer:
    url: str
    process: "subprocess.Popen[bytes]"

    async def stop(self) -> None:
        """Asks it to end, and waits until it has. Raises TimeoutExpired when it does not."""
        if self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(self.process.wait, STOP_S)


async def is_served(url: str) -> bool:
    """Whether a Palaver answers there."""
    async with Client.connect(url, "") as client:
        try:
            return (await client.health()).get("ok") is True
        except PalaverError:
            return False


async def start_server(
    command: Sequence[str],
    log: Path,
    address: Callable[[], str],
    ready_s: float = READY_S,
    meanwhile: Callable[[], object] = lambda: None,
) -> StartedServer:
    """Runs `command` until its server answers at `address()`. Raises ConfigurationError with what it said before it ended.

    `meanwhile` is done once it runs, and before anybody looks whether it is ready.
    """
    process = _start(command, log)
    try:
        meanwhile()
        async with asyncio.timeout(ready_s):
            while not await is_served(url := address()):
                if process.poll() is not None:
                    raise ConfigurationError(f"The server did not start. {_last_words(log)}")
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        process.kill()
        await asyncio.to_thread(process.wait, STOP_S)
        raise ConfigurationError(
            f"The server was not ready within {ready_s:.0f} seconds. Look into {log}, or run `palaver serve` to see why."
        ) from None
    return StartedServer(url, process)


def _start(command: Sequence[str], log: Path) -> "subprocess.Popen[bytes]":
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with log.open("wb") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )


def _last_words(log: Path) -> str:
    said = log.read_bytes()[-LAST_WORDS_BYTES:].decode(errors="replace").strip().splitlines()
    return said[-1].removeprefix("palaver: ") if said else "Run `palaver serve` to see why."
