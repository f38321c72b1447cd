"""Images go with a message when their paths are pasted or dropped."""

import base64
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual import events

from palaver.schema.view import ImageBlock, State
from palaver.tui.docks.attachments import Attached
from palaver.tui.intents import Send
from tests.flows.served import serving
from tests.tui.harness import DockApp, reads, state_with, until
from tests.tui.opened import opened

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def shot(tmp_path: Path) -> Path:
    path = tmp_path / "my shot.png"
    path.write_bytes(PNG)
    return path


async def test_pasted_path_of_an_image_is_attached_and_removed_by_a_key(shot: Path) -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        composer = app.docks.composer
        await pilot.press(*"ab")
        composer.prompt.post_message(events.Paste(f"'{shot}' "))
        await until(pilot, lambda: len(composer.images) == 1)
        assert str(composer.query_one(Attached).render()) == "▣ my shot.png (70 B)"
        assert composer.prompt.text == "ab"
        # Where there is text before the cursor, that goes first.
        await pilot.press("backspace", "backspace")
        await until(pilot, lambda: composer.prompt.text == "")
        assert len(composer.images) == 1
        await pilot.press("backspace")
        await until(pilot, lambda: composer.images == ())
        assert not composer.query_one(Attached).display


async def test_refused_message_keeps_its_words_and_its_images(shot: Path) -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        composer = app.docks.composer
        composer.prompt.post_message(events.Paste(str(shot)))
        await until(pilot, lambda: len(composer.images) == 1)
        await pilot.press(*"look", "enter")
        await until(pilot, lambda: len(app.of(Send)) == 1)
        (send,) = app.of(Send)
        assert (send.text, [image.path for image in send.images]) == ("look", [shot])
        assert (composer.prompt.text, composer.images) == ("", ())
        assert send.refused is not None
        send.refused("No.")
        await until(pilot, lambda: len(composer.images) == 1)
        assert composer.prompt.text == "look"


async def test_attached_image_waits_in_its_own_conversation(shot: Path) -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        here, there = state_with(turn=None), replace(state_with(turn=None), conversation="c-2")
        app.show(here)
        composer = app.docks.composer
        composer.prompt.post_message(events.Paste(str(shot)))
        await until(pilot, lambda: len(composer.images) == 1)
        app.docks.leave()
        app.show(there)
        await reads(pilot, lambda: composer.images, ())
        app.docks.leave()
        app.show(here)
        await reads(pilot, lambda: [image.path for image in composer.images], [shot])


async def test_image_attached_before_there_is_a_conversation_comes_along_and_stays_in_one(shot: Path) -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        composer = app.docks.composer
        composer.prompt.post_message(events.Paste(str(shot)))
        await until(pilot, lambda: len(composer.images) == 1)
        app.show(state_with(turn=None))
        await reads(pilot, lambda: [image.path for image in composer.images], [shot])
        app.docks.leave()
        app.show(State())
        await reads(pilot, lambda: composer.images, ())


async def test_image_attached_before_there_is_a_conversation_does_not_turn_up_in_a_later_one(shot: Path) -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        composer = app.docks.composer
        composer.prompt.post_message(events.Paste(str(shot)))
        await until(pilot, lambda: len(composer.images) == 1)
        app.show(replace(state_with(turn=None), draft="Written here before"))
        await reads(pilot, lambda: composer.prompt.text, "Written here before")
        app.docks.leave()
        # What is shown until another conversation is loaded.
        app.show(State())
        app.show(replace(state_with(turn=None), conversation="c-2"))
        await reads(pilot, lambda: composer.prompt.text, "")
        assert composer.images == ()


async def test_attached_image_is_uploaded_and_sent(tmp_path: Path, shot: Path) -> None:
    async with serving(tmp_path / "data") as served:
        conversation = await served.create(title="Pictures")
        async with opened(served, conversation) as terminal:
            await terminal.until_shown("Pictures")
            terminal.app.post_message(events.Paste(str(shot)))
            await terminal.until_shown("▣ my shot.png (70 B)")
            await terminal.write("see")
            await terminal.press("enter")
            await terminal.until_shown("Hello there, how are you?")
            blocks = terminal.state.messages[0].blocks
            (image,) = [block for block in blocks if isinstance(block, ImageBlock)]
            assert await terminal.client.blob(image.url.rpartition("/")[2]) == PNG


async def test_first_message_may_be_an_image_alone(tmp_path: Path, shot: Path) -> None:
    async with serving(tmp_path / "data") as served, opened(served) as terminal:
        await terminal.until_shown("What shall we work on?")
        terminal.app.post_message(events.Paste(str(shot)))
        await terminal.until_shown("▣ my shot.png (70 B)")
        await terminal.press("enter")
        await terminal.until_shown("Hello there, how are you?")
        assert [type(block) for block in terminal.state.messages[0].blocks] == [ImageBlock]


async def test_image_that_is_none_is_refused_and_the_words_come_back(tmp_path: Path) -> None:
    false = tmp_path / "false.png"
    false.write_text("not an image")
    async with serving(tmp_path / "data") as served:
        conversation = await served.create(title="Pictures")
        async with opened(served, conversation) as terminal:
            await terminal.until_shown("Pictures")
            terminal.app.post_message(events.Paste(str(false)))
            await terminal.until_shown("▣ false.png")
            await terminal.write("see")
            await terminal.press("enter")
            await terminal.until_shown("images may be PNG, JPEG, GIF or WebP")
            await terminal.until_shown("▣ false.png")
            assert terminal.app.main.docks.composer.prompt.text == "see"
