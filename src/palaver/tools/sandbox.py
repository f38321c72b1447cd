"""What holds a running command, found out by trying it.

`probe` is called once by the composition root; the shell tool wraps each command with what was found, and requests show
the words to the person who approves. Bubblewrap if it works here, else nothing but the process tree's end (Landlock is not
used yet). It never claims more than was tried.
"""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from palaver.backends.process import allowed_environment, spawn, whole_tree_is_stopped
from palaver.errors import AgentError

PROBE_LIMIT_S = 5.0
"""Bubblewrap starts in milliseconds; one that hangs does not work here."""
_SHARED_TMP = Path("/tmp")  # noqa: S108 - commands expect to find in it what an earlier one left

Level = Literal["bubblewrap", "none"]


@dataclass(frozen=True, slots=True)
class Sandbox:
    level: Level = "none"
    words: str = ""
    """For the person who approves."""
    program: str = ""
    hidden: tuple[Path, ...] = ()
    """Folders nobody in the sandbox may see: the server's own data, with the token that answers requests."""

    def wrap(self, argv: Sequence[str], root: Path) -> list[str]:
        """The command line that runs `argv` inside: everything read-only but the root and /tmp, own processes only."""
        if self.level == "none":
            return list(argv)
        root = root.resolve()
        around = [folder for folder in self.hidden if root.is_relative_to(folder)]
        beside = [folder for folder in self.hidden if folder not in around]
        # In this order: what is mounted later covers what came before.
        mounts: list[str] = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        mounts += _bind(_SHARED_TMP) + _tmpfs(around) + _bind(root) + _tmpfs(beside)
        alone = ["--unshare-pid", "--unshare-ipc", "--die-with-parent"]
        return [self.program, *mounts, *alone, "--chdir", str(root), "--", *argv]

    @property
    def environment(self) -> Mapping[str, str]:
        """What a command inside must be told: where it can write besides the root."""
        return {} if self.level == "none" else {"TMPDIR": str(_SHARED_TMP)}


def unsandboxed() -> Sandbox:
    if whole_tree_is_stopped():
        return Sandbox(words="none: runs as you, process tree killed on stop")
    return Sandbox(words="none: runs as you, process group killed on stop")


async def probe(environment: Mapping[str, str], hidden: Sequence[Path] = ()) -> Sandbox:
    """The strongest that works here. Tried with a command that fails wherever the root of the disk can be written."""
    program = shutil.which("bwrap", path=environment.get("PATH"))
    if program is None:
        return unsandboxed()
    sandbox = Sandbox(
        level="bubblewrap",
        words="bubblewrap: writes only in the project folder and /tmp, sees only its own processes, network open",
        program=program,
        hidden=tuple(hidden),
    )
    return sandbox if await _works(sandbox, environment) else unsandboxed()


async def _works(sandbox: Sandbox, environment: Mapping[str, str]) -> bool:
    argv = sandbox.wrap(["/bin/sh", "-c", "test ! -w /"], _SHARED_TMP)
    try:
        async with (
            asyncio.timeout(PROBE_LIMIT_S),
            spawn(argv, cwd=_SHARED_TMP, environment=allowed_environment(environment)) as child,
        ):
            return (await child.ended()).code == 0
    except (TimeoutError, AgentError):
        return False


def _bind(folder: Path) -> list[str]:
    return ["--bind", str(folder), str(folder)]


def _tmpfs(folders: Sequence[Path]) -> list[str]:
    return [word for folder in folders for word in ("--tmpfs", str(folder))]
