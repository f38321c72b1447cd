"""Standard output and error whose reader is gone or has stopped, a full disk, facts that cannot be shown: nothing that the
server does fails or waits for its journal."""

import asyncio
import fcntl
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests.browser.served import START_S, STOP_S, free_port
from tests.flows.served import WAIT_S, http_client

pytestmark = pytest.mark.anyio

FLOODING = """
import logging, pathlib, sys, threading, time
from palaver.cli.main import main

class Odd:
    def __repr__(self):
        raise RuntimeError("cannot be shown")

def flood():
    # Written when the server is ready.
    while not pathlib.Path(sys.argv[-1], "server.json").exists():
        time.sleep(0.02)
    from palaver.journal import Journal
    journal = Journal("palaver.flood")
    for number in range(20_000):
        journal.error("flood", number=number, odd=Odd(), text="\\udcff\\u2028 and a long text " * 20)
        logging.getLogger("uvicorn.error").error("%d of %s", "not a number")
        print("flood", file=sys.stderr)

threading.Thread(target=flood, daemon=True).start()
main()
"""


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def palaver_process(data: Path, stdout: int, stderr: int) -> AsyncIterator[int]:
    """`palaver serve` with these descriptors, which its journal is flooded through. Its port, once it answers."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", FLOODING, "serve", "--no-open", "--port", str(port), "--data", str(data)),
        cwd=data.parent,
        env={"PATH": os.environ["PATH"], "HOME": str(data.parent), "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
    )
    try:
        await until_answering(port)
        yield port
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), STOP_S + START_S) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def until_answering(port: int) -> None:
    async with asyncio.timeout(START_S), http_client(f"http://127.0.0.1:{port}") as http:
        while True:
            try:
                assert (await http.get("/api/health")).status_code == 200
            except OSError:
                pass
            except Exception as failure:
                if "connect" not in type(failure).__name__.lower():
                    raise
            else:
                return
            await asyncio.sleep(0.1)


async def is_refused(http: httpx.AsyncClient) -> bool:
    try:
        return (await http.get("/api/agents")).status_code == 401
    except httpx.TransportError:
        return False  # It was under way when the token lost its right: the next request is answered.


async def uses(data: Path, port: int) -> None:
    """A conversation is made, and a token that is rotated meanwhile is refused."""
    old = (data / "token").read_text().strip()
    url = f"http://127.0.0.1:{port}"
    async with http_client(url, {"Authorization": f"Bearer {old}"}) as http:
        assert (await http.post("/api/conversations", json={"title": "Tides"})).status_code == 201
        (data / "tokens.new").write_text("n" * 43 + "\n")
        (data / "tokens.new").replace(data / "token")
        async with asyncio.timeout(WAIT_S):
            while not await is_refused(http):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
    async with http_client(url, {"Authorization": "Bearer " + "n" * 43}) as http:
        assert (await http.get("/api/agents")).status_code == 200


async def test_server_whose_output_nobody_reads_goes_on(tmp_path: Path) -> None:
    """A supervisor that holds the pipes and stopped reading: both are full before the start."""
    ours, theirs = os.pipe()
    fcntl.fcntl(theirs, fcntl.F_SETFL, os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(theirs, b"x" * 4096)
    fcntl.fcntl(theirs, fcntl.F_SETFL, 0)
    try:
        async with palaver_process(tmp_path / "data", theirs, theirs) as port:
            await uses(tmp_path / "data", port)
    finally:
        os.close(ours)
        os.close(theirs)


async def test_server_whose_reader_is_gone_goes_on(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        async with palaver_process(tmp_path / "data", theirs, theirs) as port:
            await uses(tmp_path / "data", port)
    finally:
        os.close(theirs)


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs a device that is always full")
async def test_server_whose_log_is_on_a_full_disk_goes_on(tmp_path: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        async with palaver_process(tmp_path / "data", full, full) as port:
            await uses(tmp_path / "data", port)
    finally:
        os.close(full)


async def test_server_without_output_at_all_goes_on(tmp_path: Path) -> None:
    """Closed descriptors: a file that the server opens may get their numbers, and must not get its lines."""
    port = free_port()
    command = (
        f"exec {sys.executable} -c 'from palaver.cli.main import main; main()' serve --no-open --port {port} "
        f"--data {tmp_path / 'data'} >&- 2>&-"
    )
    process = await asyncio.create_subprocess_shell(command, cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)})
    try:
        await until_answering(port)
        await uses(tmp_path / "data", port)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait_for(process.wait(), STOP_S + START_S)
    assert process.returncode == 0


async def test_reader_that_comes_back_is_told_how_much_it_missed(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    try:
        async with palaver_process(tmp_path / "data", theirs, theirs) as port:
            await uses(tmp_path / "data", port)
            os.set_blocking(ours, False)
            read = b""
            until = time.monotonic() + WAIT_S
            while b"were lost" not in read and time.monotonic() < until:
                try:
                    read += os.read(ours, 1 << 16)
                except BlockingIOError:
                    await asyncio.sleep(0.02)
    finally:
        os.close(ours)
        os.close(theirs)

    assert b"more were lost" in read
    assert b"cannot be shown" in read or b"<Odd: RuntimeError>" in read
