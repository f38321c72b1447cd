"""A folder swapped for a link to the outside, under every file tool: before it runs and while it runs."""

import asyncio
import ctypes
import itertools
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from palaver.tools.base import Proposal, Tool, ToolResult
from palaver.tools.files.edit import Edit
from palaver.tools.files.glob import Glob
from palaver.tools.files.grep import Grep
from palaver.tools.files.list import List
from palaver.tools.files.patch import Patch
from palaver.tools.files.read import Read
from palaver.tools.files.write import Write
from palaver.tools.toolbox import Toolbox
from tests.unit.tools.workshop import Workshop

pytestmark = pytest.mark.anyio

LIMIT_S = 60.0
SECRET = "only-outside"
"""Stands in a file's text and in a file's name outside, and nowhere else."""
ROUNDS = 150
HERE, EXCHANGE = -100, 2
"""For renameat2: relative to the working folder; both names keep existing."""
SEARCH_ROUNDS = 12
"""A search starts a program."""


def patched(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


@dataclass(frozen=True)
class Case:
    tool: Tool
    arguments: dict[str, Any]
    rounds: int = ROUNDS


CASES = {
    "read": Case(Read(), {"path": "d/file.txt"}),
    "list": Case(List(), {"path": "d"}),
    "glob": Case(Glob(), {"pattern": "d/**"}, SEARCH_ROUNDS),
    "grep": Case(Grep(), {"pattern": "line|outside", "path": "d"}, SEARCH_ROUNDS),
    "edit": Case(Edit(), {"path": "d/file.txt", "old": "line", "new": "line"[::-1]}),
    "edit a shared line": Case(Edit(), {"path": "d/file.txt", "old": "shared", "new": "changed"}),
    "write": Case(Write(), {"path": "d/file.txt", "content": "written\n"}),
    "write new": Case(Write(), {"path": "d/new/deep.txt", "content": "written\n"}),
    "patch": Case(Patch(), {"patch": patched("*** Update File: d/file.txt", "-shared", "+changed")}),
    "patch new": Case(Patch(), {"patch": patched("*** Add File: d/added.txt", "+written")}),
    "patch delete": Case(Patch(), {"patch": patched("*** Delete File: d/file.txt")}),
    "patch move": Case(Patch(), {"patch": patched("*** Update File: d/file.txt", "*** Move to: moved.txt")}),
    "patch move into": Case(Patch(), {"patch": patched("*** Update File: e.txt", "*** Move to: d/moved.txt")}),
}


@pytest.fixture
def outside(root: Path) -> Path:
    folder = root.parent / "outside"
    (folder / "file.txt").write_text(f"shared\n{SECRET}\nline\n")
    (folder / f"{SECRET}.txt").write_text("line\n")
    return folder


@pytest.fixture
def unchanged(outside: Path) -> Iterator[None]:
    def seen() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in sorted(outside.rglob("*")) if path.is_file()}

    before = seen()
    yield
    assert seen() == before


def fill(root: Path) -> None:
    """The folder as it belongs, and a file beside it."""
    (root / "real").mkdir(exist_ok=True)
    (root / "real/file.txt").write_text("shared\nline\n")
    (root / "e.txt").write_text("moved\n")
    for path in ("moved.txt", "real/moved.txt", "real/added.txt", "real/new/deep.txt"):
        (root / path).unlink(missing_ok=True)


def point(root: Path, target: str) -> None:
    """Let `d` be a link to `target`, at once."""
    (root / "d.next").symlink_to(target)
    (root / "d.next").rename(root / "d")


class Swapper(threading.Thread):
    """Exchanges the folder `d` and a link to the outside as fast as it can: at every moment one of them stands there."""

    def __init__(self, root: Path) -> None:
        super().__init__(daemon=True)
        self._pair = [os.fsencode(root / "d"), os.fsencode(root / "link")]
        self._told = threading.Event()
        self.swaps = 0

    def run(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        while not self._told.is_set():
            self.swaps += libc.renameat2(HERE, self._pair[0], HERE, self._pair[1], EXCHANGE) == 0

    def stop(self) -> None:
        self._told.set()
        self.join(LIMIT_S)


def tells_nothing(result: ToolResult, workshop: Workshop) -> None:
    diffs = "".join(change.diff or "" for change in result.changes)
    said = [result.output, result.error or "", diffs, *(blob.decode() for blob in workshop.blobs)]
    assert SECRET not in "\n".join(said)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.usefixtures("unchanged")
async def test_folder_swapped_between_asking_and_running_never_leads_outside(
    case: Case, root: Path, workshop: Workshop
) -> None:
    fill(root)
    point(root, "real")
    box = Toolbox({case.tool.spec.name: case.tool})
    proposal = await box.propose(case.tool.spec.name, case.arguments, root)
    if isinstance(proposal, Proposal):
        point(root, "../outside")
        result = await box.run(case.tool.spec.name, case.arguments, workshop.place, proposal.hash)
        assert not result.ok
        tells_nothing(result, workshop)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two names at once")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.usefixtures("unchanged")
async def test_folder_swapped_all_the_time_never_leads_outside(case: Case, root: Path, workshop: Workshop) -> None:
    fill(root)
    (root / "real").rename(root / "d")
    (root / "link").symlink_to("../outside")
    swapper = Swapper(root)
    swapper.start()
    try:
        async with asyncio.timeout(LIMIT_S):
            rounds = 0
            # A busy machine lets the swapper come to its turn late.
            while rounds < case.rounds or swapper.swaps <= case.rounds:
                rounds += 1
                proposal = await asyncio.to_thread(case.tool.propose, case.arguments, root)
                if isinstance(proposal, Proposal):
                    assert SECRET not in (proposal.preview or "")
                tells_nothing(await case.tool.run(case.arguments, workshop.place), workshop)
    finally:
        swapper.stop()


@pytest.mark.parametrize("looks", [1, 2, 3, 4])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.usefixtures("unchanged")
async def test_folder_swapped_right_after_a_look_never_leads_outside(
    case: Case, looks: int, root: Path, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst moment, every time: between looking at the folder and opening it, the first time or a later one."""
    fill(root)
    (root / "real").rename(root / "d")
    look = os.readlink
    counted = itertools.count(1)

    def look_and_swap(name: str, **where: Any) -> str:
        try:
            return look(name, **where)
        finally:
            if name == "d" and next(counted) == looks:
                (root / "d").rename(root / "real")
                (root / "d").symlink_to("../outside")

    monkeypatch.setattr(os, "readlink", look_and_swap)
    tells_nothing(await case.tool.run(case.arguments, workshop.place), workshop)
