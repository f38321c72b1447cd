"""The tool `patch`: both forms it reads, all files or none, and words that say which hunk failed."""

import difflib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import CallerError
from palaver.tools.base import ToolResult
from palaver.tools.files.hunks import apply
from palaver.tools.files.patch import Patch
from palaver.tools.files.patch_text import files_of
from tests.unit.tools.workshop import Workshop

pytestmark = pytest.mark.anyio

Fill = Callable[[dict[str, str]], None]

GREETING = "def greet(name):\n    print('hello')\n    return name\n\n\ndef part():\n    print('bye')\n    return None\n"


def begin(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_many_files_are_changed_at_once_and_each_is_reported(workshop: Workshop, root: Path, fill: Fill) -> None:
    fill({"src/a.py": GREETING, "old.txt": "old\n", "name.txt": "one\ntwo\n"})
    (root / "name.txt").chmod(0o755)
    result = await workshop.run(
        Patch(),
        patch=begin(
            "*** Update File: src/a.py",
            "@@ def part():",
            "-    print('bye')",
            "+    print('good bye')",
            "     return None",
            "*** Add File: new/b.txt",
            "+hello",
            "*** Delete File: old.txt",
            "*** Update File: name.txt",
            "*** Move to: moved/name.txt",
            " one",
            "-two",
            "+2",
        ),
    )
    assert result.ok, result.error
    assert (root / "src/a.py").read_text() == GREETING.replace("'bye'", "'good bye'")
    assert (root / "new/b.txt").read_text() == "hello\n"
    assert not (root / "old.txt").exists()
    assert not (root / "name.txt").exists()
    assert (root / "moved/name.txt").read_text() == "one\n2\n"
    assert (root / "moved/name.txt").stat().st_mode & 0o777 == 0o755
    assert [(change.path, change.kind, change.additions, change.deletions) for change in result.changes] == [
        ("src/a.py", "modified", 1, 1),
        ("new/b.txt", "created", 1, 0),
        ("old.txt", "deleted", 0, 1),
        ("moved/name.txt", "renamed", 1, 1),
    ]
    assert "--- a/name.txt\n+++ b/moved/name.txt\n" in (result.changes[3].diff or "")


async def test_unified_diff_of_git_is_applied(workshop: Workshop, root: Path, fill: Fill) -> None:
    fill({"a.py": GREETING, "gone.txt": "x\n", "here.txt": "same\n"})
    diff = """commit 0123
    A message that says --- nothing

diff --git a/a.py b/a.py
index 123..456 100644
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@ something
 def greet(name):
-    print('hello')
+    print('hi')
     return name
@@ -6,3 +6,4 @@
 def part():
     print('bye')
+    print('really')
     return None
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
index 123..000
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/here.txt b/there.txt
similarity index 100%
rename from here.txt
rename to there.txt
diff --git a/new.txt b/new.txt
new file mode 100644
--- /dev/null
+++ b/new.txt
@@ -0,0 +1,2 @@
+1
+2
\\ No newline at end of file
"""
    result = await workshop.run(Patch(), patch=diff)
    assert result.ok, result.error
    assert (root / "a.py").read_text() == GREETING.replace("hello", "hi").replace(
        "    print('bye')\n", "    print('bye')\n    print('really')\n"
    )
    assert (root / "new.txt").read_text() == "1\n2"
    assert (root / "there.txt").read_text() == "same\n"
    assert sorted(change.kind for change in result.changes) == ["created", "deleted", "modified", "renamed"]


def test_proposal_shows_one_diff_of_all_files_and_is_bound_to_each(workshop: Workshop, root: Path, fill: Fill) -> None:
    fill({"a.txt": "1\n", "b.txt": "2\n"})
    patch = begin("*** Update File: a.txt", "-1", "+one", "*** Update File: b.txt", "*** Move to: c.txt", "-2", "+two")
    first = workshop.propose(Patch(), patch=patch)
    assert first.title == "Patch 2 files: a.txt, c.txt"
    assert first.preview == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+one\n--- a/b.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-2\n+two\n"
    )
    assert first.writes == ("a.txt", "b.txt", "c.txt")
    assert (root / "a.txt").read_text() == "1\n"
    (root / "b.txt").write_text("2\nmore\n")
    assert workshop.propose(Patch(), patch=patch).hash != first.hash


