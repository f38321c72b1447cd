"""A temporary folder that is held while its maker lives, and goes with the next one who tidies up when he was killed."""

import errno
import fcntl
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from palaver.tools.shell.locked_folder import PREFIX, locked_folder, tidy

MAKER = """
import sys
from palaver.tools.shell.locked_folder import locked_folder

with locked_folder() as folder:
    (folder / "tools").write_text("")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_folder_is_for_nobody_else_and_gone_afterwards() -> None:
    with locked_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "tools").write_text("")
    assert not folder.exists()


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_holds_is_not(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", MAKER]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"TMPDIR": str(tmp_path)}
    ) as maker:
        assert maker.stdout is not None
        folder = Path(maker.stdout.readline().strip())
        try:
            tidy()
            assert (folder / "tools").exists()
        finally:
            maker.kill()
        maker.wait(20)
        assert folder.exists()
        tidy()
    assert not folder.exists()


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    other = tmp_path / "palaver-of-somebody"
    other.mkdir()
    file = tmp_path / f"{PREFIX}file"
    file.write_text("kept")
    kept = tmp_path / "kept"
    kept.mkdir()
    link = tmp_path / f"{PREFIX}link"
    link.symlink_to(kept)
    with locked_folder() as folder:
        tidy()
        assert folder.exists()
    assert other.exists()
    assert file.read_text() == "kept"
    assert link.is_symlink()
    assert kept.exists()


def test_folder_that_cannot_be_opened_is_an_error_that_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # From here on no descriptor is to be had, as in a server with too many connections.
    lowest = os.open(tmp_path, os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"), locked_folder():
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_folder_where_nothing_can_be_locked_is_made_and_nobody_tidies_it_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(lock: int, operation: int) -> None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    # As a temporary folder on NFS answers.
    monkeypatch.setattr(fcntl, "flock", refused)
    with locked_folder() as folder:
        tidy()
        assert list(tmp_path.iterdir()) == [folder]
    assert list(tmp_path.iterdir()) == []


def test_folder_that_somebody_tidies_up_before_it_is_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    mkdtemp = tempfile.mkdtemp

    def overtaken(prefix: str, dir: Path | None) -> str:
        folder = mkdtemp(prefix=prefix, dir=dir)
        if not made:
            tidy()
        made.append(Path(folder))
        return folder

    monkeypatch.setattr(tempfile, "mkdtemp", overtaken)
    with locked_folder() as folder:
        assert made == [made[0], folder]
        assert list(tmp_path.iterdir()) == [folder]
