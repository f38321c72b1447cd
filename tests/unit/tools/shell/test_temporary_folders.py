"""Private temporary folders: one for each conversation, kept while they are used, and removed."""

import shutil
import tempfile
from pathlib import Path

import pytest

from palaver.tools.shell import temporary_folders
from palaver.tools.shell.temporary_folders import TemporaryFolders


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_folder_is_the_same_for_a_conversation_and_another_for_the_next() -> None:
    folders = TemporaryFolders()
    with folders.use("a") as first, folders.use("b") as other:
        (first / "x").write_text("kept")
    with folders.use("a") as again:
        assert (again, (again / "x").read_text(), other != first) == (first, "kept", True)


def test_base_is_closed_to_other_users() -> None:
    assert TemporaryFolders().base().stat().st_mode & 0o777 == 0o700


def test_folders_go_with_their_owner(tmp_path: Path) -> None:
    folders = TemporaryFolders()
    with folders.use("a"):
        pass
    del folders
    assert list(tmp_path.iterdir()) == []


def test_those_unused_for_longest_are_removed_and_none_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_folders, "KEPT_LIMIT", 2)
    folders = TemporaryFolders()
    with folders.use("running") as running:
        seen = {}
        for name in ("a", "b", "a", "c"):
            with folders.use(name) as folder:
                seen[name] = folder
        assert (running.exists(), [name for name in seen if seen[name].exists()]) == (True, ["a", "c"])


@pytest.mark.parametrize("gone", ["folder", "base"])
def test_what_was_removed_behind_our_back_is_made_anew(gone: str) -> None:
    folders = TemporaryFolders()
    with folders.use("a") as folder:
        base = folders.base()
    shutil.rmtree(folder if gone == "folder" else base)
    with folders.use("a") as again:
        assert again.is_dir()
        assert again.parent.stat().st_mode & 0o777 == 0o700
