"""Repositories that name programs: none of them runs when the server looks at a working tree, or when git runs unasked.

Each trap leaves its mark in a folder that no sandboxed command can write, so a mark says that something ran outside of every
sandbox; where no sandbox holds, nothing but the server's own git could have left it.
"""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from palaver.tools.shell.shell import Shell
from tests.levels import Level, sandbox_of
from tests.unit.tools.workshop import Workshop

pytestmark = pytest.mark.anyio

GIT = shutil.which("git") or "/usr/bin/git"
AUTHOR = {
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "x"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "x@example.org"),
}
READING = ("git status", "git diff", "git diff HEAD", "git log -p", "git show", "git status --short")


@dataclass(frozen=True)
class Ground:
    """A project with a repository in it, and a place for marks."""

    project: Path
    marks: Path

    def git(self, *words: str, at: Path | None = None) -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **AUTHOR}
        subprocess.run([GIT, *words], cwd=at or self.project, env=environment, check=True, capture_output=True)

    def script(self, at: Path, name: str = "sprung") -> Path:
        """A program that leaves a mark, and passes on what it reads."""
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(f"#!/bin/sh\ntouch {self.marks}/{name}\ncat\n")
        at.chmod(0o755)
        return at

    @property
    def command(self) -> str:
        return str(self.script(self.project / ".git" / "trap.sh"))

    def sprung(self) -> list[str]:
        return sorted(path.name for path in self.marks.iterdir())

    def repository(self, at: Path) -> None:
        at.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", at=at)
        (at / "a.txt").write_text("one\n")
        self.git("add", ".", at=at)
        self.git("commit", "-qm", "first", at=at)


@pytest.fixture
def ground(outside_tmp: Path) -> Ground:
    ground = Ground(outside_tmp / "project", outside_tmp / "marks")
    ground.marks.mkdir()
    ground.repository(ground.project)
    return ground


def attribute(ground: Ground, words: str) -> None:
    (ground.project / ".gitattributes").write_text(f"* {words}\n")


def filter_(ground: Ground) -> None:
    attribute(ground, "filter=trap")
    ground.git("config", "filter.trap.clean", ground.command)
    ground.git("config", "filter.trap.required", "true")


def filter_process(ground: Ground) -> None:
    attribute(ground, "filter=trap")
    ground.git("config", "filter.trap.process", ground.command)


def filter_in_info_attributes(ground: Ground) -> None:
    (ground.project / ".git/info/attributes").write_text("* filter=trap\n")
    ground.git("config", "filter.trap.clean", ground.command)


def commondir(ground: Ground) -> None:
    """The configuration that was looked at is harmless; the one that counts lies elsewhere."""
    elsewhere = ground.project / "elsewhere"
    shutil.copytree(ground.project / ".git", elsewhere)
    attribute(ground, "filter=trap")
    config = f'[filter "trap"]\n\tclean = {ground.command}\n[core]\n\tfsmonitor = {ground.command}\n'
    (elsewhere / "config").write_text((elsewhere / "config").read_text() + config)
    (ground.project / ".git/commondir").write_text("../elsewhere\n")


def include(ground: Ground) -> None:
    attribute(ground, "filter=trap")
    (ground.project / "included").write_text(f'[filter "trap"]\n\tclean = {ground.command}\n')
    ground.git("config", "include.path", "../included")


def include_if(ground: Ground) -> None:
    attribute(ground, "filter=trap")
    (ground.project / "included").write_text(f'[filter "trap"]\n\tclean = {ground.command}\n')
    ground.git("config", f"includeIf.gitdir:{ground.project}/.path", "../included")


def worktree_configuration(ground: Ground) -> None:
    attribute(ground, "filter=trap")
    ground.git("config", "extensions.worktreeConfig", "true")
    ground.git("config", "--worktree", "filter.trap.clean", ground.command)


def linked_worktree(ground: Ground) -> None:
    """A `.git` that is a file, to a repository that is somewhere else."""
    elsewhere = ground.project / "elsewhere"
    (ground.project / ".git").rename(elsewhere)
    (ground.project / ".git").write_text("gitdir: elsewhere\n")
    attribute(ground, "filter=trap")
    script = ground.script(elsewhere / "trap.sh")
    (elsewhere / "config").write_text(
        (elsewhere / "config").read_text() + f'[filter "trap"]\n\tclean = {script}\n[core]\n\tfsmonitor = {script}\n'
    )


def linked_repository(ground: Ground) -> None:
    elsewhere = ground.project / "elsewhere"
    filter_(ground)
    (ground.project / ".git").rename(elsewhere)
    (ground.project / ".git").symlink_to("elsewhere")
    ground.script(elsewhere / "trap.sh")


