"""The tools `search_conversations` and `remember`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from palaver.tools.agents.knowledge import FOLDER, NOTE_LIMIT_BYTES, Remember, SearchConversations, slug
from palaver.tools.base import Passage, ToolResult
from tests.unit.tools.workshop import ENVIRONMENT, Listener, Workshop

pytestmark = pytest.mark.anyio

SECRET = ENVIRONMENT["SERVICE_TOKEN"]


@dataclass
class Talkative(Listener):
    passages: Sequence[Passage] = ()
    asked: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    async def search(self, query: str, limit: int) -> Sequence[Passage]:
        self.asked.append((query, limit))
        return self.passages[:limit]


async def test_search_shows_what_was_said_where_and_when(root: Path) -> None:
    host = Talkative(passages=[Passage("c9", "Beds", f"Use {SECRET} and compost.", 4, 1_760_000_000_000)])
    result = await Workshop(root, host=host).run(SearchConversations(), query="compost", limit=3)
    assert host.asked == [("compost", 3)]
    assert result.output == "[Beds, 2025-10-09, conversation c9]\nUse [redacted SERVICE_TOKEN] and compost."


async def test_search_cuts_a_long_passage_after_secrets_are_struck(root: Path) -> None:
    text = "x" * 1_190 + SECRET + " and more"
    host = Talkative(passages=[Passage("c9", "", text, 4, 0)])
    result = await Workshop(root, host=host).run(SearchConversations(), query="more")
    assert "correct" not in result.output
    assert result.output.endswith("[…]")
    assert result.output.startswith("[Untitled, 1970-01-01")


async def test_search_that_finds_nothing_says_so(workshop: Workshop, root: Path) -> None:
    found = await Workshop(root, host=Talkative()).run(SearchConversations(), query="tea")
    assert (found.ok, "Nothing earlier fits" in found.output) == (True, True)
    alone = await workshop.run(SearchConversations(), query="tea")
    assert (alone.ok, alone.error) == (False, "There are no conversations to search here.")
    assert (await workshop.run(SearchConversations(), query="", limit=99)).error_code == "invalid"


def test_search_only_reads(workshop: Workshop) -> None:
    assert SearchConversations().spec.reads_only
    proposal = workshop.propose(SearchConversations(), query="tea\u202e")
    assert (proposal.title, proposal.reads_only) == ("Search earlier conversations for “tea⟨202E⟩”", True)


async def test_a_note_is_written_under_its_title(workshop: Workshop, root: Path) -> None:
    proposal = workshop.propose(Remember(), title="How we deploy", text="Run make ship.")
    assert (proposal.title, proposal.writes) == ("Remember “How we deploy”", (f"{FOLDER}/how-we-deploy.md",))
    assert "+Run make ship." in (proposal.preview or "")
    assert not (root / FOLDER).exists()
    result = await workshop.run(Remember(), title="How we deploy", text="Run make ship.")
    assert (result.ok, result.output) == (True, f"Noted in {FOLDER}/how-we-deploy.md.")
    assert (root / FOLDER / "how-we-deploy.md").read_text() == "# How we deploy\n\nRun make ship.\n"
    assert [(change.path, change.kind) for change in result.changes] == [(f"{FOLDER}/how-we-deploy.md", "created")]


async def test_a_note_that_is_there_is_added_to_and_never_replaced(workshop: Workshop, root: Path) -> None:
    for text in ("Run make ship.", "Ask Ada first."):
        await workshop.run(Remember(), title="How we deploy", text=text)
    result = await workshop.run(Remember(), title="How we deploy", text="Run make ship.")
    assert (result.output, result.changes) == (f"{FOLDER}/how-we-deploy.md says that already; nothing was changed.", ())
    note = (root / FOLDER / "how-we-deploy.md").read_text()
    assert note == "# How we deploy\n\nRun make ship.\n\nAsk Ada first.\n"


async def test_secrets_do_not_reach_a_note(workshop: Workshop, root: Path) -> None:
    await workshop.run(Remember(), title="Access", text=f"The token is {SECRET}.")
    assert "The token is [redacted SERVICE_TOKEN]." in (root / FOLDER / "access.md").read_text()


async def test_a_proposal_is_bound_to_what_the_note_says_now(workshop: Workshop) -> None:
    before = workshop.propose(Remember(), title="Access", text="Ask Ada.")
    await workshop.run(Remember(), title="Access", text="Ask Bob.")
    assert workshop.propose(Remember(), title="Access", text="Ask Ada.").hash != before.hash


@pytest.mark.parametrize("link", [".palaver", ".palaver/knowledge", ".palaver/knowledge/access.md"])
async def test_a_link_leads_a_note_nowhere_else(link: str, workshop: Workshop, root: Path, tmp_path: Path) -> None:
    inside, outside = root / "inside", tmp_path / "elsewhere"
    for target in (inside, outside):
        target.mkdir()
        (target / "access.md").write_text("mine")
        (root / link).parent.mkdir(parents=True, exist_ok=True)
        (root / link).unlink(missing_ok=True)
        (root / link).symlink_to(target / "access.md" if link.endswith(".md") else target)
        result = await workshop.run(Remember(), title="Access", text="Ask Ada.")
        assert not result.ok
        assert sorted(path.name for path in target.iterdir()) == ["access.md"]
        assert (target / "access.md").read_text() == "mine"


async def test_notes_are_bounded(workshop: Workshop, root: Path) -> None:
    (root / FOLDER).mkdir(parents=True)
    (root / FOLDER / "access.md").write_text("x" * NOTE_LIMIT_BYTES)
    result = await workshop.run(Remember(), title="Access", text="Ask Ada.")
    assert (result.ok, result.error_code) == (False, "too_large")
    assert isinstance(Remember().propose({"title": "", "text": "x"}, root), ToolResult)
    assert isinstance(Remember().propose({"title": "x", "text": "x" * 9_000}, root), ToolResult)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("How we deploy", "how-we-deploy"),
        ("  Über   Cafés! ", "uber-cafes"),
        ("../../.git/hooks", "git-hooks"),
        ("...", "note"),
        ("東京", "67714eac"),
        ("a " * 100, "-".join(["a"] * 30)),
    ],
)
def test_a_title_becomes_a_plain_name(title: str, name: str) -> None:
    assert slug(title) == name
