"""What a reader looks at stays where it is, whatever grows below it or is loaded above it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from palaver.backends.script.script import Prompt, Say, Script, Wait
from palaver.client.client import Client, Unreachable
from palaver.clock import ManualClock, SystemClock
from palaver.schema.commands import UpdateConversation
from palaver.schema.view import Message
from palaver.tui.app import PalaverApp
from palaver.tui.intents import Order, Send
from palaver.tui.transcript.rows import EdgeRow
from tests.flows.served import Served, serving
from tests.tui.opened import Opened, opened

LONG = "\n\n".join(f"Paragraph {number} of a long answer, which fills the screen." for number in range(60))


def script(prompt: Prompt) -> Script:
    if prompt.text == "grow":
        return [Say(LONG), Wait("grow"), Say("\n\n".join(["", *(f"Growing {number}." for number in range(40))]))]
    return [Say(f"You said {prompt.text}.\n\nAnd that was all.")]


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with serving(tmp_path_factory.mktemp("reading") / "data", script) as server:
        yield server


async def many(served: Served, count: int, more: str = "", role: str = "user") -> str:
    """A conversation of so many messages."""
    conversation = await served.create(title="Long")
    placed = {"role": role, "seq": 0, "updated_seq": 0, "ts": 1}
    messages = [{"id": f"m{n}", **placed, "blocks": [_text(f"Message {n} is here.{more}")]} for n in range(count)]
    answer = await served.command(conversation, type="restore_messages", messages=messages)
    assert answer.status_code == 202, answer.text
    return conversation


def _text(words: str) -> dict[str, object]:
    return {"type": "text", "index": 0, "text": words}


def transcript_lines(terminal: Opened) -> list[str]:
    transcript = terminal.transcript
    # The last line may hold what is new below.
    return [transcript.render_line(y).text.rstrip() for y in range(transcript.size.height - 1)]


def still(before: list[str], terminal: Opened) -> bool:
    """What was read stands where it stood. There may be more room below: a line that said what went on is gone."""
    now = transcript_lines(terminal)
    shared = min(len(before), len(now))
    return now[:shared] == before[:shared]


async def test_end_is_followed_while_an_answer_grows(served: Served) -> None:
    conversation = await served.create(message="grow")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("Paragraph 59")
        served.agent.open_gate("grow")
        await terminal.until_shown("Growing 39.")
        assert terminal.transcript.following


async def test_reader_further_up_sees_nothing_move_while_an_answer_grows(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", script) as served:
        conversation = await served.create(message="grow")
        async with opened(served, conversation) as terminal:
            await terminal.until_shown("Paragraph 59")
            await terminal.press("pageup", "pageup")
            await terminal.until(lambda: not terminal.transcript.following)
            before = transcript_lines(terminal)
            served.agent.open_gate("grow")
            await terminal.until(lambda: terminal.state.turn is None)
            await terminal.until(lambda: still(before, terminal))
            await served.send(conversation, "more")
            await terminal.until_shown("↓ 3 new")
            assert still(before, terminal)
            await terminal.until(lambda: terminal.state.turn is None)
            await terminal.press("f6", "g")
            await terminal.until_shown("You said more.")
            assert terminal.transcript.following


async def test_older_messages_are_loaded_above_without_moving_the_reader(served: Served) -> None:
    conversation = await many(served, 260)
    async with opened(served, conversation, size=(80, 24)) as terminal:
        await terminal.until_shown("Message 259 is here.")
        transcript, following = terminal.transcript, terminal.app.main.following
        assert following is not None
        transcript.scroll_to(y=transcript.max_scroll_y // 2, animate=False)
        await terminal.until(lambda: not transcript.following)
        before, offset = transcript_lines(terminal), terminal.state.offset
        assert offset > 0
        assert await following.load_older()
        await terminal.until(lambda: terminal.state.offset < offset and len(transcript.rows) > 190)
        assert still(before, terminal)
        assert transcript.new_count == 0
        await terminal.press("f6", "home")
        await terminal.until(lambda: terminal.state.offset == 0)
        await terminal.press("home")
        await terminal.until_shown("Message 0 is here.")
        assert terminal.shows("Start of the conversation")
        assert len(terminal.state.messages) == 260


class LostPages(Client):
    """Older messages are asked for, and do not come."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.gives_up = asyncio.Event()

    async def messages(self, conversation: str, before_seq: int, limit: int = 100) -> list[Message]:
        await self.gives_up.wait()
        raise Unreachable("No answer.")


async def test_loading_of_older_messages_is_said_and_its_failure_only_where_it_failed(served: Served) -> None:
    first, second = await many(served, 130), await many(served, 140)
    async with LostPages.connect(served.url, served.token) as client:
        assert isinstance(client, LostPages)
        app = PalaverApp(client, SystemClock(), conversation=first)
        async with app.run_test(size=(80, 24)) as pilot:
            terminal = Opened(app, pilot, client)
            await terminal.until_shown("Message 129 is here.")
            left = app.main.following
            assert left is not None
            await terminal.press("f6", "home")
            await terminal.until_shown("Loading older messages …")
            app.open_conversation(second)
            await terminal.until_shown("Message 139 is here.")
            client.gives_up.set()
            await terminal.until(lambda: not left.is_loading)
            app.main._flush()
            assert edge_of(terminal) == "more"
            await terminal.press("f6", "home")
            await terminal.until_shown("Older messages could not be loaded.")


