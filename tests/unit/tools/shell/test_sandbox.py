"""The sandbox: what is claimed is what was tried, and the ladder takes the strongest that works."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from palaver.tools.shell import sandbox as sandboxes
from palaver.tools.shell.sandbox import HOME_SECRETS, Sandbox, probe, unsandboxed
from palaver.tools.shell.sandbox_level import Level
from palaver.tools.shell.shell import Shell
from tests.levels import sandbox_of
from tests.provider.programs import programs_outside
from tests.unit.tools.workshop import Workshop, processes_with

pytestmark = pytest.mark.anyio

BOTH: tuple[Level, ...] = ("bubblewrap", "landlock")


def bwrap_in(folder: Path) -> dict[str, str]:
    """A PATH on which a bubblewrap is found that is never run."""
    (folder / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (folder / "bwrap").chmod(0o755)
    return {"PATH": str(folder)}


@pytest.mark.parametrize(
    ("working", "chosen"),
    [
        ({"bubblewrap", "landlock"}, "bubblewrap"),
        ({"bubblewrap"}, "bubblewrap"),
        ({"landlock"}, "landlock"),
        (set[str](), "none"),
    ],
)
async def test_strongest_that_works_is_chosen(
    working: set[str], chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    tried: list[str] = []

    async def works(sandbox: Sandbox) -> frozenset[str] | None:
        tried.append(sandbox.level)
        return frozenset() if sandbox.level in working else None

    found = await probe(bwrap_in(tmp_path), works=works)
    assert found.level == chosen
    # bubblewrap without what its older versions do not know.
    assert tried == (["bubblewrap"] if chosen == "bubblewrap" else ["bubblewrap", "bubblewrap", "landlock"])


@pytest.mark.parametrize(
    ("strongest", "tried_first"), [("bubblewrap", "bubblewrap"), ("landlock", "landlock"), ("none", "")]
)
async def test_nothing_stronger_than_the_setting_is_tried(
    strongest: Level, tried_first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    tried: list[str] = []

    async def works(sandbox: Sandbox) -> frozenset[str] | None:
        tried.append(sandbox.level)
        return None

    found = await probe(bwrap_in(tmp_path), works=works, strongest=strongest)
    assert (found.level, "".join(tried[:1])) == ("none", tried_first)


async def test_words_say_what_the_trial_could_do_all_the_same(tmp_path: Path) -> None:
    async def works(sandbox: Sandbox) -> frozenset[str] | None:
        return frozenset({"abstract_socket"}) if sandbox.options else None

    found = await probe(bwrap_in(tmp_path), works=works)
    assert found.words.startswith("bubblewrap: writes only in the project folder and a /tmp of its own")
    assert found.words.endswith("Not held: the network, abstract sockets")


async def test_bubblewrap_in_a_folder_that_agents_write_to_is_not_taken(tmp_path: Path) -> None:
    async def works(sandbox: Sandbox) -> frozenset[str] | None:
        return frozenset()

    (tmp_path / "project").mkdir()
    environment = bwrap_in(tmp_path / "project")
    found = await probe(environment, works=works, programs=programs_outside(tmp_path / "project"))
    elsewhere = await probe(environment, works=works, programs=programs_outside(tmp_path / "other"))
    assert (found.level != "bubblewrap", elsewhere.level) == (True, "bubblewrap")


async def test_what_is_not_there_is_not_even_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    async def works(sandbox: Sandbox) -> frozenset[str] | None:
        raise AssertionError(sandbox.level)

    found = await probe({"PATH": str(tmp_path)}, works=works)
    assert (found.level, found.words) == ("none", unsandboxed().words)
    assert found.words.startswith("none: runs as you")
    assert found.wrap(["ls"], tmp_path) == ["ls"]


@pytest.mark.parametrize(
    "script", ["exit 1", "kill -9 $$", "exec sleep 1000", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"']
)
async def test_bubblewrap_that_does_not_hold_is_not_claimed(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of them runs everything, outside."""
    monkeypatch.setattr(sandboxes, "PROBE_LIMIT_S", 0.5)
    fake = tmp_path / "bwrap"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    found = await probe({"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert found.level != "bubblewrap"


async def test_landlock_that_the_kernel_does_not_have_is_not_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "landlock.py"
    refusing.write_text("import sys\nsys.exit(125)\n")
    monkeypatch.setattr(sandboxes, "_LANDLOCK", refusing)
    assert (await probe({"PATH": str(tmp_path)})).words == unsandboxed().words


async def test_keys_of_the_home_folder_and_the_sockets_of_the_session_are_hidden(tmp_path: Path) -> None:
    async def works(sandbox: Sandbox) -> frozenset[str] | None:
        return frozenset()

    environment = {**bwrap_in(tmp_path), "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    found = await probe(environment, hidden=[tmp_path / "data"], works=works)
    assert found.hidden == (tmp_path / "data", *(tmp_path / name for name in HOME_SECRETS), tmp_path / "run")


def test_hidden_folder_is_covered_but_not_the_root_within_it(tmp_path: Path) -> None:
    root, data = tmp_path / "palaver/projects/x", tmp_path / "palaver"
    root.mkdir(parents=True)
    (tmp_path / ".data").mkdir()
    (tmp_path / ".netrc").touch()
    inside = Sandbox("bubblewrap", "", "bwrap", hidden=(data,)).wrap(["ls"], root)
    assert inside.index("--tmpfs") < inside.index(str(root))
    hidden = (tmp_path / ".data", tmp_path / ".netrc", tmp_path / "absent")
    beside = Sandbox("bubblewrap", "", "bwrap", hidden=hidden).wrap(["ls"], tmp_path)
    assert beside.index(str(tmp_path / ".data")) > beside.index(str(tmp_path))
    assert beside[beside.index(str(tmp_path / ".netrc")) - 2 :][:2] == ["--ro-bind", "/dev/null"]
    assert str(tmp_path / "absent") not in beside


# -- those that work here, by running them


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that is not under /tmp, where a sandboxed command may write."""
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix=".palaver-test-") as folder:
        yield Path(folder)


@pytest.mark.parametrize("level", BOTH)
async def test_sandboxed_command_writes_only_beneath_the_root(level: Level, home: Path) -> None:
    (home / "project").mkdir()
    (home / "data").mkdir()
    (home / "data/token").write_text("the token")
    (home / "key").write_text("a key")
    sandbox = await sandbox_of(level, (home / "data", home / "key"))
    workshop = Workshop(home / "project", environment={"PATH": os.environ["PATH"]})

    async def run(command: str) -> tuple[bool, str]:
        result = await workshop.run(Shell(sandbox), command=command)
        return result.ok, result.output

    assert await run("echo hello > a.txt && cat a.txt && pwd") == (True, f"hello\n{home}/project\n")
    assert (home / "project/a.txt").read_text() == "hello\n"
    assert await run("mkdir b && mv a.txt b && ls b") == (True, "a.txt\n")
    assert await run("touch ../stray 2>/dev/null || echo refused") == (True, "refused\n")
    assert await run("ln -s ../data link; cat link/token 2>/dev/null || echo hidden") == (True, "hidden\n")
    assert await run("test -s ../key && cat ../key 2>/dev/null || echo hidden") == (True, "hidden\n")
    await run("echo x >> ../key")
    assert await run(f"kill -0 {os.getpid()} 2>/dev/null || echo unseen") == (True, "unseen\n")
    assert await run(f"cat /proc/{os.getpid()}/environ 2>/dev/null || echo unseen") == (True, "unseen\n")
    assert not (home / "stray").exists()
    assert (home / "key").read_text() == "a key"


@pytest.mark.parametrize("level", BOTH)
async def test_sandboxed_command_has_a_place_for_drafts(level: Level, home: Path) -> None:
    (home / "real").mkdir()
    sandbox = await sandbox_of(level)
    workshop = Workshop(home / "real", environment={"PATH": os.environ["PATH"], "TMPDIR": str(home)})
    result = await workshop.run(
        Shell(sandbox), command="touch made && f=$(mktemp) && rm $f && echo ok > /dev/null && echo ok"
    )
    assert (result.ok, result.output) == (True, "ok\n")
    assert (home / "real/made").exists()


@pytest.mark.parametrize("level", BOTH)
async def test_project_within_a_hidden_folder_can_be_worked_in(level: Level, home: Path) -> None:
    (home / "data/project").mkdir(parents=True)
    (home / "data/token").write_text("the token")
    sandbox = await sandbox_of(level, (home / "data",))
    workshop = Workshop(home / "data/project", environment={"PATH": os.environ["PATH"]})
    result = await workshop.run(Shell(sandbox), command="echo a > b; cat b; cat ../token 2>/dev/null || echo hidden")
    assert (result.ok, result.output) == (True, "a\nhidden\n")


@pytest.mark.parametrize("level", BOTH)
async def test_sandboxed_command_is_stopped_with_all_it_started(level: Level, home: Path) -> None:
    sandbox = await sandbox_of(level)
    workshop = Workshop(home, environment={"PATH": os.environ["PATH"]})
    result = await workshop.run(
        Shell(sandbox), command="setsid sleep 987654 & trap '' TERM; sleep 987654", timeout_s=0.2
    )
    assert result.error_code == "timed_out"
    assert processes_with("987654") == []


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's")
def test_launcher_without_landlock_runs_nothing(tmp_path: Path) -> None:
    made = tmp_path / "made"
    program = (
        "import runpy, sys; module = runpy.run_path(sys.argv.pop(1));"
        "module['restrict'].__globals__['OLDEST'] = 99; module['main']()"
    )
    argv = [sys.executable, "-c", program, str(sandboxes._LANDLOCK), "--", shutil.which("touch") or "touch", str(made)]
    ended = subprocess.run(argv, capture_output=True, timeout=30, check=False)
    assert ended.returncode == 125
    assert b"was not run" in ended.stderr
    assert not made.exists()


@pytest.mark.parametrize(
    ("level", "root", "asks"), [("none", ".", True), ("none", "project", False), ("landlock", ".", False)]
)
def test_reading_command_asks_where_nothing_hides_the_servers_data_from_it(
    level: Level, root: str, asks: bool, tmp_path: Path
) -> None:
    for name in ("data", "project"):
        (tmp_path / name).mkdir()
    shell = Shell(Sandbox(level, hidden=(tmp_path / "data", tmp_path / "absent")))
    proposal = Workshop(tmp_path / root).propose(shell, command="grep -r x .")
    assert proposal.reads_only is not asks


def test_level_none_promises_no_more_than_an_end() -> None:
    assert replace(unsandboxed(), words="") == Sandbox()


async def test_probe_works_where_the_temporary_folder_has_a_long_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = await probe({"PATH": os.environ["PATH"]})
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert (await probe({"PATH": os.environ["PATH"]})).level == usual.level
