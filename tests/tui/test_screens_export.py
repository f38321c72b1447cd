"""A conversation is saved as a file of this machine: whole or not at all, over nothing that was there."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.widgets import Input

from palaver.client import Client
from palaver.tui.save_file import name_for
from palaver.tui.screens.export import ExportConversation
from tests.flows.served import Served, serving
from tests.tui.harness import ScreenApp, until
from tests.tui.opened import opened

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with serving(tmp_path_factory.mktemp("export") / "data") as server:
        yield server


@pytest.fixture(scope="module")
async def talked(served: Served) -> str:
    conversation = await served.create(title="A talk: about/things")
    await served.send(conversation, "look for the needle")
    await served.settled(conversation)
    return conversation


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    async with Client.connect(served.url, served.token) as connected:
        yield connected


def _files(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()]


async def test_conversation_is_saved_in_the_format_that_was_chosen(client: Client, talked: str, tmp_path: Path) -> None:
    app = ScreenApp(ExportConversation(client, await client.snapshot(talked), tmp_path))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("2", "enter")
        saved = tmp_path / "a-talk-about-things.md"
        await until(pilot, lambda: f"{saved}" in app.said() and "Saved" in app.said())
    assert "look for the needle" in saved.read_text()
    assert _files(tmp_path) == [saved.name]


async def test_name_of_ones_own_is_kept_and_gets_the_ending_of_the_format(
    client: Client, talked: str, tmp_path: Path
) -> None:
    app = ScreenApp(ExportConversation(client, await client.snapshot(talked), tmp_path))
    async with app.run_test(size=(100, 30)) as pilot:
        app.sheet.query_one(Input).value = str(tmp_path / "mine.html")
        await pilot.press("3", "enter")
        await until(pilot, lambda: "Saved" in app.said())
    assert _files(tmp_path) == ["mine.jsonl"]


async def test_file_that_is_there_is_not_written_over(client: Client, talked: str, tmp_path: Path) -> None:
    known = tmp_path / "a-talk-about-things.html"
    known.write_text("mine")
    app = ScreenApp(ExportConversation(client, await client.snapshot(talked), tmp_path))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: "There is a file of that name already." in app.said())
    assert known.read_text() == "mine"


async def test_what_cannot_be_made_leaves_no_file_and_says_why(client: Client, talked: str, tmp_path: Path) -> None:
    state = await client.snapshot(talked)
    for conversation, folder, said in (
        ("nobody", tmp_path, "The file could not be made."),
        (talked, tmp_path / "nowhere", "The file could not be written: No such file or directory."),
    ):
        shown = type(state)(conversation=conversation, title=state.title)
        app = ScreenApp(ExportConversation(client, shown, folder))
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.press("enter")
            await until(pilot, lambda: said in app.said())  # noqa: B023
        assert _files(tmp_path) == []


async def test_export_is_found_by_its_name(served: Served, talked: str) -> None:
    async with opened(served, talked, size=(80, 24)) as terminal:
        await terminal.until_shown("look for the needle")
        await terminal.press("ctrl+k")
        await terminal.write("export")
        await terminal.press("enter")
        await terminal.until_shown("Event log (JSONL)")
        await terminal.until_shown("Enter save")


def test_title_is_a_name_that_means_nothing_to_a_shell() -> None:
    assert name_for("../../etc; rm -rf ~", "html") == "etc-rm-rf.html"
    assert name_for("", "jsonl") == "conversation.jsonl"
    assert name_for("Über die Brücke", "markdown") == "über-die-brücke.md"