def bare_repository(ground: Ground) -> None:
    """The folder itself looks like a bare repository, and `.git` is not one any more."""
    for name in ("HEAD", "objects", "refs", "index"):
        shutil.move(ground.project / ".git" / name, ground.project / name)
    attribute(ground, "filter=trap")
    (ground.project / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
        f'\tworktree = {ground.project}\n\tfsmonitor = {ground.command}\n[filter "trap"]\n\tclean = {ground.command}\n'
    )


def submodule(ground: Ground) -> None:
    inner = ground.project / "inner"
    ground.repository(inner)
    ground.git("add", "inner")
    ground.git("commit", "-qm", "with a repository")
    (inner / ".gitattributes").write_text("* filter=trap\n")
    ground.git("config", "filter.trap.clean", ground.command, at=inner)
    ground.git("config", "core.fsmonitor", ground.command, at=inner)
    (inner / "a.txt").write_text("two\n")
    (ground.project / ".gitmodules").write_text('[submodule "inner"]\n\tpath = inner\n\tignore = none\n')


def hooks(ground: Ground) -> None:
    for name in ("post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout"):
        ground.script(ground.project / ".git/hooks" / name)
        ground.script(ground.project / "hooks" / name)
    ground.git("config", "core.hooksPath", "hooks")


def fsmonitor(ground: Ground) -> None:
    ground.git("config", "core.fsmonitor", ground.command)


def textconv_and_external_diff(ground: Ground) -> None:
    attribute(ground, "diff=trap")
    ground.git("config", "diff.trap.textconv", ground.command)
    ground.git("config", "diff.trap.command", ground.command)
    ground.git("config", "diff.external", ground.command)


def pager_alias_and_signatures(ground: Ground) -> None:
    for key in (
        "core.pager",
        "pager.status",
        "pager.log",
        "gpg.program",
        "core.sshCommand",
        "core.editor",
        "core.askPass",
    ):
        ground.git("config", key, ground.command)
    for key in ("alias.status", "alias.diff", "alias.log", "alias.cat-file"):
        ground.git("config", key, f"!{ground.command}")
    ground.git("config", "log.showSignature", "true")


def partial_clone(ground: Ground) -> None:
    """An object that is not there is fetched from the promisor, with the repository's own ssh."""
    for key, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", "ssh://example.invalid/x"),
        ("core.sshCommand", ground.command),
        ("remote.origin.uploadpack", ground.command),
    ):
        ground.git("config", key, value)
    for path in (ground.project / ".git/objects").glob("[0-9a-f][0-9a-f]/*"):
        kind = subprocess.run(
            [GIT, "cat-file", "-t", path.parent.name + path.name], cwd=ground.project, capture_output=True, check=False
        )
        if kind.stdout.strip() == b"blob":
            path.unlink()


TRAPS: list[Callable[[Ground], None]] = [
    *(filter_, filter_process, filter_in_info_attributes, commondir, include, include_if, worktree_configuration),
    *(linked_worktree, linked_repository, bare_repository, submodule, hooks, fsmonitor, textconv_and_external_diff),
    *(pager_alias_and_signatures, partial_clone),
]


# The others are variants of what these three try: a filter, another configuration, another repository.
SAMPLE = [
    trap if trap in (filter_, commondir, bare_repository) else pytest.param(trap, marks=pytest.mark.long)
    for trap in TRAPS
]


def names(trap: Callable[[Ground], None]) -> str:
    return trap.__name__


async def opened(level: Level, ground: Ground, path: str | None = None) -> tuple[Shell, Workshop]:
    sandbox = await sandbox_of(level)
    return Shell(sandbox), Workshop(
        ground.project, environment={"PATH": path or os.environ["PATH"], "HOME": "/nonexistent"}
    )


@pytest.mark.parametrize("trap", TRAPS, ids=names)
async def test_look_at_a_hostile_repository_runs_nothing_of_it(
    trap: Callable[[Ground], None], level: Level, ground: Ground
) -> None:
    (ground.project / "a.txt").write_text("two\n")
    trap(ground)
    shell, workshop = await opened(level, ground)
    # A command that touches files, so that a look at them has something to compare.
    result = await workshop.run(shell, command="touch a.txt; echo three >> a.txt")
    assert result.ok, result.error
    assert ground.sprung() == []


@pytest.mark.parametrize("trap", SAMPLE, ids=names)
async def test_trap_planted_by_the_command_itself_is_not_sprung_by_the_look_after_it(
    trap: Callable[[Ground], None], level: Level, ground: Ground
) -> None:
    """The command replaces the whole repository by one that was prepared."""
    shutil.copytree(ground.project, ground.project.parent / "clean", symlinks=True)
    (ground.project / "a.txt").write_text("two\n")
    trap(ground)
    ground.project.rename(ground.project.parent / "trapped")
    (ground.project.parent / "clean").rename(ground.project)
    shutil.move(ground.project.parent / "trapped", ground.project / "trapped")
    shell, workshop = await opened(level, ground)
    swap = "rm -rf .git && mv trapped/.git trapped/.gitattributes . 2>/dev/null; mv trapped/* . 2>/dev/null; echo 3 > a.txt"
    await workshop.run(shell, command=swap)
    assert ground.sprung() == []


