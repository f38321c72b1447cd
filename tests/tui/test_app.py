"""The app around the conversation: leaving, colours, subagents beside the transcript, an earlier moment, what is remembered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

from palaver.backends.script.script import Say, Tool, Tools, Wait
from palaver.client.client import Client
from palaver.clock import SystemClock
from palaver.core.fold.evolve import fold
from palaver.people.authentication import KeyRecord, token_hash
from palaver.schema.events import decode_event
from palaver.schema.view import Listing
from palaver.tui.app import PalaverApp
from palaver.tui.intents import Send, ViewAt
from palaver.tui.local_memory import Remembered
from palaver.tui.subagents import Family
from palaver.tui.text import rows
from palaver.tui.theme import DARK, LIGHT, LIGHT_NAME
from tests.flows.served import Served, serving
from tests.tui.golden import lines_of, start_of
from tests.tui.opened import Opened, opened

CALLS = Tools((Tool("read", {"path": "a"}, "1\n"), Tool("shell", {"command": "make"}, "ok\n")))


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with serving(tmp_path_factory.mktemp("app") / "data", [Say("First."), CALLS, Say("Last.")]) as server:
        yield server


async def test_leaving_asks_about_a_server_that_was_started_for_it(served: Served) -> None:
    stopped: list[str] = []

    async def stop() -> None:
        stopped.append("stopped")

    async with Client.connect(served.url, served.token) as client:
        app = PalaverApp(client, SystemClock(), stop_server=stop)
        async with app.run_test(size=(80, 24)) as pilot:
            terminal = Opened(app, pilot, client)
            await terminal.press("ctrl+q")
            await terminal.until_shown("Leave Palaver?")
            await terminal.press("escape")
            await terminal.until_gone("Leave Palaver?")
            await terminal.press("ctrl+q")
            await terminal.until_shown("keep the server running")
            await terminal.press("s")
            await terminal.until(lambda: stopped == ["stopped"])


async def test_leaving_a_server_that_runs_anyway_asks_nothing(served: Served) -> None:
    async with opened(served) as terminal:
        await terminal.press("ctrl+q")
        await terminal.until(lambda: terminal.app.return_code is not None)


async def test_words_written_just_before_leaving_are_kept(served: Served) -> None:
    conversation = await served.create()
    async with opened(served, conversation) as terminal:
        await terminal.until(lambda: terminal.state.seq > 0)
        await terminal.write("half")
        await terminal.press("ctrl+q")
        await terminal.until(lambda: terminal.app.return_code is not None)
    assert (await served.state(conversation))["draft"] == "half"


async def test_leaving_waits_for_a_server_that_is_gone_only_for_a_moment_and_says_what_was_lost(tmp_path: Path) -> None:
    async with AsyncExitStack() as running:
        gone = await running.enter_async_context(serving(tmp_path / "data"))
        conversation = await gone.create()
        async with opened(gone, conversation) as terminal:
            await terminal.until(lambda: terminal.state.seq > 0)
            await running.aclose()
            await terminal.write("half")
            await terminal.press("ctrl+q")
            await terminal.until(lambda: terminal.app.return_code is not None)
            assert rows.UNHEARD in terminal.app._exit_renderables


async def test_staying_after_all_changes_nothing_of_what_is_edited(served: Served) -> None:
    conversation = await served.create(message="go")
    await served.settled(conversation)
    async with Client.connect(served.url, served.token) as client:
        app = PalaverApp(client, SystemClock(), conversation=conversation, stop_server=_never)
        async with app.run_test(size=(80, 24)) as pilot:
            terminal = Opened(app, pilot, client)
            await terminal.until_shown("Last.")
            app.act("edit")
            await terminal.until_shown("Enter resend")
            await terminal.press("ctrl+q")
            await terminal.until_shown("Leave Palaver?")
            await terminal.press("escape")
            await terminal.until_gone("Leave Palaver?")
            await terminal.press("!")
            await terminal.until_shown("> go!")
            assert terminal.shows("Enter resend")
            await terminal.press("escape")
            await terminal.until_gone("> go!")


async def _never() -> None:
    raise AssertionError("Nobody chose to stop the server.")


async def test_message_sent_before_the_opened_conversation_is_there_goes_to_it(served: Served) -> None:
    first, second = await served.create(), await served.create()
    async with opened(served, first) as terminal:
        await terminal.until(lambda: terminal.state.conversation == first)
        before = len(await terminal.client.conversations(200))
        terminal.app.open_conversation(second)
        terminal.app.post_message(Send("", "meant for the second", "turn"))
        await terminal.until_shown("meant for the second")
        await served.settled(second)
        assert terminal.app.main.conversation == second
        assert len(await terminal.client.conversations(200)) == before


async def test_message_reaches_the_server_with_its_own_agent_mode_and_turn(served: Served) -> None:
    conversation = await served.create()
    async with opened(served, conversation, notifications=True) as terminal:
        await terminal.until(lambda: terminal.state.seq > 0)
        own = Send(conversation, "later", held=True, merge=True, agent=terminal.state.agent, mode="plan")
        terminal.app.post_message(own)
        await terminal.until(lambda: len(terminal.state.queue) == 1)
        (item,) = terminal.state.queue
        assert (item.agent, item.mode, item.merge) == (terminal.state.agent, "plan", True)
        terminal.app.post_message(Send(conversation, "for nobody", agent="nobody"))
        await terminal.until(lambda: "nobody" in str([one.message for one in terminal.app._notifications]))


async def test_first_words_are_for_the_latest_conversation_however_soon_they_are_sent(served: Served) -> None:
    latest = await served.create(message="go")
    await served.settled(latest)
    known, listed = asyncio.Event(), Client.conversations

    class Slow(Client):
        async def conversations(self, *asked: Any, **wanted: Any) -> list[Listing]:
            await known.wait()
            return await listed(self, *asked, **wanted)

    async with Slow.connect(served.url, served.token) as client:
        before = len(await listed(client, 200))
        app = PalaverApp(client, SystemClock())
        async with app.run_test() as pilot:
            terminal = Opened(app, pilot, client)
            await terminal.write("sent at once")
            await terminal.press("enter")
            known.set()
            await terminal.until_shown("sent at once")
            assert app.main.conversation == latest
            assert len(await listed(client, 200)) == before


async def test_what_is_opened_right_after_the_start_stays(served: Served) -> None:
    async with opened(served, await served.create(), size=(80, 24)) as terminal:
        await terminal.press("ctrl+k")
        await terminal.until_shown("Type a command or a conversation")
        await terminal.until(lambda: bool(terminal.state.conversation))
        assert terminal.shows("Type a command or a conversation")


async def test_colours_change_everywhere_and_are_remembered(served: Served, tmp_path: Path) -> None:
    conversation = await served.create(message="go")
    await served.settled(conversation)
    path = tmp_path / "terminal.json"
    async with Client.connect(served.url, served.token) as client:
        app = PalaverApp(client, SystemClock(), conversation=conversation, remembered=Remembered(path))
        async with app.run_test(size=(80, 24)) as pilot:
            terminal = Opened(app, pilot, client)
            await terminal.until_shown("Last.")
            assert _grounds(terminal) == {DARK.paper, DARK.panel}
            app.act("theme")
            await terminal.until(lambda: _grounds(terminal) == {LIGHT.paper, LIGHT.panel})
    assert Remembered(path).theme == LIGHT_NAME


def _grounds(terminal: Opened) -> set[str]:
    strips = [terminal.transcript.render_line(y) for y in range(terminal.transcript.size.height)]
    styles = [segment.style for strip in strips for segment in strip if segment.style is not None]
    return {style.bgcolor.triplet.hex for style in styles if style.bgcolor and style.bgcolor.triplet}


async def test_subagents_stand_beside_the_transcript_where_there_is_room(served: Served) -> None:
    conversation = await served.create(message="go")
    state = fold(start_of("delegating"), [decode_event(line) for line in lines_of("delegating")])
    async with opened(served, conversation, size=(140, 36)) as terminal:
        await terminal.until_shown("Last.")
        terminal.app.main.show_past(replace(state, conversation=conversation))
        await terminal.until_shown("Subagents")
        family = terminal.app.main.query_one(Family)
        assert [member.state for member in family.members] == ["completed", "cancelled", "failed"]
        assert terminal.shows("✗ sower · failed")
        await terminal.pilot.resize_terminal(100, 36)
        await terminal.until_gone("Subagents")


async def test_earlier_moment_is_shown_and_left_again(served: Served) -> None:
    conversation = await served.create(message="go")
    events = await served.settled(conversation)
    first = next(event["seq"] for event in events if event["type"] == "text.finished")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("Last.")
        terminal.app.post_message(ViewAt(first))
        await terminal.until_gone("Last.")
        await terminal.until_shown("First.")
        assert terminal.app.main.docks.composer.prompt.read_only
        assert terminal.lines()[0].endswith(f"as of event {first}")
        await terminal.press("escape")
        await terminal.until_shown("Last.")
        assert not terminal.shows("as of event")
        assert not terminal.app.main.docks.composer.prompt.read_only


async def test_earlier_moment_is_looked_at_where_it_ends(served: Served) -> None:
    conversation = await served.create(message="\n".join(f"line {number}" for number in range(60)))
    seq = (await served.settled(conversation))[-1]["seq"]
    async with opened(served, conversation, size=(80, 24)) as terminal:
        await terminal.until_shown("Last.")
        terminal.app.act("start")
        await terminal.until_gone("Last.")
        terminal.app.post_message(ViewAt(seq))
        await terminal.until_shown("Last.")
        assert terminal.shows(f"as of event {seq}")


async def test_last_line_names_the_keys_that_are_heard_where_the_focus_is(served: Served) -> None:
    conversation = await served.create(message="go")
    await served.settled(conversation)
    async with opened(served, conversation, size=(80, 24)) as terminal:
        await terminal.until_shown("Enter send")
        await terminal.press("f6")
        await terminal.until_shown("J K block   O open or close   I write")
        assert not terminal.shows("Enter send")
        await terminal.press("i")
        await terminal.until_shown("Enter send")


async def test_word_in_passing_leaves_the_message_box_in_sight(served: Served) -> None:
    conversation = await served.create(message="go")
    await served.settled(conversation)
    async with opened(served, conversation, size=(80, 24), notifications=True) as terminal:
        await terminal.until_shown("Last.")
        before = terminal.lines()[-3:]
        terminal.app.say("A sentence that is somewhat longer than half of a small screen has columns.")
        await terminal.until_shown("A sentence that is somewhat")
        assert terminal.lines()[-3:] == before


async def test_chosen_row_is_told_from_the_others_without_many_colours(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Console, "color_system", "standard")
    async with opened(served, await served.create(), size=(80, 24)) as terminal:
        await terminal.until(lambda: bool(terminal.state.conversation))
        await terminal.press("ctrl+k")
        await terminal.until_shown("Archive conversation")
        assert [text for text in _underlined(terminal) if "conversation" in text] == ["Archive conversation"]


def _underlined(terminal: Opened) -> list[str]:
    strips = terminal.app.screen._compositor.render_strips()
    return [segment.text.strip() for strip in strips for segment in strip if segment.style and segment.style.underline]


async def test_bell_rings_only_for_someone_who_looks_elsewhere(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[str] = []
    monkeypatch.setattr(PalaverApp, "bell", lambda app: rung.append(app.title))
    conversation = await served.create(title="Horn")
    async with opened(served, conversation) as terminal:
        await terminal.until(lambda: bool(terminal.state.conversation))
        for answers, looks in ((1, True), (2, False)):
            terminal.app.app_focus = looks
            await served.send(conversation, "go")
            # The top line is told in the same step as the title.
            await terminal.until(lambda: terminal.text().count("Last.") == answers and _is_ready(terminal))  # noqa: B023
            await terminal.pilot.pause()
        assert rung == ["○ Horn · Palaver"]
        assert terminal.app.title == "○ Horn · Palaver"


def _is_ready(terminal: Opened) -> bool:
    return terminal.lines()[0].endswith("Ready")


async def test_what_came_while_nobody_looked_is_divided_off(served: Served, tmp_path: Path) -> None:
    conversation = await served.create(message="one")
    await served.settled(conversation)
    path = tmp_path / "terminal.json"
    for words, divided in (("two", False), ("three", True)):
        async with Client.connect(served.url, served.token) as client:
            app = PalaverApp(client, SystemClock(), conversation=conversation, remembered=Remembered(path))
            async with app.run_test(size=(80, 60)) as pilot:
                terminal = Opened(app, pilot, client)
                await terminal.until(lambda: terminal.state.seq > 0 and terminal.shows("Last."))  # noqa: B023
                assert terminal.shows("New since you left") is divided
                app.remembered.save()
        before = (await served.state(conversation))["seq"]
        await served.send(conversation, words)
        await served.settled(conversation, after=before)


async def test_whoever_may_only_read_is_told_so_and_sees_what_the_agent_does(tmp_path: Path) -> None:
    guest = KeyRecord(name="guest", kind="observer", hash=token_hash("guest-token"))
    (tmp_path / "tokens.json").write_bytes(msgspec.json.encode([guest]))
    async with serving(tmp_path, [Say("Half"), Wait("gate")]) as server:
        conversation = await server.create(message="go")
        async with Client.connect(server.url, "guest-token") as client:
            app = PalaverApp(client, SystemClock(), conversation=conversation)
            async with app.run_test(size=(80, 24)) as pilot:
                terminal = Opened(app, pilot, client)
                await terminal.until_shown("You may read here.")
                await terminal.until_shown("Half")
                await terminal.until_shown("● ")
                await terminal.write("x")
                assert app.main.docks.composer.prompt.text == ""
                await terminal.press("escape", "ctrl+g")
                await terminal.press("ctrl+k")
                await terminal.until_shown("Find in conversation")
                assert not terminal.shows("Rename")
                assert not terminal.shows("Stop")
                await terminal.press("escape")
                await terminal.until_gone("Find in conversation")
                assert terminal.state.turn is not None
        await server.command(conversation, type="interrupt")


async def test_conversation_that_is_not_there_is_said(served: Served) -> None:
    async with opened(served, "nobody") as terminal:
        await terminal.until_shown("This conversation was deleted.")
