"""A repository's configuration must not be able to make a reading git command run anything."""

import os
import subprocess
from pathlib import Path

import pytest

from palaver.tools.files.repository import detached_repository, quiet_environment, reading_git_is_harmless

PLAIN = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
# a comment
[remote "origin"]
\turl = git@example.org:palaver.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
[user]
\temail = ada@example.org
"""


@pytest.fixture
def configuration(root: Path) -> Path:
    (root / ".git/objects/pack").mkdir(parents=True)
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git/config").write_text(PLAIN)
    return root / ".git/config"


def test_plain_repository_is_harmless(configuration: Path, root: Path) -> None:
    assert reading_git_is_harmless(root)


@pytest.mark.parametrize(
    "added",
    [
        "[core]\n\tfsmonitor = ./run-me",
        "[core]\n\tfsmonitor",
        "[core]\n\tpager = sh",
        "[core]\n\thooksPath = hooks",
        "[core] fsmonitor = ./run-me",
        "[CORE]\n\tFSMonitor = ./run-me",
        "[core]\n\tbare = false \\\n\tfsmonitor = ./run-me",
        "[diff]\n\texternal = ./run-me",
        '[diff "pdf"]\n\ttextconv = ./run-me',
        '[filter "x"]\n\tclean = ./run-me',
        "[include]\n\tpath = ../other",
        '[includeIf "gitdir:."]\n\tpath = ../other',
        '[remote "origin"]\n\tpromisor = true',
        '[remote "origin"]\n\tuploadpack = ./run-me',
        "[extensions]\n\tworktreeConfig = true",
        "[gpg]\n\tprogram = ./run-me",
        "[alias]\n\tst = !./run-me",
        "[core.x]\n\tbare = true",
        "fsmonitor = ./run-me",
        "[unfinished",
    ],
)
def test_configuration_that_may_run_something_is_not(added: str, configuration: Path, root: Path) -> None:
    configuration.write_text(f"{PLAIN}{added}\n")
    assert not reading_git_is_harmless(root)


def test_folder_without_a_repository_of_its_own_is_not(root: Path) -> None:
    assert not reading_git_is_harmless(root)


def test_repository_that_lies_elsewhere_is_not(configuration: Path, root: Path) -> None:
    (root / ".git").rename(root.parent / "repository")
    (root / ".git").symlink_to(root.parent / "repository")
    assert not reading_git_is_harmless(root)
    (root / ".git").unlink()
    (root / ".git").write_text("gitdir: ../repository\n")
    assert not reading_git_is_harmless(root)


def test_repository_with_submodules_is_not(configuration: Path, root: Path) -> None:
    (root / ".gitmodules").write_text('[submodule "x"]\n\tpath = x\n\tignore = none\n')
    assert not reading_git_is_harmless(root)


@pytest.mark.parametrize(
    "path", [".git/commondir", ".git/config.worktree", ".git/objects/info/alternates", ".git/modules/x/config"]
)
def test_repository_that_leads_to_another_is_not(path: str, configuration: Path, root: Path) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text("../../elsewhere\n")
    assert not reading_git_is_harmless(root)


@pytest.mark.parametrize("path", [".git/HEAD", ".git/objects", ".git/objects/pack", ".git/refs", ".git/index"])
def test_repository_with_a_link_for_a_part_of_it_is_not(path: str, configuration: Path, root: Path) -> None:
    if (root / path).exists():
        (root / path).rename(root / "elsewhere")
    (root / path).symlink_to(root / "elsewhere")
    assert not reading_git_is_harmless(root)


@pytest.mark.parametrize("place", [".git/objects/ab", ".git/objects/pack/pack-1.pack"])
def test_repository_with_linked_objects_is_not(place: str, configuration: Path, root: Path) -> None:
    (root / place).symlink_to("/etc")
    assert not reading_git_is_harmless(root)


def test_folder_that_only_looks_like_a_bare_repository_is_not(configuration: Path, root: Path) -> None:
    (root / ".git/HEAD").unlink()
    for name in ("objects", "refs"):
        (root / name).mkdir()
    (root / "HEAD").write_text("ref: refs/heads/main\n")
    assert not reading_git_is_harmless(root)


@pytest.mark.parametrize(
    ("head", "commit"),
    [
        ("ref: refs/heads/main", "a" * 40),
        ("ref: refs/heads/packed", "b" * 40),
        ("ref: refs/heads/none", None),
        ("c" * 64, "c" * 64),
    ],
)
def test_detached_repository_takes_the_commit_and_how_files_are_compared(
    head: str, commit: str | None, configuration: Path, root: Path, tmp_path: Path
) -> None:
    (root / ".git/HEAD").write_text(f"{head}\n")
    (root / ".git/refs/heads").mkdir(parents=True)
    (root / ".git/refs/heads/main").write_text(f"{'a' * 40}\n")
    (root / ".git/packed-refs").write_text(f"# pack-refs with: peeled\n{'b' * 40} refs/heads/packed\n^{'d' * 40}\n")
    configuration.write_text("[core]\n\tfilemode = false\n\tfsmonitor = ./run-me\n\teol = ./run-me\n[filter]\nx = y\n")
    with detached_repository(root, tmp_path) as found:
        assert found is not None
        assert found.commit == commit
        settings = {name: value for name, value in found.environment.items() if name.startswith("GIT_CONFIG_")}
        assert "core.filemode" in settings.values()
        assert not any("run-me" in value for value in settings.values())
        assert "run-me" not in (found.folder / "config").read_text()
        assert ("sha256" in (found.folder / "config").read_text()) == (len(commit or "") == 64)
    assert not found.folder.exists()


@pytest.mark.parametrize("head", ["", "ref: ../../etc/passwd", "ref: refs/../../x", "ref: /etc/passwd", "\0", "../x"])
def test_detached_repository_of_an_odd_head_is_none(head: str, configuration: Path, root: Path, tmp_path: Path) -> None:
    (root / ".git/HEAD").write_text(head)
    with detached_repository(root, tmp_path) as found:
        assert found is None


def test_quiet_git_runs_neither_hooks_nor_monitors(root: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}

    def run(*words: str, quiet: bool) -> None:
        subprocess.run(
            [*git, *words],
            cwd=root,
            check=True,
            capture_output=True,
            env={**environment, **(quiet_environment(root) if quiet else {})},
        )

    run("init", "-q", quiet=False)
    (root / "a").write_text("1")
    run("add", "a", quiet=False)
    script = f"#!/bin/sh\ntouch {ran}\n"
    for path in (root / ".git/hooks/post-index-change", root / "monitor.sh"):
        path.write_text(script)
        path.chmod(0o755)
    run("config", "core.fsmonitor", "./monitor.sh", quiet=False)
    os.utime(root / "a", (1, 1))
    ran.unlink(missing_ok=True)
    run("status", quiet=True)
    assert not ran.exists()
    run("status", quiet=False)
    assert ran.exists(), "the trap works where nothing is switched off"
