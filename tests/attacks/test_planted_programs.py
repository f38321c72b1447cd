"""Programs planted in a project under the names of those that the server starts: none of them runs.

The rule is `backends/program_lookup.py`: a program that is started by its name lies outside every project folder, and so do
the interpreters that it finds on its PATH. Each planted program leaves a mark in a folder beside the projects. What is planted
lies in the project that the turn works in, in another one, or in one around it.
"""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from palaver.agents.backends import Backends
from palaver.agents.roster import Roster, Source
from palaver.backends.acp.backend import AcpBackend
from palaver.backends.acp.installation import readiness as acp_readiness
from palaver.backends.base import Backend, Readiness
from palaver.backends.claude import installation as claude_installation
from palaver.backends.claude.backend import ClaudeBackend
from palaver.backends.codex import installation as codex_installation
from palaver.backends.codex.backend import CodexBackend
from palaver.backends.pi.backend import PiBackend
from palaver.backends.pi.installation import readiness as pi_readiness
from palaver.backends.process import allowed_environment
from palaver.backends.program_lookup import ProgramLookup
from palaver.clock import ManualClock
from palaver.conversation.folders import ProjectFolders
from palaver.errors import AgentError, NotInstalled
from palaver.faces.socket.voices import Prepare, SpeechFailed, speaker_of
from palaver.schema.records import AgentRecord, McpServer
from palaver.tools.mcp.servers import McpServers
from palaver.tools.shell.sandbox import probe
from palaver.tools.shell.sandbox_level import Level
from palaver.tools.shell.shell import Shell
from tests.attacks.hostile_repository import Canaries
from tests.levels import sandbox_of
from tests.provider.turn import MemoryTurn, drive
from tests.unit.tools.workshop import Workshop

pytestmark = pytest.mark.anyio

SYSTEM = "/usr/bin:/bin"
INTERPRETER = "palaver-test-interpreter"


class Ground:
    """A project with `bin` on the server's PATH, as an activated environment has it; and the one in which turns run."""

    def __init__(self, at: Path, working: str = ".") -> None:
        self.project = at / "project"
        self.working = (self.project / working).resolve()
        self.outside = at / "outside"
        self.canaries = Canaries(at / "marks")
        for folder in (self.project / "bin", self.outside, self.canaries.folder, at / "data"):
            folder.mkdir(parents=True)
        self.working.mkdir(parents=True, exist_ok=True)
        self.folders = ProjectFolders(at / "data", at / "elsewhere")
        self.environment = {"PATH": f"{self.project / 'bin'}:{self.outside}:{SYSTEM}", "HOME": str(at / "home")}

    async def chosen(self) -> ProgramLookup:
        """Programs as a server finds them whose person has chosen these projects."""
        await self.folders.remember(map(str, (self.project, self.working)))
        return self.folders.programs

    def make_repository(self) -> None:
        subprocess.run(["git", "init", "-q", str(self.working)], check=True)

    def plant(self, name: str, says: str | None = None) -> Path:
        return Path(self.canaries.script(self.project / "bin" / name, name, says))

    def script_outside(self, name: str) -> None:
        """An honest program whose interpreter is found on the PATH, as those written in JavaScript have it."""
        (self.outside / name).write_text(f"#!/usr/bin/env {INTERPRETER}\n")
        (self.outside / name).chmod(0o755)


@pytest.fixture(params=[".", "../sibling", "part/of/it"], ids=["own", "sibling", "parent"])
def ground(tmp_path: Path, request: pytest.FixtureRequest) -> Ground:
    """Planted in the turn's own project, in a sibling of it, or in one around it."""
    return Ground(tmp_path, request.param)


BACKENDS: Mapping[str, Callable[[Mapping[str, str]], Backend]] = {
    "claude": lambda environment: ClaudeBackend(environment, ManualClock()),
    "codex": lambda environment: CodexBackend(ManualClock(), environment),
    "pi": lambda environment: PiBackend(ManualClock(), environment),
    "acp": lambda environment: AcpBackend(ManualClock(), environment),
}


def record_of(backend: str, **more: object) -> AgentRecord:
    return AgentRecord(id=backend, name=backend, backend=backend, command=(backend,), **more)  # type: ignore[arg-type]


async def run_turn(ground: Ground, backend: str, agent: AgentRecord) -> AgentError:
    """How the turn failed."""
    made = BACKENDS[backend](ground.environment)
    try:
        programs = await ground.chosen()
        turn = await drive(made, MemoryTurn("Hello", agent=agent, project=ground.working, programs=programs))
    finally:
        await made.close()
    assert turn.error is not None
    return turn.error


@pytest.mark.parametrize("name", BACKENDS)
async def test_agent_program_in_the_project_is_not_started(name: str, ground: Ground) -> None:
    ground.plant(name)
    error = await run_turn(ground, name, record_of(name))
    assert isinstance(error, NotInstalled)
    assert "only in a project folder" in error.message
    assert not ground.canaries.ran


async def test_pi_without_a_command_is_not_taken_from_the_project(ground: Ground) -> None:
    ground.plant("pi")
    agent = AgentRecord(id="pi", name="Pi", backend="pi")
    error = await run_turn(ground, "pi", agent)
    assert isinstance(error, NotInstalled)
    assert "only in a project folder" in error.message
    assert not ground.canaries.ran


@pytest.mark.parametrize("name", BACKENDS)
async def test_interpreter_in_the_project_is_not_started_by_an_agent_program(name: str, ground: Ground) -> None:
    ground.script_outside(name)
    ground.plant(INTERPRETER)
    await run_turn(ground, name, record_of(name))
    assert not ground.canaries.ran


