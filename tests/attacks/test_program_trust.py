"""Trust in a folder's settings for an agent program: bound to their bytes, given by the owner alone, gone with any change."""

import os
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from palaver.agents.program_settings import ProgramTrust
from palaver.agents.trust import Trust
from palaver.backends.base import Backend
from palaver.backends.codex.backend import CodexBackend
from palaver.backends.codex.backend import _project_folders as codex_folders
from palaver.backends.pi.backend import PiBackend
from palaver.backends.project_settings import (
    CLAUDE,
    CODEX,
    GEMINI,
    OPENCODE,
    OTHER,
    PROGRAMS,
    ProgramSettings,
    acp_program,
    find_settings,
    settings_of,
)
from palaver.client import Client
from palaver.clock import SystemClock
from palaver.errors import Conflict, Forbidden, Invalid, NotFound
from palaver.people.authentication import KeyRecord, Kind, token_hash
from palaver.people.token_files import write_key_records
from tests.attacks.hostile_repository import Canaries, plant
from tests.cli import subjects
from tests.cli.rig import Place, Subject, stand
from tests.cli.subjects.codex import environment_of as codex_environment
from tests.cli.subjects.pi import environment_of as pi_environment
from tests.flows.served import serving
from tests.provider.turn import deny

HOME = "/nonexistent-home"


def look(program: ProgramSettings, project: Path) -> str | None:
    return find_settings(program, project, HOME, hashed=True).hash


# -- what is trusted


def written(project: Path) -> None:
    (project / ".codex").mkdir()
    (project / ".codex" / "config.toml").write_text("a = 1\n")


def append(project: Path) -> None:
    with (project / ".codex" / "config.toml").open("a") as file:
        file.write("b = 2\n")


def same_size(project: Path) -> None:
    at = project / ".codex" / "config.toml"
    times = at.stat()
    at.write_text("a = 2\n")
    os.utime(at, ns=(times.st_atime_ns, times.st_mtime_ns))


def add_file(project: Path) -> None:
    (project / ".codex" / "hooks.json").write_text("{}")


def remove(project: Path) -> None:
    (project / ".codex" / "config.toml").unlink()


def rename(project: Path) -> None:
    (project / ".codex" / "config.toml").rename(project / ".codex" / "config.toml2")


def link_elsewhere(project: Path) -> None:
    (project / "evil.toml").write_text("a = 1\n")
    (project / ".codex" / "config.toml").unlink()
    (project / ".codex" / "config.toml").symlink_to("../evil.toml")


def link_folder(project: Path) -> None:
    (project / ".codex").rename(project / "elsewhere")
    (project / ".codex").symlink_to("elsewhere")


def plant_above(project: Path) -> None:
    (project.parent / ".codex").mkdir()
    (project.parent / ".codex" / "config.toml").write_text("a = 1\n")


CHANGES: list[Callable[[Path], None]] = [
    *(append, same_size, add_file, remove, rename),
    *(link_elsewhere, link_folder, plant_above),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: str(getattr(change, "__name__", change)))
async def test_trust_ends_with_any_change_of_the_files(change: Callable[[Path], None], tmp_path: Path) -> None:
    project = tmp_path / "above" / "project"
    project.mkdir(parents=True)
    written(project)
    trust = Trust(tmp_path / "trusted.json")
    hash = look(CODEX, project)
    assert hash is not None
    await ProgramTrust(trust, HOME).give(project, "codex", hash)
    assert (await settings_of(CODEX, project, HOME, trust)).trusted
    change(project)
    assert not (await settings_of(CODEX, project, HOME, trust)).trusted


