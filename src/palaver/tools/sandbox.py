"""What holds a running command, found out by trying it.

`probe` is called once by the composition root and by doctor; the shell tool wraps each command with what was found, and
requests show the words to the person who approves. A ladder: bubblewrap if it works here, else Landlock, else nothing but
limits and the process tree's end. It never claims more than was tried.
"""

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import assert_never

from palaver.backends.process import allowed_environment, spawn, whole_tree_is_stopped
from palaver.errors import AgentError
from palaver.tools.held_folder import held_folder, tidy
from palaver.tools.sandbox_level import Level, levels_from

PROBE_LIMIT_S = 5.0
"""A sandbox starts in milliseconds; one that hangs does not work here."""
_SHARED_TMP = Path("/tmp")  # noqa: S108 - commands expect to find in it what an earlier one left
_LANDLOCK = Path(__file__).with_name("landlock.py")

HOME_SECRETS = (
    *(".ssh", ".gnupg", ".password-store", ".netrc", ".git-credentials", ".pypirc", ".npmrc"),
    *(".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".local/share/keyrings"),
)
"""Where keys and passwords lie in a home folder. A command that needs them is run by its person, not by an agent."""

# Writes where it must and nowhere else, and cannot read what is hidden: true in a sandbox, false anywhere else.
_TRIAL = (
    "echo x > kept && test -s kept"
    " && ! cat ../hidden/secret > /dev/null 2>&1 && ! (echo x >> ../outside/file) 2> /dev/null"
)


@dataclass(frozen=True, slots=True)
class Sandbox:
    level: Level = "none"
    words: str = ""
    """For the person who approves."""
    program: str = ""
    hidden: tuple[Path, ...] = ()
    """What nobody in the sandbox should see: the server's own data, with the token that answers requests, and keys."""
    shared: tuple[Path, ...] = (_SHARED_TMP,)
    """Folders beside the root that may be written."""

    def wrap(self, argv: Sequence[str], root: Path) -> list[str]:
        """The command line that runs `argv` inside: everything read-only but the root and /tmp."""
        root = root.resolve()
        # Looked at each time: a key that was made meanwhile is hidden too, and what is not there cannot be.
        hidden = [place.resolve() for place in self.hidden if place.exists()]
        match self.level:
            case "none":
                return list(argv)
            case "bubblewrap":
                return self._bubblewrap(argv, root, hidden)
            case "landlock":
                told = [word for place in (*self.shared, root) for word in ("--write", str(place))]
                told += [word for place in hidden for word in ("--hide", str(place))]
                return [self.program, "-I", "-S", "-E", str(_LANDLOCK), *told, "--", *argv]
            case _:
                assert_never(self.level)

    def _bubblewrap(self, argv: Sequence[str], root: Path, hidden: Sequence[Path]) -> list[str]:
        around = [place for place in hidden if root.is_relative_to(place)]
        beside = [place for place in hidden if place not in around]
        # In this order: what is mounted later covers what came before.
        mounts: list[str] = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        mounts += [word for place in self.shared for word in _bind(place)]
        mounts += _covered(around) + _bind(root) + _covered(beside)
        alone = ["--unshare-pid", "--unshare-ipc", "--die-with-parent"]
        return [self.program, *mounts, *alone, "--chdir", str(root), "--", *argv]

    def exposes(self, root: Path) -> bool:
        """Whether a command that only reads what is beneath the root might read what should be hidden."""
        if self.level != "none":
            return False
        root = root.resolve()
        return any(place.resolve().is_relative_to(root) for place in self.hidden if place.exists())

    @property
    def environment(self) -> Mapping[str, str]:
        """What a command inside must be told: where it can write besides the root."""
        return {} if self.level == "none" else {"TMPDIR": str(_SHARED_TMP)}


Works = Callable[[Sandbox], Awaitable[bool]]


def unsandboxed() -> Sandbox:
    ended = "process tree" if whole_tree_is_stopped() else "process group"
    return Sandbox(words=f"none: runs as you, with a time limit, {ended} killed on stop")


async def probe(
    environment: Mapping[str, str],
    hidden: Sequence[Path] = (),
    works: Works | None = None,
    strongest: Level = "bubblewrap",
) -> Sandbox:
    """The strongest that works here and may be used. `works` tries one; tests give another."""

    async def tried(sandbox: Sandbox) -> bool:
        return await _works(sandbox, environment)

    # Once a start: what a killed server left in the temporary folder goes.
    await asyncio.to_thread(tidy)
    secret = (*hidden, *_secrets(environment))
    for sandbox in _ladder(environment, secret):
        if sandbox.level in levels_from(strongest) and await (works or tried)(sandbox):
            return sandbox
    return replace(unsandboxed(), hidden=secret)


def _ladder(environment: Mapping[str, str], hidden: tuple[Path, ...]) -> Iterator[Sandbox]:
    held = "writes only in the project folder and /tmp, cannot read Palaver's data or the keys in your home"
    if program := shutil.which("bwrap", path=environment.get("PATH")):
        yield Sandbox("bubblewrap", f"bubblewrap: {held}, sees only its own processes, network open", program, hidden)
    if sys.platform == "linux":
        words = f"Landlock: {held}; other processes can be seen, network open"
        yield Sandbox("landlock", words, sys.executable, hidden)


def _secrets(environment: Mapping[str, str]) -> tuple[Path, ...]:
    home = environment.get("HOME")
    found = [Path(home) / name for name in HOME_SECRETS] if home else []
    if runtime := environment.get("XDG_RUNTIME_DIR"):
        # The sockets of a person's session: through them everything can be run outside.
        found.append(Path(runtime))
    return tuple(found)


async def _works(sandbox: Sandbox, environment: Mapping[str, str]) -> bool:
    with _trial_folder() as folder:
        trial = replace(sandbox, hidden=(folder / "hidden",), shared=())
        argv = trial.wrap(["/bin/sh", "-c", _TRIAL], folder / "root")
        try:
            async with (
                asyncio.timeout(PROBE_LIMIT_S),
                spawn(argv, cwd=folder / "root", environment=allowed_environment(environment)) as child,
            ):
                return (await child.ended()).code == 0
        except (TimeoutError, AgentError):
            return False


@contextmanager
def _trial_folder() -> Iterator[Path]:
    with held_folder() as folder:
        for within in ("root", "hidden", "outside"):
            (folder / within).mkdir()
        (folder / "hidden" / "secret").write_text("secret")
        (folder / "outside" / "file").write_text("as it was")
        yield folder


def _bind(folder: Path) -> list[str]:
    return ["--bind", str(folder), str(folder)]


def _covered(places: Sequence[Path]) -> list[str]:
    words: list[str] = []
    for place in places:
        words += ["--tmpfs", str(place)] if place.is_dir() else ["--ro-bind", "/dev/null", str(place)]
    return words
