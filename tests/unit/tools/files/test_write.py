"""The tool `write`."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from palaver.tools.files.list import List
from palaver.tools.files.write import Write
from tests.unit.tools.workshop import Workshop

pytestmark = pytest.mark.anyio


async def test_new_file_is_created_with_its_folders(workshop: Workshop, root: Path) -> None:
    result = await workshop.run(Write(), path="src/new/a.py", content="x = 1\n")
    assert (result.ok, result.output) == (True, "Created src/new/a.py (6 bytes).")
    assert (root / "src/new/a.py").read_text() == "x = 1\n"
    assert [(change.path, change.kind, change.additions) for change in result.changes] == [
        ("src/new/a.py", "created", 1)
    ]


async def test_existing_file_is_replaced(workshop: Workshop, root: Path) -> None:
    (root / "a.py").write_text("old\n")
    result = await workshop.run(Write(), path="a.py", content="new\n")
    assert (result.output, result.changes[0].deletions) == ("Replaced a.py (4 bytes).", 1)
    assert (root / "a.py").read_text() == "new\n"


async def test_words_that_stand_for_a_secret_are_not_written_over_it(workshop: Workshop, root: Path) -> None:
    (root / ".env").write_text("PORT=1\nTOKEN=abc\n")
    result = await workshop.run(Write(), path=".env", content="PORT=2\nTOKEN=[redacted secret]\n")
    assert (result.ok, result.error_code) == (False, "invalid")
    assert (root / ".env").read_text() == "PORT=1\nTOKEN=abc\n"
    (root / "notes").write_text("It says [redacted secret].\n")
    assert (await workshop.run(Write(), path="notes", content="It said [redacted secret].\n")).ok


@pytest.mark.parametrize(
    ("path", "code"), [("../a", "forbidden"), (".git/config", "forbidden"), (".", "invalid"), ("", "invalid")]
)
async def test_place_that_may_not_be_written_is_refused(path: str, code: str, workshop: Workshop) -> None:
    result = await workshop.run(Write(), path=path, content="x")
    assert (result.ok, result.error_code) == (False, code)
    assert (await workshop.run(List())).output == "[the folder is empty]"


def test_proposal_shows_the_new_file_and_makes_nothing(workshop: Workshop, root: Path) -> None:
    proposal = workshop.propose(Write(), path="new/a.txt", content="hello\n")
    assert proposal.title == "Create new/a.txt"
    assert proposal.preview == "--- /dev/null\n+++ b/new/a.txt\n@@ -0,0 +1 @@\n+hello\n"
    assert list(root.iterdir()) == []


def test_proposal_is_bound_to_whether_the_file_is_there(workshop: Workshop, root: Path) -> None:
    before = workshop.propose(Write(), path="a.txt", content="hello\n")
    (root / "a.txt").touch()
    after = workshop.propose(Write(), path="a.txt", content="hello\n")
    assert (before.title, after.title) == ("Create a.txt", "Replace a.txt")
    assert before.hash != after.hash


async def test_cancelled_write_is_over_before_the_cancellation_goes_on(
    workshop: Workshop, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    writing, go_on = asyncio.Event(), threading.Event()
    sync = os.fsync

    def slow_sync(descriptor: int) -> None:
        loop.call_soon_threadsafe(writing.set)
        assert go_on.wait(timeout=10)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", slow_sync)
    task = asyncio.create_task(workshop.run(Write(), path="a.txt", content="whole"))
    async with asyncio.timeout(10):
        await writing.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (root / "a.txt").read_text() == "whole"
