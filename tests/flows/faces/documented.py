"""The examples of the documentation, run as they stand there."""

import asyncio
import os
import re
from pathlib import Path

from tests.flows.served import WAIT_S, Served

DOCS = Path(__file__).parents[3] / "docs" / "protocol"


def examples(page: str, language: str = "sh") -> list[str]:
    """The fenced blocks of a page, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


async def run_shell(example: str, server: Served, folder: Path) -> str:
    """What it prints. Only `PALAVER_URL` and `TOKEN` are set, as the page says."""
    environment = {"PATH": os.environ["PATH"], "PALAVER_URL": server.url, "TOKEN": server.token}
    process = await asyncio.create_subprocess_exec(
        "sh", "-eu", "-c", example, env=environment, cwd=folder, stdout=-1, stderr=-1
    )
    async with asyncio.timeout(WAIT_S):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()