@pytest.mark.parametrize("way", ["in_project", "relative", "linked_folder", "linked_program", "link_on_the_way"])
async def test_git_that_lies_in_the_project_is_never_run(way: str, level: Level, ground: Ground) -> None:
    ground.script(ground.project / ".venv/bin/git")
    outside = ground.marks.parent / "bin"
    entry = {
        "in_project": str(ground.project / ".venv/bin"),
        "relative": ".venv/bin",
        "linked_folder": str(outside),
        "linked_program": str(outside),
        "link_on_the_way": str(outside / "way"),
    }[way]
    if way == "linked_folder":
        outside.symlink_to(ground.project / ".venv/bin")
    elif way == "linked_program":
        outside.mkdir()
        (outside / "git").symlink_to(ground.project / ".venv/bin/git")
    elif way == "link_on_the_way":
        # Leads out again today, and wherever the agent wants tomorrow.
        outside.mkdir()
        (outside / "way").symlink_to(ground.project / "way")
        (ground.project / "way").symlink_to(ground.project / ".venv/bin")
    shell, workshop = await opened(level, ground, f"{entry}:{os.environ['PATH']}")
    await workshop.run(shell, command="echo three > a.txt; true")
    for command in READING:
        await workshop.run(shell, command=command)
    assert ground.sprung() == []


@pytest.mark.parametrize("trap", TRAPS, ids=names)
async def test_git_runs_unasked_in_no_hostile_repository(
    trap: Callable[[Ground], None], level: Level, ground: Ground
) -> None:
    shell, workshop = await opened(level, ground)
    before = [command for command in READING if workshop.propose(shell, command=command).reads_only]
    if trap is not hooks:
        # Hooks are there in every repository; what keeps them still is how git is run.
        trap(ground)
        assert not [command for command in READING if workshop.propose(shell, command=command).reads_only]
    # Where no sandbox could hold it, it is asked about in any repository.
    assert before == ([] if level == "none" else list(READING))


@pytest.mark.parametrize("trap", SAMPLE, ids=names)
async def test_trap_planted_after_the_judgement_can_do_nothing(
    trap: Callable[[Ground], None], level: Level, ground: Ground
) -> None:
    """Between the look that found a reading command harmless and its run, everything can be swapped."""
    shell, workshop = await opened(level, ground)
    if level == "none":
        assert not [command for command in READING if workshop.propose(shell, command=command).reads_only]
        return
    marks = ground.project / "marks"
    marks.mkdir()
    # Marks within the project: not even what may be written by other commands is, by one that ran unasked.
    trap(Ground(ground.project, marks))
    (ground.project / "a.txt").write_text("two\n")
    for command in READING:
        await workshop.run(shell, command=command)
    assert ground.sprung() == sorted(path.name for path in marks.iterdir()) == []


async def test_configuration_that_is_swapped_all_the_time_runs_nothing(level: Level, ground: Ground) -> None:
    """The race of the check against the use, with a process that never stops swapping."""
    attribute(ground, "filter=trap")
    config = ground.project / ".git/config"
    plain = config.read_text()
    (ground.project / ".git/plain").write_text(plain)
    (ground.project / ".git/trapped").write_text(plain + f'[filter "trap"]\n\tclean = {ground.command}\n')
    swapper = (
        "while :; do cp .git/plain .git/c; mv .git/c .git/config; cp .git/trapped .git/c; mv .git/c .git/config; done"
    )
    shell, workshop = await opened(level, ground)
    process = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", swapper), cwd=ground.project, stderr=asyncio.subprocess.DEVNULL, process_group=0
    )
    try:
        for number in range(5):
            await workshop.run(shell, command=f"echo {number} > a.txt")
            if level != "none":
                # There a person was asked about it.
                await workshop.run(shell, command="git status")
    finally:
        # With the copy it is about to make, which would be in the way of the folder's removal.
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    assert ground.sprung() == []


async def test_reading_git_still_works(level: Level, ground: Ground) -> None:
    shell, workshop = await opened(level, ground)
    (ground.project / "a.txt").write_text("two\n")
    status = await workshop.run(shell, command="git status --short")
    log = await workshop.run(shell, command="git log --oneline -n 1")
    diff = await workshop.run(shell, command="git diff")
    result = await workshop.run(shell, command="echo three > a.txt")
    assert (status.output, log.ok, "+two" in diff.output) == (" M a.txt\n", True, True)
    assert [change.path for change in result.changes] == ["a.txt"]
    assert "+three" in (result.changes[0].diff or "")
