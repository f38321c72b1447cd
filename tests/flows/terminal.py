"""The command line as it is used: the real program in a pipe, or in a terminal that a test types into."""

import asyncio
import os
import pty
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.flows.served import WAIT_S

PROGRAM = (sys.executable, "-c", "from palaver.cli.main import main; main()")
SLOW_S = 2 * WAIT_S
"""A new Python on a busy machine, and what it then does."""


def environment(data: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(data), "PALAVER_DATA": str(data), "COLUMNS": "200", **more}


async def palaver(
    data: Path, *arguments: str, stdin: str | None = None, folder: str | None = None, **more: str
) -> tuple[int, str, str]:
    """Exit code, standard output, standard error. `folder`: where it is run; where no project is needed, the data directory."""
    process = await asyncio.create_subprocess_exec(
        *(*PROGRAM, *arguments),
        env=environment(data, **more),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder or data,
    )
    async with asyncio.timeout(SLOW_S):
        out, err = await process.communicate((stdin or "").encode())
    return process.returncode or 0, out.decode(), err.decode()


@dataclass
class Terminal:
    """A running program and the terminal it believes to have."""

    process: asyncio.subprocess.Process
    master: int
    shown: str = ""
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    def _read(self) -> None:
        with suppress(OSError):
            self.shown += os.read(self.master, 65_536).decode(errors="replace")
        self._more.set()

    async def until(self, words: str) -> None:
        """Waits until it has shown these words."""
        async with asyncio.timeout(SLOW_S):
            while words not in self.shown:
                self._more.clear()
                await self._more.wait()

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    async def ended(self) -> int:
        async with asyncio.timeout(SLOW_S):
            return await self.process.wait()


@asynccontextmanager
async def in_terminal(data: Path, *arguments: str, **more: str) -> AsyncIterator[Terminal]:
    master, slave = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(*PROGRAM, *arguments),
        env=environment(data, TERM="xterm-256color", **more),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=data,
    )
    os.close(slave)
    terminal = Terminal(process, master)
    loop = asyncio.get_running_loop()
    loop.add_reader(master, terminal._read)
    try:
        yield terminal
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        loop.remove_reader(master)
        os.close(master)
