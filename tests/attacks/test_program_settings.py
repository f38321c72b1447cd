"""Agent programs, the real ones, started in a hostile repository: nothing of it runs, and nothing is written into their homes.

The rule: what a program reads from a folder that can run code is off until a person has trusted exactly those files
(`backends/project_settings.py`). And no secret is in a command line, which every user of the machine can read.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from palaver.schema.records import McpServer
from palaver.schema.view import TextBlock
from tests.attacks.hostile_repository import Canaries, plant
from tests.cli.rig import Stand, Subject, said, stand
from tests.cli.subjects import CLAUDE, CODEX, GEMINI, OPENCODE, PI, SUBJECTS
from tests.provider.turn import MemoryTurn, allow, deny

STARTED = [CLAUDE, CODEX, PI, GEMINI]
"""Started in a hostile repository. opencode is not: it has no switch against plugins, and says so."""

OWN_FILES: Mapping[str, tuple[str, ...]] = {
    "claude": (".claude.json", ".claude/*", ".cache/*", ".local/*", ".npm/*", "tmp/*"),
    "codex": (
        *(".codex/sessions/*", ".codex/*.sqlite*", ".codex/skills/.system/*", ".codex/installation_id"),
        *(".codex/.sandbox*", ".codex/log/*", ".codex/tmp/*", ".codex/cache/*", ".codex/models_cache.json"),
        *(".codex/version.json", ".codex/shell_snapshots/*", ".codex/.tmp/*", ".codex/thread-writer-locks/*", "tmp/*"),
    ),
    "pi": (".pi/agent/sessions/*", ".pi/agent/auth.json", ".pi/agent/models-store.json", ".pi/agent/bin/*"),
    "gemini": (".gemini/tmp/*", ".gemini/history/*", ".gemini/projects.json", ".gemini/installation_id", "*.lock"),
    "opencode": (),
}
"""What each keeps in its own home however it is started: sessions, so that it can resume, and caches."""

CANARY = "canary-5e1d0c"


def settings_of(home: Path) -> dict[str, str]:
    """Hashes of all files in a home by name."""
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in home.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def notices(turn: MemoryTurn) -> list[str]:
    return [
        block.text
        for message in turn.history
        if message.event_kind == "notice"
        for block in message.blocks
        if isinstance(block, TextBlock)
    ]


async def command_denied(at_work: Stand, turn: MemoryTurn) -> None:
    """A repository's rules must not answer for the person."""
    made = at_work.place.project / "made.txt"
    again = await at_work.say(at_work.subject.shell(f"touch {made}"), decide=deny, state=turn.state)
    assert again.error is None
    assert not made.exists()


def check_home(subject: Subject, home: Path, project: Path, before: Mapping[str, str]) -> None:
    after = settings_of(home)
    changed = {name for name, hash in after.items() if before.get(name) != hash}
    strange = {name for name in changed if not any(fnmatch(name, known) for known in OWN_FILES[subject.name])}
    if subject is GEMINI:
        # It renames old settings of its own in the person's file, in any folder.
        assert str(project) not in (home / ".gemini" / "settings.json").read_text()
        strange -= {".gemini/settings.json"}
    assert not strange
    if subject is CLAUDE and (home / ".claude.json").exists():
        known: dict[str, Any] = json.loads((home / ".claude.json").read_text()).get("projects", {})
        assert not [one for one in known.values() if one.get("hasTrustDialogAccepted")]


@pytest.mark.parametrize("subject", [pytest.param(one, id=one.name) for one in STARTED])
async def test_program_in_a_hostile_repository_runs_nothing_of_it(subject: Subject, tmp_path: Path) -> None:
    canaries = Canaries(tmp_path / "ran")
    async with stand(subject, tmp_path) as at_work:
        place = at_work.place
        plant(place.project, canaries)
        before = settings_of(place.home)
        turn = await at_work.say("!say hello there", decide=deny)
        assert turn.error is None
        assert "hello there" in said(turn)
        await command_denied(at_work, turn)
    assert canaries.ran == set()
    assert not (place.project / ".pi" / "stolen-sessions").exists()
    check_home(subject, place.home, place.project, before)


@pytest.mark.long
@pytest.mark.parametrize("subject", [pytest.param(one, id=one.name) for one in STARTED])
async def test_program_in_a_part_of_a_hostile_repository_runs_nothing_of_it(subject: Subject, tmp_path: Path) -> None:
    canaries = Canaries(tmp_path / "ran")
    async with stand(subject, tmp_path) as at_work:
        part = at_work.place.project / "part" / "deep"
        part.mkdir(parents=True)
        plant(at_work.place.project, canaries)
        turn = await at_work.say("!say hello there", decide=deny, project=part)
        assert turn.error is None
    assert canaries.ran == set()


@pytest.mark.long
@pytest.mark.parametrize("subject", [pytest.param(one, id=one.name) for one in STARTED])
async def test_program_that_goes_on_in_a_repository_that_turned_hostile_runs_nothing_of_it(
    subject: Subject, tmp_path: Path
) -> None:
    canaries = Canaries(tmp_path / "ran")
    async with stand(subject, tmp_path) as at_work:
        turn = await at_work.say("!say hello there", decide=deny)
        plant(at_work.place.project, canaries)
        turn = await at_work.say("!say hello again", decide=deny, state=turn.state)
        assert turn.error is None
        await at_work.restart()
        turn = await at_work.say("!say and again", decide=deny, state=turn.state)
        assert turn.error is None
    assert canaries.ran == set()


