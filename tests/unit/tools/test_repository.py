"""A repository's configuration must not be able to make a reading git command run anything."""

import os
import subprocess
from pathlib import Path

import pytest

from palaver.tools.repository import QUIET_GIT, reading_git_is_harmless

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
    (root / ".git").mkdir()
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
            env={**environment, **(QUIET_GIT if quiet else {})},
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
