"""Paths beneath the root: nothing that is asked for, linked or swapped leads outside."""

import contextlib
import os
import socket
import stat
import string
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import CallerError, Forbidden, Invalid, NotFound, TooLarge
from palaver.tools.files import paths
from palaver.tools.files.paths import Root


def test_relative_path_is_read(root: Path) -> None:
    (root / "src").mkdir()
    (root / "src/a.py").write_text("a")
    assert Root(root).read("src/a.py") == b"a"
    assert Root(root).read("./src//../src/a.py") == b"a"


def test_absolute_path_inside_the_root_is_accepted(root: Path) -> None:
    (root / "a.py").write_text("a")
    assert Root(root).read(str(root / "a.py")) == b"a"


def test_root_given_through_a_link_is_refused(root: Path) -> None:
    (root / "a.py").write_text("a")
    alias = root.parent / "alias"
    alias.symlink_to(root)
    with pytest.raises(Forbidden, match="was replaced"):
        Root(alias).read("a.py")


@pytest.mark.parametrize("path", ["../outside/secret.txt", "/etc/passwd", "a/../../outside/secret.txt", "..", "/"])
def test_path_outside_the_root_is_refused(path: str, root: Path) -> None:
    (root / "a").mkdir()
    with pytest.raises(Forbidden, match="outside the project folder"):
        Root(root).read(path)


@pytest.mark.parametrize("target", ["../outside/secret.txt", "../outside", "/etc", "up/../../outside/secret.txt"])
def test_link_that_leads_outside_is_refused(target: str, root: Path) -> None:
    (root / "up").mkdir()
    (root / "link").symlink_to(target)
    for path in ("link", "link/secret.txt", "up/../link"):
        with pytest.raises(CallerError):
            Root(root).read(path)
        with pytest.raises(CallerError):
            Root(root).replace(path, b"overwritten")
    assert (root.parent / "outside/secret.txt").read_text() == "secret"


def test_link_within_the_root_is_followed(root: Path) -> None:
    (root / "docs").mkdir()
    (root / "docs/agents.md").write_text("read me")
    (root / "relative.md").symlink_to("docs/agents.md")
    (root / "absolute.md").symlink_to(root / "docs/agents.md")
    (root / "folder").symlink_to("docs")
    for path in ("relative.md", "absolute.md", "folder/agents.md"):
        assert Root(root).read(path) == b"read me"
        assert Root(root).locate(path) == "docs/agents.md"


def test_writing_through_a_link_changes_its_target_and_keeps_the_link(root: Path) -> None:
    (root / "real.md").write_text("old")
    (root / "link.md").symlink_to("real.md")
    assert Root(root).replace("link.md", b"new") == "modified"
    assert (root / "link.md").is_symlink()
    assert (root / "real.md").read_text() == "new"


def test_links_in_a_circle_are_refused(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    with pytest.raises(Invalid, match="too many links"):
        Root(root).read("a")


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_path_that_is_none_is_refused(path: str, root: Path) -> None:
    with pytest.raises(Invalid, match="must not be empty"):
        Root(root).read(path)


def test_missing_file_says_what_to_do(root: Path) -> None:
    with pytest.raises(NotFound, match=r"gone/a\.py does not exist\. Use list or glob"):
        Root(root).read("gone/a.py")


def test_missing_root_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"The folder .* cannot be opened"):
        Root(tmp_path / "gone").read("a")


def test_folder_is_not_read_as_a_file(root: Path) -> None:
    with pytest.raises(Invalid, match="is a folder; use list"):
        Root(root).read(".")


def test_pipe_and_socket_are_refused_without_waiting(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for path in ("pipe", "socket"):
            with pytest.raises(Invalid, match="not a regular file"):
                Root(root).read(path)
            with pytest.raises(Invalid, match="not a regular file"):
                Root(root).replace(path, b"x")


def test_device_is_refused(root: Path) -> None:
    with pytest.raises(Invalid, match="not a regular file"):
        Root(Path("/dev")).read("null")


def test_too_large_file_is_refused(root: Path) -> None:
    with (root / "large").open("wb") as file:
        file.truncate(paths.FILE_LIMIT_BYTES + 1)
    with pytest.raises(TooLarge, match="larger than 10,485,760 bytes"):
        Root(root).read("large")


def test_replace_makes_folders_and_says_what_it_did(root: Path) -> None:
    assert Root(root).replace("new/deep/a.txt", b"1") == "created"
    assert Root(root).replace("new/deep/a.txt", b"2") == "modified"
    assert (root / "new/deep/a.txt").read_bytes() == b"2"
    assert [path.name for path in (root / "new/deep").iterdir()] == ["a.txt"]


def test_replace_keeps_the_mode_of_an_existing_file(root: Path) -> None:
    script = root / "run.sh"
    script.write_text("old")
    script.chmod(0o751)
    Root(root).replace("run.sh", b"new")
    assert stat.S_IMODE(script.stat().st_mode) == 0o751


def test_failed_replace_leaves_the_old_file_and_no_draft(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a.txt").write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Invalid, match="No space left on device"):
        Root(root).replace("a.txt", b"new")
    assert {path.name: path.read_text() for path in root.iterdir()} == {"a.txt": "old"}


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "sub/.GIT/config", ".palaver/agents/a.md", "link/config"])
def test_what_decides_what_runs_is_not_written(path: str, root: Path) -> None:
    (root / ".git").mkdir()
    (root / "link").symlink_to(".git")
    with pytest.raises(Forbidden, match="decides what runs"):
        Root(root).locate_writable(path)
    with pytest.raises(Forbidden, match="decides what runs"):
        Root(root).replace(path, b"x")


