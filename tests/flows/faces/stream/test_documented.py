"""The page of this face does what it says."""

from pathlib import Path

import pytest

from tests.flows.engine import engine
from tests.flows.faces.documented import examples, run_shell

pytestmark = pytest.mark.anyio


async def test_example_of_the_page_is_answered_through_done(tmp_path: Path) -> None:
    (example,) = examples("stream.md")
    async with engine(tmp_path) as work:
        printed = await run_shell(example, work.server, tmp_path)
    assert printed.rstrip().splitlines()[-1].startswith('data: {"sessionId":')
    assert "What is in this folder?" in printed
