"""A real `palaver serve` in a process of its own, and a scripted model service in another."""

import asyncio
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from palaver.client import Client
from palaver.errors import PalaverError


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    token: str
    pid: int
    ready_s: float
    data: Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def palaver_serving(provider_url: str | None = None, data: Path | None = None) -> AsyncIterator[Served]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = data or Path(scratch) / "data"
        port = free_port()
        environment = {"PATH": os.environ["PATH"], "HOME": scratch}
        if provider_url:
            environment |= {"OPENAI_BASE_URL": provider_url, "OPENAI_API_KEY": "x", "PALAVER_MODEL": "scripted-1"}
        begun = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from palaver.cli.main import main; main()"),
            *("serve", "--no-open", "--port", str(port), "--data", str(folder)),
            env=environment,
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            await _healthy(url)
            ready_s = time.monotonic() - begun
            yield Served(url, (folder / "token").read_text().strip(), process.pid, ready_s, folder)
        finally:
            process.terminate()
            await process.wait()


async def _healthy(url: str) -> None:
    async with asyncio.timeout(60), Client.connect(url, "") as client:
        while True:
            try:
                await client.health()
                return
            except PalaverError:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def provider_serving() -> AsyncIterator[str]:
    """The scripted provider of the tests, as a program: it must not share a core's loop with the reader."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.provider"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), 20)).decode()
        yield line.removeprefix("listening on ").strip()
    finally:
        process.terminate()
        await process.wait()
