"""The interpreter, packages and source of the server itself, when they lie in a project: nothing an agent may run changes them.

The rule is `installation.py`. What is changed there would run at the server's next import or child process, outside every
sandbox.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from palaver import installation
from palaver.approval.policy import Policy
from palaver.approval.program_calls import Judging, may_edit
from palaver.approval.turn_grants import Grants
from palaver.backends.claude.proposals import describe as describe_claude
from palaver.backends.pi.proposals import describe as describe_pi
from palaver.tools.files.edit import Edit
from palaver.tools.files.patch import Patch
from palaver.tools.files.write import Write
from palaver.tools.shell.sandbox_level import Level
from palaver.tools.shell.shell import Shell
from tests.levels import sandbox_of
from tests.provider.turn import MemoryTurn
from tests.unit.tools.workshop import Workshop

pytestmark = pytest.mark.anyio

REPOSITORY = Path(__file__).parents[2]
INTERPRETER = "parts/env/.venv/bin/python"
"""Beneath folders of the project, which could be renamed with all that is in them."""
ATTACKS = {
    "overwrite": "echo planted > {0}",
    "append": "echo planted >> {0}",
    "remove": "rm -f {0} && echo planted > {0}",
    "rename": "echo planted > x; chmod +x x; mv -f x {0}",
    "link": "ln -sf /bin/true {0}",
    "move its folder": "mv parts/env/.venv/bin parts/env/old && mkdir parts/env/.venv/bin && echo planted > {0}",
    "move its environment": "mv parts/env/.venv parts/env/old && mkdir -p parts/env/.venv/bin && echo planted > {0}",
    "move a folder above": "mv parts/env parts/old && mkdir -p parts/env/.venv/bin && echo planted > {0}",
    "move the topmost folder": "mv parts old && mkdir -p parts/env/.venv/bin && echo planted > {0}",
    "swap by a link": "mv parts old && ln -s old parts && echo planted > {0}",
    "unmount": "umount parts/env/.venv/bin; umount -l parts/env/.venv/bin; echo planted > {0}",
    "remount": "mount -o remount,rw,bind parts/env/.venv/bin; echo planted > {0}",
    "user namespace": "unshare -Urm sh -c 'mount -o remount,rw,bind parts/env/.venv/bin; umount -l parts/env/.venv/bin;"
    " echo planted > {0}'",
    "another name": "cd parts/env/.venv/lib/../bin && echo planted > python",
    "hard link": "ln {0} y && echo planted > y",
    "mode": "chmod 777 {0}; echo planted > {0}",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the environment and the source of the server in it."""
    project = tmp_path / "project"
    environment = project / "parts/env/.venv"
    for folder in ("bin", "lib/site-packages"):
        (environment / folder).mkdir(parents=True)
    (project / INTERPRETER).write_text("#!/bin/sh\necho honest\n")
    (project / INTERPRETER).chmod(0o755)
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (project / "src/palaver").mkdir(parents=True)
    (project / "src/palaver/app.py").write_text("# honest\n")
    (project / "notes").mkdir()
    places = (environment / "bin", environment / "lib/site-packages", environment / "pyvenv.cfg", project / "src")
    monkeypatch.setattr(installation, "installed_places", lambda: places)
    return project


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("attack", ATTACKS)
async def test_sandboxed_command_does_not_change_the_interpreter(attack: str, level: Level, project: Path) -> None:
    shell = Shell(await sandbox_of(level))
    workshop = Workshop(project, environment={"PATH": os.environ["PATH"]})
    await workshop.run(shell, command=ATTACKS[attack].format(INTERPRETER))
    assert (project / INTERPRETER).read_text() == "#!/bin/sh\necho honest\n"
    assert not (project / INTERPRETER).is_symlink()


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
@pytest.mark.parametrize(
    "target",
    ["parts/env/.venv/lib/site-packages/aiohttp.py", "parts/env/.venv/pyvenv.cfg", "src/palaver/app.py", "src/new.py"],
)
@pytest.mark.parametrize("command", ["echo planted > {0}", "echo planted > notes/x; mv -f notes/x {0}"])
async def test_sandboxed_command_plants_nothing_that_is_imported(
    command: str, target: str, level: Level, project: Path
) -> None:
    workshop = Workshop(project, environment={"PATH": os.environ["PATH"]})
    result = await workshop.run(Shell(await sandbox_of(level)), command=command.format(target))
    assert not result.ok
    assert not (project / target).exists() or "planted" not in (project / target).read_text()


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
async def test_sandboxed_command_runs_it_and_writes_beside_it(level: Level, project: Path) -> None:
    workshop = Workshop(project, environment={"PATH": os.environ["PATH"]})
    command = f"{INTERPRETER} && cat src/palaver/app.py && ls parts/env . && echo mine > notes/a && mv notes/a notes/b"
    result = await workshop.run(Shell(await sandbox_of(level)), command=command)
    assert result.ok, result
    assert "# honest" in result.output
    assert (project / "notes/b").read_text() == "mine\n"


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("root", ["src", "src/palaver"])
async def test_project_within_the_installation_is_read_only(root: str, level: Level, project: Path) -> None:
    workshop = Workshop(project / root, environment={"PATH": os.environ["PATH"]})
    result = await workshop.run(Shell(await sandbox_of(level)), command="ls && echo planted > planted.py")
    assert not result.ok
    assert not (project / root / "planted.py").exists()


