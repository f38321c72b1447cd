"""A program that mounts the data directory a second time and tries to read the token there, in a mount namespace of its own.

Started by `test_mounted_data.py` as `unshare -m python -m tests.attacks.mounted_data LEVEL FOLDER WHAT WHERE`. Prints JSON: which
folders were accepted as a project, and what a command was able to read.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from palaver.conversation.folders import ProjectFolders
from palaver.errors import Forbidden
from palaver.tools.shell.sandbox_level import Level
from palaver.tools.shell.shell import Shell
from tests.levels import sandbox_of
from tests.unit.tools.workshop import Workshop

TOKEN = "the-owners-token"


def mount_again(top: Path, what: str, where: str) -> tuple[Path, Path]:
    """Where it is mounted, and where the token lies then."""
    target = top / ("work/deep/mounted" if where == "inside" else "aside/mounted")
    source, token = {
        "itself": (top / "keep/data", "token"),
        "a folder above": (top / "keep", "data/token"),
        "a folder in it": (top / "keep/data/inner", "copy"),
        "a single file": (top / "keep/data/token", ""),
        "a part on a disk of its own": (top / "keep/data/disk", "copy"),
    }[what]
    if what == "a single file":
        target.touch()
    else:
        target.mkdir()
    subprocess.run(["mount", "--bind", str(source), str(target)], check=True)
    return target, target / token if token else target


def prepare(top: Path, what: str, where: str) -> tuple[Path, Path]:
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for folder in ("keep/data/inner", "keep/data/disk", "work/deep", "aside", "safe"):
        (top / folder).mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", str(top / "keep/data/disk")], check=True)
    for file in ("token", ".palaver-data", "inner/copy", "disk/copy"):
        (top / "keep/data" / file).write_text(f"{TOKEN}\n")
    target, token = mount_again(top, what, where)
    assert token.read_text() == f"{TOKEN}\n", "the mount itself works"
    return target, token


async def attempt(level: Level, top: Path, what: str, where: str, target: Path, token: Path) -> dict[str, object]:
    folders = ProjectFolders(top / "keep/data", top / "safe")
    tried = {
        "the mount": target.parent if what == "a single file" else target,
        "around the mount": target.parent,
        "the project": top / ("work" if where == "inside" else "aside"),
        "beside": top / "safe",
    }
    accepted: list[str] = []
    for name, folder in tried.items():
        try:
            folders.check(folder)
        except Forbidden:
            continue
        accepted.append(name)
    sandbox = await sandbox_of(level, (top / "keep/data",), {"PATH": os.environ["PATH"], "HOME": str(top)})
    read: list[str] = []
    for name, root in (("in the project", top / "work"), ("beside", top / "safe")):
        for command in (f"cat {token} {top}/keep/data/token; true", f"cat {token}"):
            workshop = Workshop(root, environment={"PATH": os.environ["PATH"]})
            result = await workshop.run(Shell(sandbox), command=command)
            if TOKEN in result.output:
                read.append(f"{name}: {command}")
    works = await Workshop(top / "safe", environment={"PATH": os.environ["PATH"]}).run(
        Shell(sandbox), command="echo x > made && cat made"
    )
    return {"accepted": accepted, "read": read, "works": works.output}


if __name__ == "__main__":
    chosen: Level = sys.argv[1]  # type: ignore[assignment]
    top, (what, where) = Path(sys.argv[2]), sys.argv[3:5]
    print(json.dumps(asyncio.run(attempt(chosen, top, what, where, *prepare(top, what, where)))))  # noqa: T201
