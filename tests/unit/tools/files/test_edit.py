"""The tool `edit`: exactly one passage, or nothing and a sentence on what to do."""

from pathlib import Path

import pytest

from palaver.tools.base import ToolResult
from palaver.tools.files.edit import Edit
from tests.unit.tools.workshop import Workshop

pytestmark = pytest.mark.anyio


async def test_passage_is_replaced_and_the_change_reported(workshop: Workshop, root: Path) -> None:
    (root / "a.py").write_text("x = 1\ny = 2\n")
    result = await workshop.run(Edit(), path="a.py", old="x = 1", new="x = 3")
    assert (result.ok, result.output) == (True, "Edited a.py: 1 lines added, 1 removed.")
    assert (root / "a.py").read_text() == "x = 3\ny = 2\n"
    assert [(change.path, change.kind) for change in result.changes] == [("a.py", "modified")]


async def test_passage_that_is_not_there_changes_nothing(workshop: Workshop, root: Path) -> None:
    (root / "a.py").write_text("x = 1\n")
    result = await workshop.run(Edit(), path="a.py", old="x=1", new="x=2")
    assert (result.ok, result.error_code) == (False, "not_found")
    assert "Read the file again and copy the passage exactly" in (result.error or "")
    assert (root / "a.py").read_text() == "x = 1\n"


async def test_passage_that_occurs_twice_changes_nothing_and_says_where(workshop: Workshop, root: Path) -> None:
    (root / "a.py").write_text("x\ny\nx\n")
    result = await workshop.run(Edit(), path="a.py", old="x", new="z")
    assert (result.ok, result.error_code) == (False, "conflict")
    assert "(lines 1, 3). Add lines around it until it is unique." in (result.error or "")
    assert (root / "a.py").read_text() == "x\ny\nx\n"


async def test_overlapping_occurrences_count_as_two(workshop: Workshop, root: Path) -> None:
    (root / "a").write_text("aaa")
    assert (await workshop.run(Edit(), path="a", old="aa", new="b")).error_code == "conflict"


async def test_windows_line_ends_are_kept(workshop: Workshop, root: Path) -> None:
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    result = await workshop.run(Edit(), path="a.txt", old="one\ntwo", new="1\n2")
    assert result.ok
    assert (root / "a.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"


async def test_bytes_around_the_passage_are_untouched(workshop: Workshop, root: Path) -> None:
    before = "\ufeffa\x0c\u2028\x85 b\r\n\n  c".encode()
    (root / "a.txt").write_bytes(before)
    assert (await workshop.run(Edit(), path="a.txt", old=" b", new=" B")).ok
    assert (root / "a.txt").read_bytes() == before.replace(b" b", b" B")


@pytest.mark.parametrize(
    ("content", "old", "new", "error"),
    [
        (b"caf\xe9", "caf", "tea", "not UTF-8 text"),
        (b"x", "x", "x", "the same"),
        (b"x", "", "y", "length >= 1"),
    ],
)
async def test_edit_that_makes_no_sense_is_refused(
    content: bytes, old: str, new: str, error: str, workshop: Workshop, root: Path
) -> None:
    (root / "a").write_bytes(content)
    result = await workshop.run(Edit(), path="a", old=old, new=new)
    assert (result.ok, error in (result.error or "")) == (False, True)
    assert (root / "a").read_bytes() == content


def test_proposal_shows_the_diff_and_is_bound_to_the_content(workshop: Workshop, root: Path) -> None:
    (root / "a.py").write_text("x = 1\n")
    call = {"path": "a.py", "old": "x = 1", "new": "x = '\u202e'"}
    proposal = workshop.propose(Edit(), **call)
    assert (proposal.title, proposal.match, proposal.reads_only) == ("Edit a.py", "a.py", False)
    assert proposal.preview == "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = '⟨202E⟩'\n"
    assert workshop.propose(Edit(), **call).hash == proposal.hash
    (root / "a.py").write_text("x = 1\n\n")
    assert workshop.propose(Edit(), **call).hash != proposal.hash


def test_proposal_of_an_impossible_edit_is_its_failed_result(workshop: Workshop, root: Path) -> None:
    refused = Edit().propose({"path": "gone", "old": "a", "new": "b"}, root)
    assert isinstance(refused, ToolResult)
    assert (refused.ok, refused.error_code) == (False, "not_found")