def files_with(text: str, folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and text in file.read_text()]


PROTECTED = [
    INTERPRETER,
    "parts/env/.venv/pyvenv.cfg",
    "src/palaver/app.py",
    "src/palaver/new.py",
    "notes/../src/palaver/app.py",
    "link/palaver/app.py",
]


@pytest.mark.parametrize("path", PROTECTED)
async def test_file_tools_do_not_change_it(path: str, project: Path) -> None:
    (project / "link").symlink_to("src")
    workshop = Workshop(project)
    patch = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-# honest\n+# planted\n"
    results = [
        Write().propose({"path": path, "content": "planted"}, project),
        Edit().propose({"path": path, "old": "honest", "new": "planted"}, project),
        Patch().propose({"patch": patch}, project),
        await workshop.run(Write(), path=path, content="planted"),
    ]
    for result in results:
        assert getattr(result, "ok", None) is False, result
    assert not files_with("planted", project)


@pytest.mark.parametrize("path", PROTECTED)
def test_agent_programs_have_to_ask_in_every_mode_that_lets_them_edit(path: str, project: Path) -> None:
    (project / "link").symlink_to("src")
    assert not may_edit(project, path)
    assert may_edit(project, "notes/a.txt")
    given = {"file_path": path, "path": path}
    for describe, tool in ((describe_claude, "Edit"), (describe_claude, "Write"), (describe_pi, "edit")):
        spec, proposal = describe(tool, given, project)
        for mode in ("accept_edits", "auto"):
            verdict = Policy(sandboxed=True).verdict(spec, proposal, mode, (), ())
            assert verdict.decision == "ask", (tool, mode)


def test_program_asks_before_each_call_where_it_lies_in_the_project(project: Path) -> None:
    judging = Judging(Policy(), Grants(None))
    assert judging.restricts(MemoryTurn("Hello", project=project))
    assert not judging.restricts(MemoryTurn("Hello", project=project / "notes"))


def test_real_environment_in_a_project_is_found(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project / "env" / ".venv"], check=True)
    (packages,) = (project / "env/.venv/lib").glob("python3*/site-packages")
    (packages / "p.pth").write_text(f"{REPOSITORY / 'src'}\n{sysconfig.get_path('purelib')}\n")
    (project / "pathlib.py").write_text("raise SystemExit('planted')\n")
    code = (
        "from pathlib import Path; from palaver import installation as i; i.forget_working_folder();"
        "print(i.BARE_INTERPRETER, *i.places_in(Path.cwd()), sep='\\n')"
    )
    python = project / "env/.venv/bin/python"
    out = subprocess.run([python, "-P", "-c", code], cwd=project, capture_output=True, text=True, check=True)
    bare, *places = out.stdout.splitlines()
    assert not Path(bare).is_relative_to(project)
    env = project / "env/.venv"
    assert set(places) == {str(env / "bin"), str(env / "pyvenv.cfg"), str(packages)}


# What Python itself imports to find a module's main (functools) comes before any code of ours.
@pytest.mark.parametrize("name", ["pathlib", "typer", "gc", "asyncio", "msgspec", "sitecustomize", "usercustomize"])
def test_python_started_in_a_project_imports_nothing_of_it(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("raise SystemExit('planted')\n")
    out = subprocess.run(
        [sys.executable, "-m", "palaver", "doctor", "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (out.returncode, "planted" in out.stdout + out.stderr) == (0, False)


def test_project_on_the_module_path_is_taken_off_it(tmp_path: Path) -> None:
    code = "import sys; from palaver import installation as i; i.forget_working_folder(); print(*sys.path, sep='\\n')"
    environment = {**os.environ, "PYTHONPATH": f".:{tmp_path}"}
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert str(tmp_path) not in out.stdout.splitlines()
