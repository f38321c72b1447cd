"""The page of this face does what it says."""

import asyncio
import os
import sys
from pathlib import Path

from palaver.backends.script.script import Say
from palaver.faces.inbox.tools import TOOLS
from tests.flows.faces.documented import DOCS, examples
from tests.flows.served import WAIT_S, serving


async def test_example_of_the_page_posts_and_reads_the_answer(tmp_path: Path) -> None:
    (example,) = examples("inbox.md", "python")
    async with serving(tmp_path, [Say("It is live.")]) as served:
        conversation = await served.create()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", example),
            env={
                "PATH": os.environ["PATH"],
                "PALAVER_URL": served.url,
                "TOKEN": served.token,
                "CONVERSATION": conversation,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(3 * WAIT_S):
            out, err = await process.communicate()
    assert (process.returncode, out.decode()) == (0, "assistant It is live.\n"), err.decode()


def test_page_names_every_tool() -> None:
    page = (DOCS / "inbox.md").read_text()
    assert [tool.name for tool in TOOLS if f"`{tool.name}`" not in page] == []