async def test_opencode_is_not_started_where_plugins_of_a_repository_would_run(tmp_path: Path) -> None:
    canaries = Canaries(tmp_path / "ran")
    async with stand(OPENCODE, tmp_path) as at_work:
        plant(at_work.place.project, canaries)
        before = settings_of(at_work.place.home)
        turn = await at_work.say("!say hello there", decide=deny)
    assert canaries.ran == set()
    assert turn.error is not None
    assert "palaver projects trust" in turn.error.message
    assert settings_of(at_work.place.home) == before


@pytest.mark.long
async def test_opencode_without_plugins_of_a_repository_runs_nothing_of_it(tmp_path: Path) -> None:
    canaries = Canaries(tmp_path / "ran")
    async with stand(OPENCODE, tmp_path) as at_work:
        project = at_work.place.project
        plant(project, canaries)
        for name in ("opencode.json", "opencode.jsonc", ".opencode/opencode.json"):
            (project / name).unlink()
        for name in ("plugin", "plugins"):
            (project / ".opencode" / name / "evil.js").unlink()
        turn = await at_work.say("!say hello there", decide=deny)
        assert turn.error is None
        await command_denied(at_work, turn)
    assert canaries.ran == set()


@pytest.mark.parametrize("planted", [".mcp.json", ".codex/config.toml", "../.opencode/plugin/evil.js", ".gemini/.env"])
async def test_unknown_acp_agent_is_not_started_where_settings_of_a_program_are(planted: str, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    agent = replace(OPENCODE.agent, id="strange", name="Strange", command=("/bin/sh", "-c", f"touch {ran}"))
    async with stand(OPENCODE, tmp_path) as at_work:
        place = at_work.place.project / planted
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("{}")
        turn = await at_work.say("!say hello there", agent=agent, decide=deny)
    assert turn.error is not None
    assert not ran.exists()


async def test_settings_left_off_are_said_once_with_what_to_do(tmp_path: Path) -> None:
    async with stand(PI, tmp_path) as at_work:
        (at_work.place.project / ".pi").mkdir()
        (at_work.place.project / ".pi" / "settings.json").write_text("{}")
        turn = await at_work.say("!say hello there", decide=deny)
        turn = await at_work.say("!say again", decide=deny, state=turn.state)
    (notice,) = notices(turn)
    assert ".pi/settings.json" in notice
    assert f"palaver projects trust {at_work.place.project} --program pi" in notice


@pytest.mark.long
async def test_pi_runs_no_code_from_a_cache_in_the_temporary_folder(tmp_path: Path) -> None:
    canaries = Canaries(tmp_path / "ran")
    canaries.folder.mkdir()
    async with stand(PI, tmp_path) as at_work:
        turn = await at_work.say("!say hello there", decide=deny)
        # The name of a cached file is made of what it was compiled from: whoever knows the source can put one there.
        for cached in (at_work.place.home / "jiti").glob("*.mjs"):
            cached.write_text(canaries.javascript("pi-cache") + cached.read_text())
        await at_work.restart()
        turn = await at_work.say("!say again", decide=deny, state=turn.state)
        assert turn.error is None
    assert canaries.ran == set()


async def test_commands_of_codex_see_the_repository_that_it_does_not(tmp_path: Path) -> None:
    canaries = Canaries(tmp_path / "ran")
    async with stand(CODEX, tmp_path) as at_work:
        plant(at_work.place.project, canaries)
        turn = await at_work.say(CODEX.shell("git rev-parse --is-inside-work-tree > inside.txt"), decide=allow)
        assert turn.error is None
        assert (at_work.place.project / "inside.txt").read_text().strip() == "true"


# -- secrets in command lines


def command_lines() -> str:
    lines: list[str] = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with suppress(OSError):
                lines.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return "\n".join(lines)


@pytest.mark.parametrize(
    "subject",
    [pytest.param(one, id=one.name, marks=[pytest.mark.long] if one in (GEMINI, OPENCODE) else []) for one in SUBJECTS],
)
async def test_no_secret_of_an_agent_is_in_a_command_line(subject: Subject, tmp_path: Path) -> None:
    servers = (
        McpServer(name="near", command=("/bin/cat",), environment={"TIDE_KEY": f"{CANARY}-environment"}),
        McpServer(name="far", url="http://127.0.0.1:9/", headers={"Authorization": f"Bearer {CANARY}-header"}),
    )
    agent = replace(
        subject.agent,
        mcp_servers=servers,
        system_prompt=f"The pass phrase is {CANARY}-prompt.",
        environment={**subject.agent.environment, "OWN_KEY": f"{CANARY}-own"},
    )
    async with stand(subject, tmp_path) as at_work:
        turn = await at_work.say("!say hello there", agent=agent, decide=deny)
        # It is kept between turns, with all that it started.
        seen = command_lines()
        assert turn.error is None
        asked = json.dumps(at_work.place.service.bodies)
    assert CANARY not in seen
    assert f"{CANARY}-prompt" in asked, "the instructions must still reach the model"