async def test_jump_that_takes_long_is_given_up_with_its_conversation(served: Served) -> None:
    first, second = await many(served, 130), await many(served, 140)
    async with LostPages.connect(served.url, served.token) as client:
        assert isinstance(client, LostPages)
        app = PalaverApp(client, SystemClock(), conversation=first)
        async with app.run_test(size=(80, 24)) as pilot:
            terminal = Opened(app, pilot, client)
            await terminal.until_shown("Message 129 is here.")
            left = app.main.following
            assert left is not None
            app.main.jump("m3", 1)
            await terminal.until(lambda: left.is_loading)
            app.open_conversation(second)
            await terminal.until_shown("Message 139 is here.")
            client.gives_up.set()
            await terminal.until(lambda: not left.is_loading)
            await terminal.pilot.pause()
            assert len(app._notifications) == 0


def edge_of(terminal: Opened) -> str:
    edge = terminal.transcript.rows[0]
    assert isinstance(edge, EdgeRow)
    return edge.state


async def test_reader_moves_by_what_was_asked_through_rows_never_drawn(served: Served) -> None:
    """Lines that join into one make every guessed height wrong; going up puts them right without a jump."""
    conversation = await many(served, 90, "\nIt\nis\nlower\nthan\nit\nseems.", "assistant")
    async with opened(served, conversation, size=(80, 24)) as terminal:
        await terminal.until_shown("Message 89 is here.")
        terminal.transcript.focus()
        for _ in range(8):
            before = transcript_lines(terminal)
            first = next(line for line in before if "is here" in line)
            await terminal.press("up", "up", "up", "up")
            await terminal.until(lambda: transcript_lines(terminal) != before)  # noqa: B023
            assert transcript_lines(terminal).index(first) == before.index(first) + 4


async def test_jump_to_an_old_message_loads_what_lies_between(served: Served) -> None:
    conversation = await many(served, 300)
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("Message 299 is here.")
        page = await terminal.client.messages(conversation, terminal.state.messages[0].seq, 500)
        terminal.app.main.jump(page[3].id, page[3].seq)
        await terminal.until_shown("Message 3 is here.")


async def test_rows_fit_again_after_the_terminal_changed_its_size(served: Served) -> None:
    conversation = await served.create(message="narrow words that need some room to stand in one line of the terminal")
    async with opened(served, conversation, size=(120, 30)) as terminal:
        await terminal.until_shown("And that was all.")
        await terminal.pilot.resize_terminal(60, 20)
        await terminal.until(lambda: terminal.transcript.size.width == 60)
        await terminal.until_shown("And that was all.")
        assert all(len(line) <= 60 for line in terminal.lines())


async def test_lost_server_is_said_and_caught_up_with(tmp_path: Path) -> None:
    async with AsyncExitStack() as running:
        first = await running.enter_async_context(serving(tmp_path / "data", script))
        conversation = await first.create(message="one")
        await first.settled(conversation)
        async with opened(first, conversation) as terminal:
            await terminal.until_shown("You said one.")
            await running.aclose()
            await terminal.until_shown("No connection.")
            assert terminal.shows("You said one.")
            await terminal.write("two")
            await terminal.press("enter")
            await terminal.until_shown("Will send when connected")
            async with serving(tmp_path / "data", script, port=first.app.config.port):
                await terminal.until_shown("You said two.")
                await terminal.until_gone("No connection.")
                await terminal.until_gone("Will send when connected")
                said = [message.role for message in (await terminal.client.snapshot(conversation)).messages]
                assert said == ["user", "assistant", "user", "assistant"]


@pytest.mark.parametrize("wanted", ["message", "order"])
async def test_answer_of_the_server_ends_the_wait_for_it(tmp_path: Path, wanted: str) -> None:
    async with AsyncExitStack() as running:
        first = await running.enter_async_context(serving(tmp_path / "data", script))
        conversation = await first.create(message="one")
        await first.settled(conversation)
        # Its time stands still: no attempt is made because the wait is over.
        async with opened(first, conversation, clock=ManualClock()) as terminal:
            await terminal.until_shown("You said one.")
            following = terminal.app.main.following
            assert following is not None
            await running.aclose()
            await terminal.until(lambda: following.connection.kind == "reconnecting")
            async with serving(tmp_path / "data", script, port=first.app.config.port):
                if wanted == "message":
                    terminal.app.post_message(Send(conversation, "two"))
                    await terminal.until_shown("You said two.")
                else:
                    terminal.app.post_message(Order(conversation, UpdateConversation(title="Renamed")))
                    await terminal.until_shown("Renamed")
                assert following.connection.is_open
