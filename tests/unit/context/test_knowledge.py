"""What is recalled before a message is answered."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from palaver.context.knowledge import A_CONVERSATION, INTRODUCTION, SOURCES, recall
from palaver.context.notes import FOLDER, HALF_LIFE_MS, Notes
from palaver.context.tokens import text_tokens
from palaver.errors import LogUnavailable
from palaver.schema.events import KnowledgeRecalled
from palaver.tools.base import Passage
from tests.unit.context.histories import SECRET, redact

pytestmark = pytest.mark.anyio

NOW = 1_760_000_000_000
TOMATOES = "Tomatoes in the greenhouse need calcium against blossom rot."
QUESTION = "Why do the greenhouse tomatoes rot?"


def passage(text: str, conversation: str = "c9", title: str = "Beds") -> Passage:
    return Passage(conversation, title, text, 4, NOW)


async def recalled(
    question: str, project: Path, *passages: Passage, budget_tokens: int = 1_500
) -> KnowledgeRecalled | None:
    async def search(query: str, limit: int) -> Sequence[Passage]:
        return passages[:limit]

    return await recall(
        question,
        message="m1",
        project=project,
        search=search,
        notes=Notes(),
        now_ms=NOW,
        budget_tokens=budget_tokens,
        redact=redact,
    )


def note(project: Path, name: str, text: str, ts_ms: int = NOW) -> None:
    (project / FOLDER).mkdir(parents=True, exist_ok=True)
    (project / FOLDER / name).write_text(text)
    os.utime(project / FOLDER / name, (ts_ms / 1000, ts_ms / 1000))


async def test_what_fits_is_recalled_with_its_source(tmp_path: Path) -> None:
    found = await recalled(QUESTION, tmp_path, passage(TOMATOES))
    assert found is not None
    assert (found.message, [source.ref for source in found.sources]) == ("m1", ["c9"])
    (source,) = found.sources
    assert (source.kind, source.title, source.snippet, source.seq) == ("conversation", "Beds", TOMATOES, 4)
    assert found.text == f"{INTRODUCTION}\n\nFrom “Beds”, 2025-10-09:\n{TOMATOES}"
    assert found.tokens == text_tokens(found.text)


@pytest.mark.parametrize(
    "question", ["ok", "go on", "Yes, please!", "thanks", "what is this?", "", "mach bitte weiter so"]
)
async def test_a_message_that_tells_nothing_recalls_nothing(question: str, tmp_path: Path) -> None:
    note(tmp_path, "all.md", "ok go on yes please thanks what is this mach bitte weiter so")
    assert await recalled(question, tmp_path, passage("ok go on yes please thanks what is this")) is None


async def test_what_shares_too_little_is_left_out(tmp_path: Path) -> None:
    assert await recalled(QUESTION, tmp_path, passage("The greenhouse effect warms the planet.")) is None
    assert await recalled("tomatoes", tmp_path, passage(TOMATOES)) is not None


async def test_of_a_long_message_a_few_words_are_enough(tmp_path: Path) -> None:
    question = (
        f"{QUESTION} I wonder about watering, fertilizer, sunlight, temperature, ventilation, varieties, neighbours."
    )
    assert await recalled(question, tmp_path, passage(f"{TOMATOES} Watering helps.")) is not None


async def test_notes_are_recalled_before_conversations_that_fit_alike(tmp_path: Path) -> None:
    note(tmp_path, "tomatoes.md", f"# Greenhouse\n\n{TOMATOES}")
    note(tmp_path, "deploy.md", "# Deploy\n\nRun make ship.")
    note(tmp_path, "ignored.txt", TOMATOES)
    found = await recalled(QUESTION, tmp_path, passage(TOMATOES))
    assert found is not None
    assert [(source.kind, source.ref, source.title) for source in found.sources] == [
        ("note", f"{FOLDER}/tomatoes.md", "Greenhouse"),
        ("conversation", "c9", "Beds"),
    ]


async def test_of_two_notes_the_newer_comes_first(tmp_path: Path) -> None:
    note(tmp_path, "a.md", TOMATOES, NOW - 4 * HALF_LIFE_MS)
    note(tmp_path, "b.md", TOMATOES, NOW)
    assert [found.path for found in Notes().fitting(tmp_path, QUESTION, NOW, 5)] == [f"{FOLDER}/b.md", f"{FOLDER}/a.md"]


async def test_a_changed_note_is_read_again(tmp_path: Path) -> None:
    notes = Notes()
    note(tmp_path, "a.md", TOMATOES)
    assert len(notes.fitting(tmp_path, QUESTION, NOW, 5)) == 1
    note(tmp_path, "a.md", "Something else altogether.", NOW + 1_000)
    assert notes.fitting(tmp_path, QUESTION, NOW, 5) == []


async def test_a_note_behind_a_link_out_of_the_project_is_left_alone(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / FOLDER).mkdir(parents=True)
    (tmp_path / "private.md").write_text(TOMATOES)
    (project / FOLDER / "a.md").symlink_to(tmp_path / "private.md")
    assert Notes().fitting(project, QUESTION, NOW, 5) == []
    linked = tmp_path / "linked"
    (linked / ".palaver").mkdir(parents=True)
    (linked / FOLDER).symlink_to(tmp_path)
    assert Notes().fitting(linked, QUESTION, NOW, 5) == []


async def test_no_conversation_crowds_out_the_others_and_all_is_bounded(tmp_path: Path) -> None:
    many = [passage(f"{TOMATOES} {number}", f"c{number // 4}") for number in range(12)]
    found = await recalled(QUESTION, tmp_path, *many)
    assert found is not None
    refs = [source.ref for source in found.sources]
    assert len(refs) == SOURCES
    assert max(refs.count(ref) for ref in refs) <= A_CONVERSATION


async def test_the_budget_holds(tmp_path: Path) -> None:
    long = [passage(f"{TOMATOES} " * 40, f"c{number}") for number in range(5)]
    found = await recalled(QUESTION, tmp_path, *long, budget_tokens=700)
    assert found is not None
    assert found.tokens <= 700
    assert len(found.sources) < 5
    assert await recalled(QUESTION, tmp_path, *long, budget_tokens=10) is None


async def test_secrets_are_struck_before_anything_is_cut(tmp_path: Path) -> None:
    text = f"{TOMATOES} ".ljust(890, "x") + SECRET + " more" * 50
    found = await recalled(QUESTION, tmp_path, passage(text), passage(f"{SECRET} {TOMATOES}", "c2"))
    assert found is not None
    assert len(found.sources) == 2
    assert "hunter2" not in str(found)


async def test_a_search_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    async def never(query: str, limit: int) -> Sequence[Passage]:
        await asyncio.Event().wait()
        return ()

    note(tmp_path, "a.md", TOMATOES)
    async with asyncio.timeout(10):
        found = await recall(QUESTION, message="m", project=tmp_path, search=never, notes=Notes(), now_ms=NOW)
    assert found is None or [source.kind for source in found.sources] == ["note"]


async def test_a_search_that_fails_spoils_no_turn(tmp_path: Path) -> None:
    async def failing(query: str, limit: int) -> Sequence[Passage]:
        raise LogUnavailable("The log is closed.")

    note(tmp_path, "a.md", TOMATOES)
    found = await recall(QUESTION, message="m", project=tmp_path, search=failing, notes=Notes(), now_ms=NOW)
    assert found is None or [source.kind for source in found.sources] == ["note"]
