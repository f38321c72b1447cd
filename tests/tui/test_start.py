"""Starting a server in the background: it answers, it goes on without its terminal, it ends when told; a failure is said."""

import os
import sys
from pathlib import Path

import pytest

from palaver.errors import ConfigurationError
from palaver.tui.start import is_served, start_server
from tests.browser.served import free_port


def serve(data: Path, port: int) -> list[str]:
    return [sys.executable, "-m", "palaver", "serve", "--no-open", "--port", str(port), "--data", str(data)]


async def test_server_is_started_answers_and_is_stopped(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    assert not await is_served(url)
    started = await start_server(serve(tmp_path / "data", port), tmp_path / "server.log", lambda: url)
    try:
        assert await is_served(url)
        # A session of its own: what ends with the terminal's does not end it.
        assert os.getsid(started.process.pid) == started.process.pid
    finally:
        await started.stop()
    assert started.process.poll() is not None
    assert not await is_served(url)


async def test_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('palaver: Port 8420 is in use.'); raise SystemExit(1)"]
    with pytest.raises(ConfigurationError, match=r"The server did not start\. Port 8420 is in use\."):
        await start_server(command, tmp_path / "server.log", lambda: "http://127.0.0.1:9")


async def test_server_that_is_never_ready_is_given_up(tmp_path: Path) -> None:
    slow = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(ConfigurationError, match="was not ready within 1 seconds"):
        await start_server(slow, tmp_path / "server.log", lambda: "http://127.0.0.1:9", ready_s=1.0)
