"""What a command did to files, compared in real git repositories."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from palaver.tools.base import ToolResult
from palaver.tools.files import changes
from palaver.tools.files.changes import Changed, ChangeWatcher
from palaver.tools.shell.sandbox import unsandboxed
from palaver.tools.shell.sandbox_level import Level
from palaver.tools.shell.temporary_folders import TemporaryFolders
from tests.levels import sandbox_of
from tests.provider.programs import programs_outside

pytestmark = pytest.mark.anyio

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
WATCHER = ChangeWatcher(unsandboxed(), TemporaryFolders())
PROGRAMS = programs_outside()


def git(root: Path, *arguments: str) -> None:
    author = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "x")
    subprocess.run(["git", *arguments], cwd=root, env={**ENVIRONMENT, **author}, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "gone.txt").write_text("bye\n")
    (tmp_path / ".gitignore").write_text("ignored/\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


async def doing(root: Path, command: Callable[[], object]) -> Changed:
    before = await WATCHER.look(root, ENVIRONMENT, PROGRAMS)
    assert before is not None
    command()
    return await WATCHER.compare(before)


def kinds(found: Changed) -> list[tuple[str, str]]:
    return [(file.path, file.kind) for file in found.files]


async def test_created_modified_and_deleted_files_are_told_with_their_diffs(root: Path) -> None:
    def command() -> None:
        (root / "a.txt").write_text("one\n2\n")
        (root / "sub").mkdir()
        (root / "sub" / "new file.txt").write_text("hello\n")
        (root / "gone.txt").unlink()
        (root / "ignored").mkdir()
        (root / "ignored" / "x").write_text("unseen")

    found = await doing(root, command)

    assert kinds(found) == [("a.txt", "modified"), ("gone.txt", "deleted"), ("sub/new file.txt", "created")]
    assert found.files[0].diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert (found.files[0].additions, found.files[0].deletions) == (1, 1)


async def test_only_what_the_command_itself_changed_is_told(root: Path) -> None:
    (root / "a.txt").write_text("one\ntwo\nmine\n")
    (root / "draft.txt").write_text("mine\n")
    (root / "staged.txt").write_text("mine\n")
    git(root, "add", "staged.txt")

    nothing = await doing(root, lambda: None)
    touched = await doing(root, lambda: os.utime(root / "draft.txt", (1, 1)))
    found = await doing(root, lambda: (root / "draft.txt").write_text("mine\nand its\n"))

    assert (nothing, touched) == (Changed(), Changed())
    assert kinds(found) == [("draft.txt", "modified")]
    assert "+and its" in (found.files[0].diff or "")
    assert "+mine" not in (found.files[0].diff or "")


async def test_undoing_a_change_is_a_change(root: Path) -> None:
    (root / "a.txt").write_text("mine\n")

    found = await doing(root, lambda: git(root, "checkout", "-q", "--", "a.txt"))

    assert kinds(found) == [("a.txt", "modified")]
    assert "-mine" in (found.files[0].diff or "")


async def test_what_was_committed_meanwhile_is_told_and_a_bare_commit_is_nothing(root: Path) -> None:
    (root / "a.txt").write_text("mine\n")
    commit_only = await doing(root, lambda: git(root, "commit", "-qam", "mine"))

    def command() -> None:
        (root / "a.txt").write_text("theirs\n")
        (root / "b.txt").write_text("new\n")
        git(root, "add", ".")
        git(root, "commit", "-qm", "theirs")

    found = await doing(root, command)

    assert commit_only == Changed()
    assert kinds(found) == [("a.txt", "modified"), ("b.txt", "created")]
    assert "-mine\n+theirs" in (found.files[0].diff or "")


async def test_renamed_file_is_one_that_went_and_one_that_came(root: Path) -> None:
    found = await doing(root, lambda: git(root, "mv", "a.txt", "b.txt"))

    assert kinds(found) == [("a.txt", "deleted"), ("b.txt", "created")]


async def test_large_binary_and_linked_files_are_told_without_a_diff(root: Path) -> None:
    (root / "big.txt").write_bytes(b"x" * (1 << 20))
    (root / "link").symlink_to("/etc/hostname")

    def command() -> None:
        (root / "big.txt").write_bytes(b"y" * (1 << 20))
        (root / "image").write_bytes(b"\0\1\2")
        (root / "link").unlink()
        (root / "link").symlink_to("/etc/passwd")

    found = await doing(root, command)

    assert kinds(found) == [("big.txt", "modified"), ("image", "created"), ("link", "modified")]
    assert [file.diff for file in found.files] == [None, None, None]


async def test_more_files_than_are_shown_are_counted(root: Path) -> None:
    def command() -> None:
        for number in range(130):
            (root / f"{number:03}.txt").write_text("x" * 3_000 + "\n")

    found = await doing(root, command)

    assert (len(found.files), found.truncated_count) == (100, 30)
    assert 0 < sum(len(file.diff or "") for file in found.files) <= changes.DIFF_BYTES


async def test_result_of_a_call_counts_the_files_it_leaves_out(root: Path) -> None:
    async def run() -> ToolResult:
        for number in range(130):
            (root / f"{number:03}.txt").write_text("x\n")
        return ToolResult(ok=True)

    result = await WATCHER.run(root, ENVIRONMENT, PROGRAMS, run)
    assert (len(result.changes), result.changes_left_out) == (100, 30)


async def test_name_that_is_no_text_can_still_be_said(root: Path) -> None:
    found = await doing(root, lambda: (root / os.fsdecode(b"\xff.txt")).write_text("x\n"))

    assert msgspec.json.encode(found.files)
    assert found.files[0].kind == "created"


async def test_secret_in_a_changed_file_is_struck_out(root: Path) -> None:
    before = await WATCHER.look(root, {**ENVIRONMENT, "SERVICE_API_KEY": "hunter2hunter2"}, PROGRAMS)
    (root / "a.txt").write_text("hunter2hunter2\n")
    found = await WATCHER.compare(before)

    assert "hunter2" not in (found.files[0].diff or "")
    assert "[redacted SERVICE_API_KEY]" in (found.files[0].diff or "")


async def test_result_of_a_call_carries_its_changes(root: Path) -> None:
    async def run() -> ToolResult:
        (root / "a.txt").write_text("x\n")
        return ToolResult(ok=True, output="done")

    result = await WATCHER.run(root, ENVIRONMENT, PROGRAMS, run)

    assert (result.output, [file.path for file in result.changes]) == ("done", ["a.txt"])


async def test_first_commit_is_not_needed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")

    found = await doing(tmp_path, lambda: (tmp_path / "a.txt").write_text("x\n"))

    assert kinds(found) == [("a.txt", "created")]


async def test_repository_that_names_a_program_is_looked_at_without_running_it(root: Path) -> None:
    git(root, "config", "core.fsmonitor", f"touch {root}/sprung")
    (root / ".gitattributes").write_text("* filter=x\n")
    git(root, "config", "filter.x.clean", f"touch {root}/sprung; cat")

    found = await doing(root, lambda: (root / "a.txt").write_text("x\n"))

    assert kinds(found) == [("a.txt", "modified")]
    assert not (root / "sprung").exists()


async def test_configuration_that_the_command_itself_planted_is_not_obeyed(root: Path) -> None:
    def command() -> None:
        git(root, "config", "core.fsmonitor", f"touch {root}/sprung")
        (root / "a.txt").write_text("x\n")

    assert kinds(await doing(root, command)) == [("a.txt", "modified")]
    assert not (root / "sprung").exists()


async def test_what_is_ignored_only_here_is_not_told(root: Path) -> None:
    (root / ".git/info/exclude").write_text("private/\n")
    (root / "private").mkdir()

    assert await doing(root, lambda: (root / "private/x").write_text("x")) == Changed()


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
async def test_changes_are_seen_from_within_a_sandbox(level: Level, root: Path) -> None:
    watcher = ChangeWatcher(await sandbox_of(level), TemporaryFolders())
    before = await watcher.look(root, ENVIRONMENT, PROGRAMS)
    (root / "a.txt").write_text("x\n")
    (root / "new.txt").write_text("x\n")
    found = await watcher.compare(before)

    assert kinds(found) == [("a.txt", "modified"), ("new.txt", "created")]
    assert "-one" in (found.files[0].diff or "")


async def test_without_git_or_a_repository_nothing_is_known(root: Path, tmp_path: Path) -> None:
    bare = tmp_path / "plain"
    bare.mkdir()

    assert await WATCHER.look(bare, ENVIRONMENT, PROGRAMS) is None
    assert await WATCHER.look(root, {"PATH": "/nonexistent"}, PROGRAMS) is None
    assert await WATCHER.compare(None) == Changed()


async def test_tree_with_too_many_loose_files_is_not_watched(root: Path) -> None:
    for number in range(changes.FILES_REMEMBERED + 1):
        (root / f"{number}.txt").write_text("x")

    assert await WATCHER.look(root, ENVIRONMENT, PROGRAMS) is None


async def test_looking_takes_no_lock_and_goes_on_beside_one(root: Path) -> None:
    (root / ".git" / "index.lock").write_text("")

    found = await doing(root, lambda: (root / "a.txt").write_text("x\n"))

    assert kinds(found) == [("a.txt", "modified")]


async def test_git_that_hangs_is_given_up(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path_factory.mktemp("bin")
    (slow / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (slow / "git").chmod(0o755)
    monkeypatch.setattr(changes, "LOOK_S", 0.05)

    async with asyncio.timeout(10):
        assert await WATCHER.look(root, {**ENVIRONMENT, "PATH": f"{slow}:{os.environ['PATH']}"}, PROGRAMS) is None
