"""The tool `list`."""

import os
from pathlib import Path

import pytest

from palaver.tools.files.list import ENTRY_LIMIT, List
from tests.unit.tools.workshop import Workshop

pytestmark = pytest.mark.anyio


async def test_folder_shows_folders_first_and_where_links_lead(workshop: Workshop, root: Path) -> None:
    (root / "src").mkdir()
    (root / "b.txt").touch()
    (root / ".hidden").touch()
    (root / "link").symlink_to("../outside")
    result = await workshop.run(List(), path=".")
    assert (result.ok, result.output.split("\n")) == (True, ["src/", ".hidden", "b.txt", "link -> ../outside"])


async def test_empty_folder_says_so(workshop: Workshop) -> None:
    assert (await workshop.run(List())).output == "[the folder is empty]"


async def test_folder_with_very_many_entries_is_cut(workshop: Workshop, root: Path) -> None:
    for number in range(ENTRY_LIMIT + 5):
        (root / f"{number:05}").touch()
    result = await workshop.run(List(), path=".")
    assert result.output.endswith("00999\n[… 5 more; use glob to find what you need …]")
    assert (result.truncated, result.total_lines) == (True, ENTRY_LIMIT + 5)


async def test_name_that_is_no_text_is_shown_as_well_as_possible(workshop: Workshop, root: Path) -> None:
    os.close(os.open(os.fsencode(root) + b"/\xff.txt", os.O_CREAT))
    assert (await workshop.run(List(), path=".")).output == "\ufffd.txt"


@pytest.mark.parametrize(("path", "code"), [("a.txt", "invalid"), ("gone", "not_found"), ("..", "forbidden")])
async def test_what_is_no_folder_beneath_the_root_is_refused(
    path: str, code: str, workshop: Workshop, root: Path
) -> None:
    (root / "a.txt").touch()
    result = await workshop.run(List(), path=path)
    assert (result.ok, result.error_code) == (False, code)


async def test_link_to_a_folder_outside_is_refused(workshop: Workshop, root: Path) -> None:
    (root / "link").symlink_to("../outside")
    assert (await workshop.run(List(), path="link")).error_code == "forbidden"
