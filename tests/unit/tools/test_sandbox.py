"""The sandbox: what is claimed is what was tried."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.tools import sandbox as sandboxes
from palaver.tools.sandbox import Sandbox, probe, unsandboxed
from palaver.tools.shell import Shell
from tests.unit.tools.workshop import Workshop, processes_with

pytestmark = pytest.mark.anyio

needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


async def test_without_bubblewrap_no_sandbox_is_claimed(tmp_path: Path) -> None:
    found = await probe({"PATH": str(tmp_path)})
    assert found == unsandboxed()
    assert (found.level, found.words.startswith("none: runs as you")) == ("none", True)
    assert found.wrap(["ls"], tmp_path) == ["ls"]


@pytest.mark.parametrize("script", ["exit 1", "kill -9 $$", "exec sleep 1000"])
async def test_bubblewrap_that_does_not_work_is_not_claimed(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxes, "PROBE_LIMIT_S", 0.5)
    fake = tmp_path / "bwrap"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    assert await probe({"PATH": f"{tmp_path}:{os.environ['PATH']}"}) == unsandboxed()


def test_hidden_folder_is_covered_but_not_the_root_within_it() -> None:
    root, data = Path("/home/ada/palaver/projects/x"), Path("/home/ada/palaver")
    inside = Sandbox("bubblewrap", "", "bwrap", (data,)).wrap(["ls"], root)
    assert inside.index("--tmpfs") < inside.index(str(root))
    beside = Sandbox("bubblewrap", "", "bwrap", (Path("/home/ada/.palaver"),)).wrap(["ls"], Path("/home/ada"))
    assert beside.index("--tmpfs") > beside.index("/home/ada")


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that is not under /tmp, where a sandboxed command may write."""
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix=".palaver-test-") as folder:
        yield Path(folder)


@needs_bubblewrap
async def test_sandboxed_command_writes_only_beneath_the_root(home: Path) -> None:
    (home / "project").mkdir()
    (home / "data").mkdir()
    (home / "data/token").write_text("the token")
    sandbox = await probe(os.environ, hidden=[home / "data"])
    if sandbox.level == "none":
        pytest.skip("bubblewrap does not work here")
    workshop = Workshop(home / "project", {"PATH": os.environ["PATH"]})

    async def run(command: str) -> tuple[bool, str]:
        result = await workshop.run(Shell(sandbox), command=command)
        return result.ok, result.output

    assert await run("echo hello > a.txt && cat a.txt && pwd") == (True, f"hello\n{home}/project\n")
    assert (home / "project/a.txt").read_text() == "hello\n"
    assert await run("touch ../stray 2>/dev/null || echo refused") == (True, "refused\n")
    assert await run("cat ../data/token 2>/dev/null || echo hidden") == (True, "hidden\n")
    assert await run(f"kill -0 {os.getpid()} 2>/dev/null || echo unseen") == (True, "unseen\n")
    assert not (home / "stray").exists()


@needs_bubblewrap
async def test_sandboxed_command_works_in_a_root_given_by_a_link_and_has_a_place_for_drafts(home: Path) -> None:
    (home / "real").mkdir()
    (home / "link").symlink_to("real")
    sandbox = await probe(os.environ)
    if sandbox.level == "none":
        pytest.skip("bubblewrap does not work here")
    workshop = Workshop(home / "link", {"PATH": os.environ["PATH"], "TMPDIR": str(home)})
    result = await workshop.run(Shell(sandbox), command="touch made && f=$(mktemp) && rm $f && echo ok")
    assert (result.ok, result.output) == (True, "ok\n")
    assert (home / "real/made").exists()


@needs_bubblewrap
async def test_sandboxed_command_is_stopped_with_all_it_started(home: Path) -> None:
    sandbox = await probe(os.environ)
    if sandbox.level == "none":
        pytest.skip("bubblewrap does not work here")
    workshop = Workshop(home, {"PATH": os.environ["PATH"]})
    result = await workshop.run(
        Shell(sandbox), command="setsid sleep 987654 & trap '' TERM; sleep 987654", timeout_s=0.2
    )
    assert result.error_code == "timed_out"
    assert processes_with("987654") == []
