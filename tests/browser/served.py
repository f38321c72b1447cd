"""A real `palaver serve` in a process of its own, for pages to talk to.

Started on a free port with its own data directory and its model service in the test's process. It can be killed and started
again on the same port, as a machine that loses power would.
"""

import asyncio
import os
import random
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Wire = Literal["openai", "anthropic"]

START_S = 60.0
"""A start takes a second; machines that run tests are busy."""
STOP_S = 10.0

_LINK = re.compile(rb"http://127\.0\.0\.1:\d+/#code=\S+")


@dataclass
class Palaver:
    folder: Path
    """Holds the data directory, the project that agents work in, and what the server says."""
    provider_url: str
    wire: Wire = "openai"
    port: int = 0
    link: str = ""
    """The printed one, with its one-time code."""
    process: asyncio.subprocess.Process | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def token(self) -> str:
        return (self.data / "token").read_text().strip()

    async def start(self) -> None:
        """Returns when it is ready: that is when it prints its link."""
        self.project.mkdir(exist_ok=True)
        with (self.folder / "server.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", "from palaver.cli.main import main; main()"),
                *("serve", "--no-open", "--port", str(self.port), "--data", str(self.data)),
                cwd=self.project,
                env=self._environment(),
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        assert self.process.stdout is not None
        async with asyncio.timeout(START_S):
            while not (found := _LINK.search(await self._line(self.process.stdout))):
                pass
        self.link = found.group().decode()

    async def kill(self) -> None:
        """Without a word, as a crash does it."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        await asyncio.wait_for(self.process.wait(), STOP_S)

    async def stop(self) -> None:
        if self.process is None or self.process.returncode is not None:
            return
        self.process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), STOP_S)
        if self.process.returncode is None:
            await self.kill()

    def _environment(self) -> dict[str, str]:
        name = self.wire.upper()
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            f"{name}_BASE_URL": self.provider_url,
            f"{name}_API_KEY": "a key of a test",
        }

    async def _line(self, stdout: asyncio.StreamReader) -> bytes:
        line = await stdout.readline()
        if not line:
            raise AssertionError(f"palaver serve did not start: {(self.folder / 'server.log').read_text()[-2000:]}")
        return line


# Below those that a system gives to whoever connects: one of them could be taken while the server starts, or is away.
PORTS = range(20_000, 32_000)


def free_port() -> int:
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@asynccontextmanager
async def palaver_serving(folder: Path, provider_url: str, wire: Wire = "openai") -> AsyncIterator[Palaver]:
    palaver = Palaver(folder, provider_url, wire, free_port())
    try:
        await palaver.start()
        yield palaver
    finally:
        await palaver.stop()
