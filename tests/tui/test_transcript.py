"""What can be done with a block of the transcript: read it in full, edit and resend it, find words in it."""

from collections.abc import AsyncIterator, Sequence

import pytest
from textual.widgets import Log

from palaver.backends.script.script import Prompt, Say, Step, Tool, Wait
from palaver.schema.view import TextBlock
from palaver.tui.screens.full_text import WholeScreen
from palaver.tui.text.docks import Composer
from palaver.tui.theme import DARK
from palaver.tui.transcript.rows import UserRow
from tests.flows.served import Served, serving
from tests.tui.opened import Opened, opened

LONG = "".join(f"line {number} \x1b[31mred\x1b[0m\n" for number in range(2_000))
WORDS = "word " * 60_000 + "at the very end"


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    def script(prompt: Prompt) -> Sequence[Step]:
        match prompt.text:
            case "long":
                return [Tool("shell", {"command": "make"}, LONG), Say("Done.")]
            case "wait":
                return [Say("One moment."), Wait("never")]
            case "needle":
                return [Tool("shell", {"command": "make"}, "hay\nsome Needle here\nhay"), Say("No such thing.")]
            case words:
                return [Say(f"You said: {words[:40]}")]

    async with serving(tmp_path_factory.mktemp("transcript") / "data", script) as server:
        yield server


def shown_in_full(terminal: Opened) -> list[str]:
    screen = terminal.app.screen
    return list(screen.query_one(Log).lines) if isinstance(screen, WholeScreen) else []


async def read_in_full(terminal: Opened, *keys: str) -> list[str]:
    terminal.transcript.focus()
    await terminal.until(lambda: terminal.transcript.has_focus)
    await terminal.press(*keys)
    await terminal.until(lambda: len(shown_in_full(terminal)) > 1)
    return shown_in_full(terminal)


async def test_text_kept_beside_the_events_is_read_in_full(served: Served) -> None:
    conversation = await served.create(message=WORDS)
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("W: Show the whole text (293 KB)")
        await terminal.until_shown("You said: word")
        lines = await read_in_full(terminal, "k", "k", "w")
        assert "".join(lines) == WORDS
        await terminal.press("g")
        await terminal.until_shown("at the very end")
        await terminal.press("escape")
        await terminal.until_shown("You said: word")


async def test_what_is_left_out_in_the_middle_is_read_in_full(served: Served) -> None:
    conversation = await served.create(message="long")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("Done.")
        await terminal.until_shown("▸ Ran 1 command")
        assert await read_in_full(terminal, "k", "k", "o", "j", "w") == [
            f"line {number} red" for number in range(2_000)
        ]
        await terminal.until_shown("2,000 lines")


async def test_sources_of_an_answer_open_below_it(served: Served) -> None:
    conversation = await served.create()
    cited = {
        "type": "text",
        "index": 0,
        "text": "So.",
        "citations": [{"url": "https://tides.example", "title": "Tides"}],
    }
    said = {"id": "m", "role": "assistant", "seq": 0, "updated_seq": 0, "ts": 1, "blocks": [cited]}
    answer = await served.command(conversation, type="restore_messages", messages=[said])
    assert answer.status_code == 202, answer.text
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("Cites 1 source")
        terminal.transcript.focus()
        await terminal.press("o")
        await terminal.until_shown("https://tides.example")
        await terminal.press("o")
        await terminal.until_gone("https://tides.example")


async def test_message_of_ones_own_is_edited_and_sent_again(served: Served) -> None:
    conversation = await served.create(message="first")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("You said: first")
        await terminal.write("second")
        await terminal.press("enter")
        await terminal.until_shown("You said: second")
        await terminal.write("a draft")
        terminal.transcript.focus()
        await terminal.press("k", "k", "k", "k", "e")
        await terminal.until_shown("What follows this message is dropped, and the agent answers again.")
        await terminal.until_shown("Enter resend")
        assert terminal.app.main.docks.composer.prompt.text == "first"
        await terminal.write("ly")
        await terminal.press("enter")
        await terminal.until_shown("You said: firstly")
        await terminal.until_gone("second")
        assert [row.text for row in terminal.transcript.rows if isinstance(row, UserRow)] == ["firstly"]
        await terminal.until(lambda: terminal.app.main.docks.composer.prompt.text == "a draft")


async def test_edit_is_left_with_escape_and_nothing_changes(served: Served) -> None:
    conversation = await served.create(message="once")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("You said: once")
        await terminal.write("/edit")
        await terminal.press("enter")
        await terminal.until_shown("Enter resend")
        await terminal.write(" more")
        await terminal.press("escape")
        await terminal.until_gone("Enter resend")
        assert terminal.app.main.docks.composer.prompt.text == ""
        said = [block.text for m in terminal.state.messages for block in m.blocks if isinstance(block, TextBlock)]
        assert said == ["once", "You said: once"]


async def test_message_is_not_edited_while_the_agent_works(served: Served) -> None:
    conversation = await served.create(message="wait")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("One moment.")
        terminal.transcript.focus()
        await terminal.press("k", "k", "e")
        await terminal.until(lambda: [said.message for said in terminal.app._notifications] == [Composer.EDIT_BUSY])
        assert terminal.app.main.docks.composer.prompt.text == ""


async def test_long_message_is_edited_as_a_whole(served: Served) -> None:
    conversation = await served.create(message=WORDS)
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("You said: word")
        await terminal.until_shown("W: Show the whole text (293 KB)")
        await terminal.write("/edit")
        await terminal.press("enter")
        await terminal.until_shown("Enter resend")
        assert terminal.app.main.docks.composer.prompt.text == WORDS


async def test_words_that_were_found_are_marked_and_what_hides_them_is_opened(served: Served) -> None:
    conversation = await served.create(message="needle")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("No such thing.")
        await terminal.press("ctrl+f", *"some needle")
        await terminal.until_shown("1 match")
        await terminal.press("enter")
        await terminal.until_shown("some Needle here")
        await terminal.until(lambda: marked_words(terminal) == ["some", "Needle"])
        await terminal.press("g")
        await terminal.until(lambda: marked_words(terminal) == [])


def marked_words(terminal: Opened) -> list[str]:
    strips = terminal.app.screen._compositor.render_strips()
    ground = DARK.wait.lower()
    return [
        segment.text
        for strip in strips
        for segment in strip
        if segment.style and segment.style.bgcolor and segment.style.bgcolor.name == ground
    ]
