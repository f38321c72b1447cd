"""The page of this face does what it says."""

from pathlib import Path

from tests.flows.engine import engine
from tests.flows.faces.documented import examples, run_shell


async def test_example_of_the_page_hears_the_answer(tmp_path: Path) -> None:
    (example,) = examples("bus.md")
    async with engine(tmp_path) as work:
        printed = await run_shell(example, work.server, tmp_path)
    lines = printed.splitlines()
    assert '"status":"started"' in printed
    assert [line for line in lines if line.startswith("data: ") and '"kind":"message"' in line]
    assert not [line for line in lines if line.startswith("event:")]
    assert '"outcome":"none"' in lines[-1]
