"""Runs an example program in a process of its own and reads what it prints."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.browser.served import Palaver

EXAMPLES = Path(__file__).parents[2] / "examples"
PRESS_EVERY_S = 0.2
WAIT_S = 30.0
"""The longest a program takes to print what it should: most of it is the machine's other work."""


class Program:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.output = ""
        self._read = 0
        self._ended = False
        self._grown = asyncio.Condition()

    async def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        await self.process.stdin.drain()

    async def shows(self, text: str) -> str:
        """Waits until it prints this after what was waited for before; everything printed up to it."""

        def is_decided() -> bool:
            return text in self.output[self._read :] or self._ended

        async with asyncio.timeout(WAIT_S), self._grown:
            try:
                await self._grown.wait_for(is_decided)
            finally:
                new = self.output[self._read :]
                assert text in new, f"never showed {text!r}, but:\n{new}"
        seen = new[: new.index(text) + len(text)]
        self._read += len(seen)
        return seen

    async def end(self) -> int:
        """Ctrl-D; its exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await asyncio.wait_for(self.process.wait(), WAIT_S)

    async def interrupt(self, shown: str) -> str:
        """Ctrl-C, again while nothing came of it: a program that waits for its first answer has nothing to stop yet."""
        pressing = asyncio.create_task(self._press_interrupt())
        try:
            return await self.shows(shown)
        finally:
            pressing.cancel()

    async def _press_interrupt(self) -> None:
        while True:
            self.process.send_signal(signal.SIGINT)
            await asyncio.sleep(PRESS_EVERY_S)

    async def kill(self) -> None:
        self.process.kill()
        await asyncio.wait_for(self.process.wait(), WAIT_S)

    async def read(self) -> None:
        assert self.process.stdout is not None
        while piece := await self.process.stdout.read(4096):
            async with self._grown:
                self.output += piece.decode()
                self._grown.notify_all()
        async with self._grown:
            self._ended = True
            self._grown.notify_all()


@asynccontextmanager
async def running(palaver: Palaver, name: str, *arguments: str) -> AsyncIterator[Program]:
    """An example with the server's token in its environment, as its documentation says."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(EXAMPLES / name), *arguments, "--server", palaver.url),
        cwd=palaver.folder,
        env={"PATH": os.environ["PATH"], "PALAVER_TOKEN": palaver.token, "PYTHONUNBUFFERED": "1"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    program = Program(process)
    reading = asyncio.create_task(program.read())
    try:
        yield program
    finally:
        if process.returncode is None:
            process.kill()
        await asyncio.wait_for(process.wait(), WAIT_S)
        await reading