async def test_change_behind_a_link_ends_the_trust(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    written(project)
    link_elsewhere(project)
    before = look(CODEX, project)
    (project / "evil.toml").write_text("a = 3\n")
    assert look(CODEX, project) != before


async def test_trust_is_of_one_folder_and_one_program(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for project in (one, other):
        project.mkdir()
        written(project)
    (tmp_path / "link").symlink_to(one)
    trust = Trust(tmp_path / "trusted.json")
    hash = look(CODEX, one)
    assert hash is not None
    await ProgramTrust(trust, HOME).give(one, "codex", hash)
    assert (await settings_of(CODEX, tmp_path / "link", HOME, trust)).trusted, "the same folder by another name"
    assert not (await settings_of(CODEX, other, HOME, trust)).trusted
    assert not (await settings_of(OTHER, one, HOME, trust)).trusted
    await ProgramTrust(trust, HOME).take(one, "codex")
    assert not (await settings_of(CODEX, one, HOME, trust)).trusted


async def test_only_what_was_looked_at_is_trusted(tmp_path: Path) -> None:
    written(tmp_path)
    programs = ProgramTrust(Trust(tmp_path / "trusted.json"), HOME)
    hash = look(CODEX, tmp_path)
    assert hash is not None
    append(tmp_path)
    with pytest.raises(Conflict):
        await programs.give(tmp_path, "codex", hash)
    with pytest.raises(NotFound):
        await programs.give(tmp_path, "emacs", hash)


@pytest.mark.parametrize("kind", ["pipe", "endless", "loop", "deep"])
async def test_settings_that_cannot_be_read_to_their_end_are_never_trusted_and_block_nobody(
    kind: str, tmp_path: Path
) -> None:
    folder = tmp_path / ".codex"
    folder.mkdir()
    match kind:
        case "pipe":
            os.mkfifo(folder / "config.toml")
        case "endless":
            (folder / "config.toml").symlink_to("/dev/zero")
        case "loop":
            (folder / "again").symlink_to(folder)
        case _:
            (folder / "/".join("d" * 40)).mkdir(parents=True)
    hash = look(CODEX, tmp_path)
    if hash is None:
        with pytest.raises(Invalid):
            await ProgramTrust(Trust(tmp_path / "trusted.json"), HOME).give(tmp_path, "codex", "0" * 64)
    else:
        # A device or a pipe is not read; that it is none any more is a change.
        (folder / "config.toml").unlink()
        (folder / "config.toml").write_text("")
        assert look(CODEX, tmp_path) != hash


async def test_damaged_trust_trusts_nothing(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "trusted.json").write_text("{")
    trust = Trust(tmp_path / "trusted.json")
    assert not (await settings_of(CODEX, tmp_path, HOME, trust)).trusted
    assert trust.problem is not None


async def test_own_home_above_a_project_is_the_persons_and_an_empty_folder_is_nothing(tmp_path: Path) -> None:
    project = tmp_path / "home" / "project"
    project.mkdir(parents=True)
    written(tmp_path / "home")
    (project / ".codex").mkdir()
    assert find_settings(CODEX, project, str(tmp_path / "home"), hashed=False).paths == ()
    assert find_settings(CODEX, project, HOME, hashed=False).paths == ("../.codex",)


# -- programs in trusted folders


def opened(subject: Subject, make: Callable[[Place], Backend]) -> Subject:
    @asynccontextmanager
    async def open(place: Place) -> AsyncIterator[Backend]:
        backend = make(place)
        try:
            yield backend
        finally:
            await backend.close()

    opening: Callable[[Place], AbstractAsyncContextManager[Backend]] = open
    return replace(subject, open=opening)


@pytest.mark.parametrize(
    ("name", "canary", "file"),
    [
        pytest.param("codex", "codex-mcp", ".codex/config.toml"),
        pytest.param("pi", "pi-extension", ".pi/settings.json", marks=pytest.mark.long),
    ],
)
async def test_trusted_settings_are_read_until_they_change(name: str, canary: str, file: str, tmp_path: Path) -> None:
    canaries = Canaries(tmp_path / "ran")
    trust = Trust(tmp_path / "trusted.json")

    def make(place: Place) -> Backend:
        if name == "codex":
            return CodexBackend(SystemClock(), codex_environment(place), trust=trust)
        return PiBackend(SystemClock(), pi_environment(place), trust=trust)

    async with stand(opened(subjects.BY_NAME[name], make), tmp_path) as at_work:
        project, home = at_work.place.project, at_work.place.home
        plant(project, canaries, git=False)
        config = {path: path.read_bytes() for path in home.rglob("config.toml")}
        programs = ProgramTrust(trust, str(home))
        rows = {row.program: row for row in await programs.list(project)}
        await programs.give(project, name, rows[name].hash or "")
        turn = await at_work.say("!say hello there", decide=deny)
        assert turn.error is None
        assert canary in canaries.ran, "a trusted folder's settings count"
        for mark in canaries.folder.iterdir():
            mark.unlink()
        with (project / file).open("a") as changed:
            changed.write("\n")
        turn = await at_work.say("!say and now", decide=deny, state=turn.state)
        assert turn.error is None
    assert canaries.ran == set()
    assert {path: path.read_bytes() for path in config} == config


def _mark_root(folder: Path, marker: str) -> None:
    if marker == ".git":
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    else:
        (folder / marker).mkdir()


@pytest.mark.parametrize("marker", [".git", ".hg"])
@pytest.mark.parametrize("trusted", ["", "mid", "mid/low", "mid/low/part"])
async def test_codex_does_not_read_a_folder_that_was_trusted_in_codex_alone(
    trusted: str, marker: str, tmp_path: Path
) -> None:
    """Each folder from the root of the project down, which the person's own markers name."""
    canaries = Canaries(tmp_path / "ran")
    async with stand(subjects.BY_NAME["codex"], tmp_path) as at_work:
        top, config = at_work.place.project, at_work.place.home / ".codex" / "config.toml"
        part = top / "mid" / "low" / "part"
        part.mkdir(parents=True)
        _mark_root(top, marker)
        plant(top / trusted, canaries, git=False)
        more = f'project_root_markers = [".git", ".hg"]\n{config.read_text()}'
        config.write_text(f'{more}\n[projects."{top / trusted}"]\ntrust_level = "trusted"\n')
        turn = await at_work.say("!say hello there", decide=deny, project=part)
        assert turn.error is None
    assert canaries.ran == set()


@pytest.mark.parametrize("home", [None, "/top", "/top/mid", "/elsewhere"])
def test_every_folder_above_the_project_is_named_to_codex(home: str | None, tmp_path: Path) -> None:
    part = tmp_path / "top/mid/part"
    part.mkdir(parents=True)
    own = str(tmp_path) + home if home else None
    every = {str(folder) for folder in (part, *part.parents)}
    assert codex_folders(part, own, trusted=False) == ((), tuple(map(str, (part, *part.parents))))
    covered, others = codex_folders(part, own, trusted=True)
    assert {*covered, *others} == every
    assert not {*covered} & {*others}
    assert str(part) in covered
    if home in ("/top", "/top/mid"):
        assert own in others, "a hash covers nothing in the person's own home, or above it"


# -- who may trust


@pytest.mark.parametrize("role", ["human", "agent", "observer"])
async def test_nobody_but_the_owner_may_look_or_trust(role: Kind, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    written(project)
    token = f"token-of-the-{role}"
    environment = {"PATH": os.defpath, "HOME": str(tmp_path / "home")}
    async with serving(tmp_path / "data", environment=environment) as server:
        write_key_records(tmp_path / "data", [KeyRecord(name=role, kind=role, hash=token_hash(token))])
        async with Client.connect(server.url, server.token) as owner:
            rows = {row.program: row for row in await owner.program_settings(str(project))}
            hash = rows["codex"].hash or ""
            async with Client.connect(server.url, token) as other:
                for attempt in (
                    other.program_settings(str(project)),
                    other.trust_program(str(project), "codex", hash),
                    other.distrust_program(str(project), "codex"),
                ):
                    with pytest.raises(Forbidden):
                        await attempt
            assert (await owner.trust_program(str(project), "codex", hash)).trusted
            append(project)
            assert not {row.program: row for row in await owner.program_settings(str(project))}["codex"].trusted
            with pytest.raises(Conflict):
                await owner.trust_program(str(project), "codex", hash)
            assert not (await owner.distrust_program(str(project), "codex")).trusted


# -- the table


def test_every_backend_that_drives_a_program_has_its_table() -> None:
    folder = Path(__file__).parents[2] / "src" / "palaver" / "backends"
    drivers = {path.parent.name for path in folder.glob("*/backend.py")} - {"demo", "local", "script"}
    assert drivers <= set(PROGRAMS), "a backend without a row in backends/project_settings.py"
    for name in drivers:
        assert "settings_of(" in (folder / name / "backend.py").read_text()


def test_documentation_lists_what_every_program_reads() -> None:
    text = (Path(__file__).parents[2] / "docs" / "backends.md").read_text()
    for program in PROGRAMS.values():
        assert program.switched_off in text, program.id
        for path in program.reads if program is not OTHER else ():
            assert f"`{path}`" in text, f"{program.id} reads {path}"


@pytest.mark.parametrize(
    ("command", "program"),
    [
        (("gemini", "--acp"), GEMINI),
        (("npx", "-y", "@google/gemini-cli", "--acp"), GEMINI),
        (("npx", "@google/gemini-cli@latest", "--acp"), GEMINI),
        (("node", "/opt/gemini-cli/bundle/gemini.js", "--acp"), GEMINI),
        (("/usr/local/bin/opencode", "acp"), OPENCODE),
        (("/x/opencode-ai/bin/opencode.exe", "acp"), OPENCODE),
        (("npx", "opencode-ai@1.18", "acp"), OPENCODE),
        (("npm", "exec", "--yes", "--", "@google/gemini-cli", "--acp"), GEMINI),
        (("uv", "tool", "run", "opencode", "acp"), OPENCODE),
        (("sh", "-c", "exec $0", "/x/opencode-ai/bin/opencode.exe"), OTHER),
        (("goose", "acp", "--provider", "gemini"), OTHER),
        (("cline", "--acp", "-m", "gemini"), OTHER),
        (("/home/u/opencode/bin/strange",), OTHER),
        (("/home/u/gemini/strange.js", "opencode"), OTHER),
        (("node", "/home/u/node_modules/gemini/strange.js"), OTHER),
        (("node", "--require", "/home/u/gemini.js", "strange.js"), OTHER),
        (("npx", "-y", "strange", "gemini"), OTHER),
        (("npx", "-p", "strange", "gemini"), OTHER),
        (("npx", "@evil/gemini-cli"), OTHER),
        (("npx", "@opencode/strange"), OTHER),
        (("npm", "gemini"), OTHER),
        (("uv", "run", "strange", "gemini"), OTHER),
        (("env", "X=gemini", "strange"), OTHER),
        (("npx",), OTHER),
        (("claude-agent-acp",), OTHER),
        (("codex-acp",), OTHER),
        (("python", "my_agent.py"), OTHER),
    ],
)
def test_acp_agent_is_known_by_its_command(command: tuple[str, ...], program: ProgramSettings) -> None:
    assert acp_program(command) is program


def test_environment_of_a_record_cannot_switch_settings_on(tmp_path: Path) -> None:
    from palaver.backends.project_settings import FolderSettings

    given: Mapping[str, str] = {
        "OPENCODE_DISABLE_PROJECT_CONFIG": "0",
        "OPENCODE_CONFIG_CONTENT": '{"lsp": true, "model": "m"}',
        "GEMINI_RESTRICTED_MODE": "false",
    }
    told = FolderSettings(OPENCODE, (".opencode/tool",)).environment(given, str(tmp_path))
    assert told["OPENCODE_DISABLE_PROJECT_CONFIG"] == "1"
    assert told["OPENCODE_CONFIG_CONTENT"] == '{"lsp":false,"model":"m","formatter":false}'
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / ".env").write_text("export GEMINI_API_KEY='own key' # mine\nOTHER=1\n")
    restricted = FolderSettings(GEMINI, (".env",)).environment(given, str(tmp_path))
    assert restricted["GEMINI_RESTRICTED_MODE"] == "true"
    assert restricted["GEMINI_API_KEY"] == "own key"
    assert restricted["GOOGLE_API_KEY"] == "", "not to be taken from the folder"


def test_settings_of_a_record_are_no_way_round_for_claude() -> None:
    from palaver.backends.claude.backend import _setting_sources
    from palaver.backends.project_settings import FolderSettings
    from palaver.schema.records import AgentRecord

    for wished in ("user,project", "project", " local , project", "user,project,local"):
        agent = AgentRecord(id="c", name="C", params={"setting_sources": wished})
        assert _setting_sources(agent, FolderSettings(CLAUDE)) == "user"
        assert "project" in _setting_sources(agent, FolderSettings(CLAUDE, trusted=True))