@pytest.mark.parametrize("name", BACKENDS)
async def test_agent_program_of_a_relative_entry_is_not_started(
    name: str, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground.plant(name)
    monkeypatch.chdir(ground.project)
    ground.environment["PATH"] = f"bin:{SYSTEM}"
    error = await run_turn(ground, name, record_of(name))
    assert isinstance(error, NotInstalled)
    assert "was not found" in error.message
    assert not ground.canaries.ran


def test_bundled_program_that_is_missing_is_not_replaced_from_the_project(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claude_installation, "SDK", "json")
    monkeypatch.setattr(codex_installation, "PACKAGE", "no_such_package")
    ground.plant("claude")
    ground.plant("codex")
    with pytest.raises(NotInstalled, match="only in a project folder"):
        claude_installation.executable(ground.environment, [ground.project])
    with pytest.raises(NotInstalled, match="only in a project folder"):
        codex_installation.find_codex(ground.environment, [ground.project])


def test_readiness_passes_over_relative_entries(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_installation, "SDK", "json")
    monkeypatch.setattr(codex_installation, "PACKAGE", "no_such_package")
    for name in BACKENDS:
        ground.plant(name)
    monkeypatch.chdir(ground.project)
    environment = {"PATH": "bin:.", "HOME": str(ground.outside)}
    assert not claude_installation.readiness(environment).details["installed"]
    assert not codex_installation.readiness(environment).details["installed"]
    assert not pi_readiness(environment).details["installed"]
    assert not acp_readiness(environment, record_of("acp")).details["installed"]


async def test_version_is_not_asked_of_a_program_in_a_project(ground: Ground) -> None:
    planted = ground.plant("codex", says="9.9.9")
    ready = Readiness(True, "Codex is installed.", details={"installed": True, "ask_version": str(planted)})
    clock = ManualClock()
    source = Source(lambda: CodexBackend(clock, {}), lambda _: ready)
    roster = Roster([record_of("codex")], {"codex": source}, clock=clock)
    projects = [ground.project]
    backends = Backends(roster, clock, ground.environment, lambda: projects)
    (entry,) = await backends.entries()
    assert entry.version is None
    assert not ground.canaries.ran
    projects.clear()
    (entry,) = await backends.entries()
    assert entry.version == "9.9.9", "the program can be asked where it is no project's"


async def test_mcp_server_in_the_project_is_not_started(ground: Ground) -> None:
    ground.plant("npx")
    ground.plant(INTERPRETER)
    ground.script_outside("uvx")
    agent = AgentRecord(
        id="a",
        name="A",
        backend="api",
        mcp_servers=(
            McpServer(name="one", command=("npx", "server")),
            McpServer(name="two", command=("uvx", "server")),
        ),
    )
    servers = McpServers(ground.environment, ManualClock())
    try:
        await servers.tools_of(agent, ground.working, await ground.chosen())
    finally:
        await servers.close()
    assert not ground.canaries.ran


@pytest.mark.parametrize("level", ["bubblewrap", "landlock", "none"])
async def test_reading_command_in_the_project_is_not_started(level: Level, ground: Ground) -> None:
    (ground.working / "a.txt").write_text("a file\n")
    for name in ("ls", "cat", "git"):
        ground.plant(name, says="planted")
    workshop = Workshop(ground.working, environment=ground.environment, programs=await ground.chosen())
    result = await workshop.run(Shell(await sandbox_of(level)), command="ls")
    assert "a.txt" in result.output
    assert "planted" not in result.output
    assert not ground.canaries.ran


@pytest.mark.parametrize("level", ["bubblewrap", "none"])
async def test_git_in_the_project_is_not_started_to_see_changes(level: Level, ground: Ground) -> None:
    ground.make_repository()
    ground.plant("git")
    workshop = Workshop(ground.working, environment=ground.environment, programs=await ground.chosen())
    result = await workshop.run(Shell(await sandbox_of(level)), command="echo x > new.txt; true")
    assert result.ok
    assert not ground.canaries.ran


async def test_sandbox_program_in_the_project_is_not_started(ground: Ground) -> None:
    ground.plant("bwrap")
    found = await probe(ground.environment, programs=await ground.chosen())
    assert not found.program.startswith(str(ground.project))
    assert not ground.canaries.ran


def preparing(environment: Mapping[str, str], projects: Sequence[Path]) -> Prepare:
    """As the composition root does it."""
    programs = ProgramLookup(lambda: projects, Path("/nowhere"))
    return lambda program: programs.prepare((program,), allowed_environment(environment))


async def test_speech_program_in_a_project_is_not_started(ground: Ground) -> None:
    ground.plant("espeak-ng", says="sound")
    environment = {"PATH": str(ground.project / "bin")}
    assert speaker_of(environment, preparing(environment, [ground.project])) is None
    # Chosen as a project only after the server has started.
    projects: list[Path] = []
    speaker = speaker_of(environment, preparing(environment, projects))
    assert speaker is not None
    projects.append(ground.project)
    with pytest.raises(SpeechFailed, match="only in a project folder"):
        await speaker.speak("Hello.")
    assert not ground.canaries.ran


async def test_speech_program_sees_no_secret_of_the_server(ground: Ground) -> None:
    told = ground.outside / "espeak-ng"
    told.write_text("#!/bin/sh\nenv\n")
    told.chmod(0o755)
    environment = {"PATH": f"{ground.outside}:{SYSTEM}", "OPENAI_API_KEY": "canary-77"}
    speaker = speaker_of(environment, preparing(environment, ()))
    assert speaker is not None
    audio = await speaker.speak("Hello.")
    assert b"PATH=" in audio.data
    assert b"canary-77" not in audio.data
