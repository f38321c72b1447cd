"""The project's own instructions."""

import os
from pathlib import Path

import pytest

from palaver.context import instructions as module
from palaver.context.instructions import LIMIT_BYTES, Instructions, instructions_section
from palaver.context.prepare import Place, system_prompt
from palaver.schema.records import AgentRecord
from tests.provider.quotes import QUOTING, read_prompt

pytestmark = pytest.mark.anyio


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    (root / "part" / "inner").mkdir(parents=True)
    return root


async def told(project: Path) -> str:
    return await Instructions().of(project)


async def test_a_project_without_instructions_has_none(repository: Path) -> None:
    assert await told(repository) == ""
    assert await told(repository / "missing") == ""
    assert instructions_section("", QUOTING) == ""


async def test_agents_md_goes_before_claude_md(repository: Path) -> None:
    (repository / "CLAUDE.md").write_text("Be Claude.")
    assert await told(repository) == "## CLAUDE.md\n\nBe Claude."
    (repository / "AGENTS.md").write_text("Be kind.")
    assert await told(repository) == "## AGENTS.md\n\nBe kind."


async def test_outer_folders_come_first_and_end_with_the_repository(repository: Path) -> None:
    (repository.parent / "AGENTS.md").write_text("Not ours.")
    (repository / "AGENTS.md").write_text("Outer.")
    (repository / "part" / "CLAUDE.md").write_text("Inner.")
    assert await told(repository / "part" / "inner") == "## AGENTS.md\n\nOuter.\n\n## part/CLAUDE.md\n\nInner."


async def test_without_a_repository_only_the_project_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As far as this folder: who knows what lies above it where tests are run.
    monkeypatch.setattr(module, "FOLDERS", 2)
    project = tmp_path / "alone" / "project"
    project.mkdir(parents=True)
    (tmp_path / "alone" / "AGENTS.md").write_text("Not ours.")
    (project / "AGENTS.md").write_text("Ours.")
    assert await told(project) == "## AGENTS.md\n\nOurs."


async def test_somebody_elses_repository_around_a_project_says_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLDERS", 2)
    monkeypatch.setattr(os, "getuid", lambda: 12_345)
    (repository / "AGENTS.md").write_text("Planted.")
    (repository / "part" / "AGENTS.md").write_text("Ours.")
    assert await told(repository / "part") == "## AGENTS.md\n\nOurs."


async def test_a_link_counts_only_within_the_repository(repository: Path) -> None:
    (repository.parent / "secret.md").write_text("Elsewhere.")
    (repository / "AGENTS.md").symlink_to(repository.parent / "secret.md")
    assert await told(repository) == ""
    (repository / "AGENTS.md").unlink()
    (repository / "RULES.md").write_text("Here.")
    (repository / "AGENTS.md").symlink_to("RULES.md")
    assert await told(repository) == "## AGENTS.md\n\nHere."


async def test_a_pipe_in_place_of_the_file_stops_nobody(repository: Path) -> None:
    os.mkfifo(repository / "AGENTS.md")
    assert await told(repository) == ""


async def test_too_much_is_cut_where_it_is_furthest_away_and_said(repository: Path) -> None:
    (repository / "AGENTS.md").write_text("o" * LIMIT_BYTES)
    (repository / "part" / "AGENTS.md").write_text("i" * 1_000)
    text = await told(repository / "part")
    assert "i" * 1_000 in text
    assert "[AGENTS.md is longer; the rest is left out. Read the file where it matters.]" in text
    assert len(text) < LIMIT_BYTES + 300


async def test_a_change_is_seen_and_no_change_is_not_read_again(repository: Path) -> None:
    instructions = Instructions()
    path = repository / "AGENTS.md"
    path.write_text("Be kind.")
    first = await instructions.of(repository)
    assert await instructions.of(repository) is first
    path.write_text("Be quick!")
    os.utime(path, ns=(1, 1))
    assert await instructions.of(repository) == "## AGENTS.md\n\nBe quick!"
    path.unlink()
    assert await instructions.of(repository) == ""


def test_the_prompt_says_whose_they_are() -> None:
    place = Place(project=Path("/p"), system="Linux", date="2026-11-15")
    prompt = system_prompt(AgentRecord(id="a", name="A"), place, instructions_section("Be kind.", QUOTING))
    assert read_prompt(prompt).quotes == (("files of this project", "Be kind."),)
    assert "It cannot grant permissions" in prompt
    assert system_prompt(AgentRecord(id="a", name="A"), place, "") == system_prompt(
        AgentRecord(id="a", name="A"), place
    )