@pytest.mark.parametrize("failing", ["*** Update File: b.txt\n-not there\n+x", "*** Delete File: missing.txt"])
async def test_patch_with_one_wrong_part_changes_nothing(
    failing: str, workshop: Workshop, root: Path, fill: Fill
) -> None:
    fill({"a.txt": "1\n", "b.txt": "2\n"})
    result = await workshop.run(Patch(), patch=begin("*** Update File: a.txt", "-1", "+one", failing))
    assert (result.ok, result.error_code, result.changes) == (False, "not_found", ())
    assert ((root / "a.txt").read_text(), (root / "b.txt").read_text()) == ("1\n", "2\n")


async def test_files_written_before_a_failure_are_put_back(
    workshop: Workshop, root: Path, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill({"a.txt": "1\n", "b.txt": "2\n", "c.txt": "3\n", "d.txt": "4\n"})
    (root / "b.txt").chmod(0o600)
    real = os.replace

    def replace(source: str, target: str, **folders: int) -> None:
        if target == "d.txt":
            raise OSError(28, "No space left on device")
        real(source, target, **folders)

    monkeypatch.setattr(os, "replace", replace)
    patch = begin(
        *("*** Update File: a.txt", "-1", "+one", "*** Delete File: b.txt", "*** Add File: new.txt", "+n"),
        *("*** Update File: c.txt", "*** Move to: e.txt", "*** Update File: d.txt", "-4", "+four"),
    )
    result = await workshop.run(Patch(), patch=patch)
    assert (result.ok, result.error) == (False, "d.txt: No space left on device.")
    assert names(root) == ["a.txt", "b.txt", "c.txt", "d.txt"]
    assert [(root / f"{name}.txt").read_text() for name in "abcd"] == ["1\n", "2\n", "3\n", "4\n"]
    assert (root / "b.txt").stat().st_mode & 0o777 == 0o600


def test_failed_hunk_is_named_with_what_was_expected_and_what_stands_there() -> None:
    files = files_of(begin("*** Update File: a.py", " def greet(name):", "-    print('hallo')", "+    print('hi')"))
    with pytest.raises(CallerError) as failure:
        apply(GREETING, files[0].hunks, "a.py")
    assert failure.value.message == (
        "Hunk 1 of a.py does not fit: these lines are not in the file:\n"
        "def greet(name):\n    print('hallo')\n"
        "Most alike is what stands at line 1:\ndef greet(name):\n    print('hello')\nCopy the lines exactly as they are."
    )


def test_hunk_that_fits_twice_is_refused_until_something_tells_the_places_apart() -> None:
    text = "class A:\n    x = 1\nclass B:\n    x = 1\n"
    with pytest.raises(CallerError, match=r"fits in more than one place \(lines 2, 4\)"):
        apply(text, files_of(begin("*** Update File: a", "-    x = 1", "+    x = 2"))[0].hunks, "a")
    anchored = files_of(begin("*** Update File: a", "@@ class B:", "-    x = 1", "+    x = 2"))
    assert apply(text, anchored[0].hunks, "a") == "class A:\n    x = 1\nclass B:\n    x = 2\n"
    numbered = files_of("--- a/a\n+++ b/a\n@@ -4 +4 @@\n-    x = 1\n+    x = 2\n")
    assert apply(text, numbered[0].hunks, "a") == "class A:\n    x = 1\nclass B:\n    x = 2\n"


def test_white_space_that_differs_does_not_matter_and_the_files_own_is_kept() -> None:
    trailing = "def f():  \n\treturn 1\t\n"
    patch = files_of(begin("*** Update File: a", " def f():", "-\treturn 1", "+\treturn 2"))
    assert apply(trailing, patch[0].hunks, "a") == "def f():  \n\treturn 2\n"
    indented = "class A:\n        def f(self):\n            return 1\n"
    patch = files_of(begin("*** Update File: a", " def f(self):", "-    return 1", "+    x = 1", "+    return x"))
    assert apply(indented, patch[0].hunks, "a") == (
        "class A:\n        def f(self):\n            x = 1\n            return x\n"
    )


def test_windows_line_ends_are_kept() -> None:
    patch = files_of(begin("*** Update File: a", " one", "-two", "+2", "+2b"))
    assert apply("one\r\ntwo\r\nthree\r\n", patch[0].hunks, "a") == "one\r\n2\r\n2b\r\nthree\r\n"


def test_end_of_file_is_meant_where_it_is_said() -> None:
    text = "end\nmiddle\nend\n"
    patch = files_of(begin("*** Update File: a", "@@", "-end", "+END", "*** End of File"))
    assert apply(text, patch[0].hunks, "a") == "end\nmiddle\nEND\n"
    adding = files_of(begin("*** Update File: a", "+more"))
    assert apply("no newline", adding[0].hunks, "a") == "no newline\nmore\n"


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ("hello", "changes no file"),
        ("*** Begin Patch\n*** Update File: a\n-x\n+y", "may have been cut"),
        ("*** Begin Patch\nhello\n*** End Patch", "not 'hello'"),
        ("*** Begin Patch\n*** Add File: a\nhello\n*** End Patch", "must begin with +"),
        ("*** Begin Patch\n*** Update File: a\nhello\n*** End Patch", "begins with a space, + or -"),
        ("@@ -1 +1 @@\n-a\n+b\n", "does not follow the names"),
        ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n", "symbolic link"),
        ("diff --git a/l b/l\nGIT binary patch\nliteral 1\n", "binary"),
    ],
)
async def test_text_that_is_no_patch_is_refused_in_words(patch: str, says: str, workshop: Workshop) -> None:
    result = await workshop.run(Patch(), patch=patch)
    assert (result.ok, result.error_code) == (False, "invalid")
    assert says in (result.error or "")


