"""The list of backends, the test turn and the process table over a real server, with the real programs."""

import asyncio
from pathlib import Path

import pytest

from tests.cli.desk import WAIT_S, served, set_up
from tests.cli.rig import Subject
from tests.cli.subjects import CLAUDE, CODEX, OPENCODE, PI

pytestmark = [pytest.mark.cli, pytest.mark.timeout(180)]

PROGRAMS = (CLAUDE, CODEX, PI, OPENCODE)


@pytest.mark.parametrize("subject", PROGRAMS, ids=[subject.name for subject in PROGRAMS])
async def test_program_passes_its_test_and_leaves_no_conversation(subject: Subject, tmp_path: Path) -> None:
    async with set_up(tmp_path, subject) as desk, served(desk), asyncio.timeout(WAIT_S):
        tried = await desk.at.test(subject.name)
        left = [row async for row in desk.at.every_conversation()]
        running = await desk.at.processes()

    assert (tried.ok, tried.error) == (True, None), tried
    assert tried.text
    assert left == []
    # One Codex serves all conversations, and stays for the next.
    shared = [(row.conversation, row.agent, row.busy) for row in running]
    assert shared == ([(None, None, False)] if subject is CODEX else [])


async def test_program_that_is_installed_says_its_version_and_whether_somebody_is_logged_in(tmp_path: Path) -> None:
    async with set_up(tmp_path, CLAUDE, CODEX) as desk, served(desk), asyncio.timeout(WAIT_S):
        found = {entry.name: entry for entry in await desk.at.backends()}

    for name in ("claude", "codex"):
        entry = found[name]
        assert (entry.ready, entry.installed, entry.login) == (True, True, "ok")
        assert entry.version
        assert entry.version[0].isdigit()


async def test_idle_codex_is_let_go_by_a_person_and_resumes(tmp_path: Path) -> None:
    async with set_up(tmp_path, CODEX) as desk, served(desk), asyncio.timeout(WAIT_S):
        talk = await desk.create("codex")
        await desk.whole(talk, "My favourite tide is the neap tide.\n!say Noted.")
        (row,) = await desk.at.processes()
        assert row.pid is not None
        await desk.at.end_process(row.pid)
        assert await desk.at.processes() == []
        _, told = await desk.whole(talk, "!say Again.")
        (other,) = await desk.at.processes()

    assert (row.backend, row.command) == ("codex", "codex app-server")
    assert "neap tide" in told
    assert other.pid != row.pid
