"""The page of this face does what it says."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from palaver.faces.socket.calls import ERROR_CODES
from palaver.faces.socket.client_frames import KINDS
from tests.flows.engine import engine
from tests.flows.faces.documented import DOCS, examples
from tests.flows.served import WAIT_S

pytestmark = pytest.mark.anyio


async def test_example_of_the_page_is_answered_and_replayed(tmp_path: Path) -> None:
    (example,) = examples("socket.md", "python")
    async with engine(tmp_path) as work:
        environment = {"PATH": os.environ["PATH"], "PALAVER_URL": work.server.url, "TOKEN": work.server.token}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", example, env=environment, cwd=tmp_path, stdout=-1, stderr=-1
        )
        async with asyncio.timeout(WAIT_S):
            out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    lines = out.decode().splitlines()
    assert lines[0] == "session_ready "
    assert "".join(line.removeprefix("text_delta ") for line in lines if line.startswith("text_delta ")) != ""
    assert lines[-2] == "text_done "
    assert int(lines[-1].split()[0]) > 3


def test_page_names_every_frame_a_client_may_say_and_every_code() -> None:
    page = (DOCS / "socket.md").read_text()
    named = set(re.findall(r"`([a-z_]+)`", page))
    assert {str(kind) for kind in KINDS} <= named
    assert {*ERROR_CODES.values(), "tool_error"} <= named
