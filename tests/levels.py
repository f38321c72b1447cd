"""Sandbox levels of this machine, for tests: which there are, which this run uses, and a real sandbox of one of them.

`PALAVER_SANDBOX` names the strongest level that a run may use, as it does for a server; `make attacks` sets it to each in turn.
"""

import ctypes
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from palaver.tools.shell.sandbox import Sandbox, probe
from palaver.tools.shell.sandbox_level import LEVELS, Level

__all__ = ["LEVELS", "Level", "is_there", "levels_of_run", "require", "sandbox_of", "strongest_level"]

LANDLOCK_OLDEST = 3
"""Linux 6.2, as in `tools/shell/landlock.py`."""


def strongest_level() -> Level:
    """What this run may use; servers of tests are started with it."""
    text = os.environ.get("PALAVER_SANDBOX") or LEVELS[0]
    assert text in LEVELS, f"PALAVER_SANDBOX is {text!r}"
    return LEVELS[LEVELS.index(text)]


def levels_of_run() -> tuple[Level, ...]:
    """All of them, or the one that `PALAVER_SANDBOX` names."""
    return (strongest_level(),) if os.environ.get("PALAVER_SANDBOX") else LEVELS


@functools.cache
def is_there(level: Level) -> bool:
    """Asked without our own code: a sandbox that is there and does not hold is a failure, not a reason to skip."""
    if level == "none":
        return True
    if level == "landlock":
        version = ctypes.CDLL(None).syscall(444, None, 0, 1) if sys.platform == "linux" else 0
        return bool(version >= LANDLOCK_OLDEST)
    argv = [
        "bwrap",
        "--unshare-user",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-pid",
        "true",
    ]
    return shutil.which("bwrap") is not None and subprocess.run(argv, check=False, timeout=30).returncode == 0


def require(level: Level) -> None:
    """Skips the test where the machine lacks the level; where `CI` is set that is a failure."""
    if not is_there(level):
        assert not os.environ.get("CI"), f"this machine has no {level}"
        pytest.skip(f"this machine has no {level}")


async def sandbox_of(
    level: Level, hidden: tuple[Path, ...] = (), environment: Mapping[str, str] | None = None
) -> Sandbox:
    """A real sandbox of exactly this level, tried by the probe as at a server's start; once for all that hide the same."""
    require(level)
    told = dict(os.environ if environment is None else environment)
    key = (level, hidden, tuple(sorted(told.items())))
    if key not in _probed:
        _probed[key] = await probe(told, hidden, strongest=level)
    found = _probed[key]
    assert found.level == level, found.words
    return found


_probed: dict[object, Sandbox] = {}
