"""How the program is started: with what it may see, and nothing that a text could turn into an option."""

import asyncio
from pathlib import Path

import msgspec

from palaver.backends.claude.installation import is_logged_in, readiness
from palaver.backends.claude.process import (
    INBOX_LINES,
    ClaudeProgram,
    Resume,
    Spec,
    argv,
    environment_of,
    secrets_of,
)
from palaver.backends.private_files import private_files
from palaver.schema.records import McpServer


def spec(**more: object) -> Spec:
    return Spec(executable=Path("/bin/claude"), cwd=Path("/p"), environment={}, **more)  # type: ignore[arg-type]


def test_no_value_becomes_an_option() -> None:
    words = argv(
        spec(instructions="--dangerously-skip-permissions", model="--help"), "default", Resume("--continue", at="-x")
    )
    options = {word.partition("=")[0] for word in words[1:]}
    assert not options & {"--dangerously-skip-permissions", "--help", "--continue", "-x"}
    assert "--resume=--continue" in words


def test_projects_settings_are_left_out_unless_asked_for() -> None:
    assert "--setting-sources=user" in argv(spec(), "default", None)
    assert "--setting-sources=user,project" in argv(spec(settings="user,project"), "default", None)


def test_fork_is_only_of_a_session() -> None:
    assert "--fork-session" in argv(spec(), "default", Resume("s", fork=True))
    assert not [word for word in argv(spec(), "default", None) if "fork" in word or "resume" in word]


def test_servers_of_the_agent_stand_beside_ours() -> None:
    servers = (McpServer(name="sea", command=("sea", "--fast")), McpServer(name="far", url="http://127.0.0.1:1/"))
    named = msgspec.json.decode(secrets_of(spec(servers=servers))["mcp-config"])["mcpServers"]
    assert set(named) == {"palaver", "sea", "far"}
    assert named["sea"]["args"] == ["--fast"]


def test_secrets_are_in_private_files_and_not_in_the_command() -> None:
    servers = (McpServer(name="far", url="http://127.0.0.1:1/", headers={"Authorization": "Bearer canary-header"}),)
    secret = spec(servers=servers, instructions="canary-instructions")
    with private_files(secrets_of(secret)) as files:
        words = argv(secret, "default", None, files)
        assert not [word for word in words if "canary" in word]
        assert {f"--{name}={path}" for name, path in files.items()} <= set(words)
        assert {path.stat().st_mode & 0o777 for path in files.values()} == {0o600}
        assert {path.parent.stat().st_mode & 0o777 for path in files.values()} == {0o700}
        assert b"canary-header" in files["mcp-config"].read_bytes()
    assert not [path for path in files.values() if path.exists()]


def test_environment_holds_its_login_and_nothing_of_ours() -> None:
    ours = {"HOME": "/h", "ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "o", "PALAVER_TOKEN": "t", "CLAUDECODE": "1"}
    seen = environment_of(ours, {"EXTRA": "1"})
    assert seen["ANTHROPIC_API_KEY"] == "k"
    assert seen["EXTRA"] == "1"
    assert not {"OPENAI_API_KEY", "PALAVER_TOKEN", "CLAUDECODE"} & set(seen)


def test_login_is_found_in_the_environment_or_in_a_file(tmp_path: Path) -> None:
    assert is_logged_in({"ANTHROPIC_API_KEY": "k"})
    assert not is_logged_in({"HOME": str(tmp_path)})
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / ".credentials.json").write_text("{}")
    assert is_logged_in({"HOME": str(tmp_path)})


def test_readiness_says_what_to_do(tmp_path: Path) -> None:
    said = readiness({"HOME": str(tmp_path), "PATH": ""})
    assert not said.ready
    assert said.fix


async def test_reader_waits_while_the_turn_has_too_much_to_read() -> None:
    program = ClaudeProgram(spec(), None)
    for _ in range(INBOX_LINES):
        await program.deliver({"type": "assistant"})
    late = asyncio.create_task(program.deliver({"type": "result"}))
    await asyncio.sleep(0)
    assert not late.done()
    for _ in range(INBOX_LINES):
        await program.next()
    async with asyncio.timeout(5):
        await late
    assert await program.next() == {"type": "result"}


async def test_withdrawn_question_follows_the_question() -> None:
    from claude_agent_sdk import ToolPermissionContext

    program = ClaudeProgram(spec(), None)
    asking = asyncio.create_task(program.may_use("Bash", {}, ToolPermissionContext()))
    first = await program.next()
    asking.cancel()
    second = await program.next()
    assert [type(item).__name__ for item in (first, second)] == ["Ask", "Withdrawn"]


async def test_program_is_not_idle_while_a_task_of_its_own_runs() -> None:
    program = ClaudeProgram(spec(), None)
    assert not await program.has_background_work()
    program.tasks["b1"] = "process"
    assert await program.has_background_work()
    await program.deliver({"type": "system", "subtype": "task_notification", "task_id": "b1", "status": "completed"})
    assert not await program.has_background_work()