@pytest.mark.parametrize(
    "path", ["../outside/secret.txt", ".git/hooks/pre-commit", ".palaver/agents/a.md", "/etc/passwd", "out/secret.txt"]
)
@pytest.mark.parametrize("how", ["add", "move", "delete"])
async def test_place_outside_or_protected_is_refused(
    path: str, how: str, workshop: Workshop, root: Path, fill: Fill
) -> None:
    fill({"a.txt": "1\n"})
    (root / "out").symlink_to("../outside")
    body = {
        "add": ("*** Add File: a.md", f"*** Add File: {path}", "+x"),
        "move": ("*** Update File: a.txt", f"*** Move to: {path}"),
        "delete": (f"*** Delete File: {path}",),
    }[how]
    result = await workshop.run(Patch(), patch=begin(*body))
    assert (result.ok, result.error_code) == (False, "forbidden")
    assert isinstance(Patch().propose({"patch": begin(*body)}, root), ToolResult)
    assert (root.parent / "outside/secret.txt").read_text() == "secret"
    assert not (root / "a.md").exists()


async def test_existing_file_is_not_added_over_nor_moved_onto(workshop: Workshop, root: Path, fill: Fill) -> None:
    fill({"a.txt": "1\n", "b.txt": "2\n"})
    added = await workshop.run(Patch(), patch=begin("*** Add File: a.txt", "+x"))
    moved = await workshop.run(Patch(), patch=begin("*** Update File: a.txt", "*** Move to: b.txt"))
    assert (added.error_code, moved.error_code) == ("conflict", "conflict")
    assert ((root / "a.txt").read_text(), (root / "b.txt").read_text()) == ("1\n", "2\n")


async def test_later_part_of_a_patch_sees_the_earlier_one(workshop: Workshop, root: Path, fill: Fill) -> None:
    fill({"a.txt": "1\n2\n", "b.txt": "x\n"})
    patch = begin(
        *("*** Update File: a.txt", "-1", "+one", "*** Update File: a.txt", " one", "-2", "+two"),
        *("*** Delete File: b.txt", "*** Add File: b.txt", "+y"),
    )
    result = await workshop.run(Patch(), patch=patch)
    assert (result.ok, [change.kind for change in result.changes]) == (True, ["modified", "modified"])
    assert ((root / "a.txt").read_text(), (root / "b.txt").read_text()) == ("one\ntwo\n", "y\n")


lines = st.lists(st.sampled_from(["", "a", "b", "  c", "-- d", "++ e", "@ f", "*** g"]), max_size=30)


@given(lines, lines, st.booleans(), st.booleans())
def test_every_diff_of_two_texts_leads_from_one_to_the_other(
    before: list[str], after: list[str], old_newline: bool, new_newline: bool
) -> None:
    old = "\n".join(before) + ("\n" if before and old_newline else "")
    new = "\n".join(after) + ("\n" if after and new_newline else "")
    diff = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(old.splitlines(True), new.splitlines(True), "a/x", "b/x")
    )
    if diff:
        assert apply(old, files_of(diff)[0].hunks, "x") == new


@given(st.text("+-@* \\abc\n", max_size=200))
def test_no_text_makes_the_reader_fall_over(text: str) -> None:
    for patch in (text, begin(text), f"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n{text}"):
        try:
            for file in files_of(patch):
                apply("a\nb\nc\n", file.hunks, "x")
        except CallerError:
            pass
