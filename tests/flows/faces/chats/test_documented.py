"""The page of this face does what it says."""

from pathlib import Path

import msgspec
import pytest

from palaver.faces.chats.commands import Asked
from tests.flows.engine import engine
from tests.flows.faces.documented import DOCS, examples, run_shell

pytestmark = pytest.mark.anyio


async def test_example_of_the_page_is_accepted_and_followed_to_its_answer(tmp_path: Path) -> None:
    (example,) = examples("chats.md")
    async with engine(tmp_path) as work:
        printed = await run_shell(example, work.server, tmp_path)
    assert printed.startswith('{"status":"accepted"}')
    assert '"type":"snapshot"' in printed
    assert "event:" not in printed
    assert "You said: What is in this folder?" in printed


def test_every_command_is_on_the_page() -> None:
    page = (DOCS / "chats.md").read_text()
    schema = msgspec.json.schema(Asked)
    words = [
        shape["properties"]["type"]["enum"][0] for shape in schema["$defs"].values() if "type" in shape["properties"]
    ]
    told = [word for word in words if word.startswith(("text", "image_url"))]
    assert [word for word in words if f"`{word}" not in page and word not in told] == []
    assert len(words) > 15