def test_file_to_be_made_is_located_without_making_anything(root: Path) -> None:
    assert Root(root).locate_writable("a/b/c.txt") == "a/b/c.txt"
    with pytest.raises(NotFound):
        Root(root).locate_writable("a/../../c.txt")
    assert list(root.iterdir()) == []


def exchange_links(entry: Path, honest: Path, outside: str) -> None:
    spare = entry.with_name("spare")
    for target in (honest.name, outside):
        spare.symlink_to(target)
        spare.replace(entry)


def exchange_entry_and_link(entry: Path, honest: Path, outside: str) -> None:
    link = entry.with_name("spare")
    if not link.is_symlink():
        link.symlink_to(outside)
    # The honest entry itself is there, then the link in its place, then it again.
    honest.rename(entry)
    entry.rename(honest)
    link.rename(entry)
    entry.rename(link)


@pytest.mark.parametrize("exchange", [exchange_links, exchange_entry_and_link])
@pytest.mark.parametrize("kind", ["folder", "file"])
def test_link_swapped_in_while_a_tool_works_never_leads_outside(
    kind: str, exchange: Callable[[Path, Path, str], None], root: Path
) -> None:
    """A racer exchanges an honest entry and a link to the outside as fast as it can, while a tool reads and writes."""
    honest = root / "honest"
    if kind == "folder":
        honest.mkdir()
        (honest / "secret.txt").write_text("honest")
        path, outside = "entry/secret.txt", "../outside"
    else:
        honest.write_text("honest")
        path, outside = "entry", "../outside/secret.txt"
    stopped = threading.Event()

    def race() -> None:
        while not stopped.is_set():
            exchange(root / "entry", honest, outside)

    outcomes: Counter[str] = Counter()
    racer = threading.Thread(target=race)
    racer.start()
    try:
        while len(outcomes) < 2 or outcomes.total() < 3000:
            assert outcomes.total() < 100_000, "the race was not run"
            try:
                assert Root(root).read(path) != b"secret"
                outcomes["read"] += 1
                if exchange is exchange_links:
                    Root(root).replace(path, b"written")
            except CallerError:
                outcomes["refused"] += 1
    finally:
        stopped.set()
        racer.join(timeout=10)
    assert (root.parent / "outside/secret.txt").read_text() == "secret"
    assert [path.name for path in (root.parent / "outside").iterdir()] == ["secret.txt"]


@pytest.mark.parametrize("kind", ["folder", "file", "pipe"])
@pytest.mark.parametrize("looked_with", ["readlink", "stat"])
def test_what_is_swapped_in_right_after_a_look_is_refused(
    kind: str, looked_with: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst moment for a swap, every time: between looking at an entry and opening it."""
    (root / "entry").mkdir()
    (root / "entry/secret.txt").write_text("honest")
    victim = root / "entry" if kind == "folder" else root / "entry/secret.txt"
    look = getattr(os, looked_with)

    def look_and_swap(name: str, **where: Any) -> Any:
        try:
            return look(name, **where)
        finally:
            if name == victim.name and not victim.is_symlink():
                victim.rename(root / "parked")
                if kind == "pipe":
                    os.mkfifo(victim)
                else:
                    victim.symlink_to(
                        root.parent / "outside" if kind == "folder" else root.parent / "outside/secret.txt"
                    )

    monkeypatch.setattr(os, looked_with, look_and_swap)
    try:
        content = Root(root).read("entry/secret.txt")
    except CallerError:
        content = b"refused"
    # Looked at only by `readlink`, a folder is opened before `stat` can be a moment for its swap.
    assert content == (b"honest" if (kind, looked_with) == ("folder", "stat") else b"refused")


NAMES = st.sampled_from(["a", "b", "c", "..", ".", "", "link", "deep"])
PATHS = st.builds("/".join, st.lists(NAMES, min_size=1, max_size=6))
LINKS = st.dictionaries(
    st.sampled_from(["a", "b", "link", "deep/link", "deep/a"]),
    st.one_of(PATHS, st.sampled_from(["/etc", "/", "../outside", "../outside/secret.txt", "{root}", "{root}/deep"])),
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(links=LINKS, path=st.one_of(PATHS, st.text(string.printable, max_size=20), PATHS.map("{root}/".__add__)))
def test_whatever_is_opened_lies_beneath_the_root(links: dict[str, str], path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "project"
        (root / "deep").mkdir(parents=True)
        (root.parent / "outside").mkdir()
        (root.parent / "outside/secret.txt").write_text("secret")
        (root / "c").write_text("inside")
        (root / "deep/c").write_text("inside")
        for name, target in links.items():
            if target:
                (root / name).symlink_to(target.replace("{root}", str(root)))
        path = path.replace("{root}", str(root))
        try:
            content = Root(root).read(path)
        except CallerError:
            content = None
        assert content in (None, b"inside")
        # What the system itself finds beneath the root, we find too, unless the way there leaves it.
        if content is not None:
            assert (root / path).resolve() == root / Root(root).locate(path)
        with contextlib.suppress(CallerError):
            Root(root).replace(path, b"written")
        assert (root.parent / "outside/secret.txt").read_text() == "secret"
        assert [entry.name for entry in (root.parent / "outside").iterdir()] == ["secret.txt"]
        assert sorted(entry.name for entry in root.parent.iterdir()) == ["outside", "project"]
