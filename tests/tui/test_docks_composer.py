"""The composer: sends, queues, steers, keeps its draft on the server, edits what is queued, completes commands and files."""

from collections.abc import Sequence
from functools import partial

import pytest
from msgspec.structs import replace
from textual import events
from textual.pilot import Pilot
from textual.widgets import Static

from palaver.schema.commands import ClearDraft, EditQueued, SetDraft
from palaver.schema.content import ImagePart, ImageUrl, TextPart
from palaver.schema.view import Message, State
from palaver.tui.connection import Connection
from palaver.tui.docks.completion import SlashCommand, Suggestions
from palaver.tui.docks.edits import OfTranscript
from palaver.tui.docks.keyline import KeyLine
from palaver.tui.intents import Act, Order, Send
from tests.tui.harness import NOW_MS, TURN, DockApp, one, queued, reads, state_with, until

pytestmark = pytest.mark.anyio

COMMANDS = [
    SlashCommand("new", "New conversation", "new"),
    SlashCommand("files", "Changed files", "files"),
    SlashCommand("find", "Find in conversation", "find"),
]


async def files(folder: str) -> Sequence[str]:
    return {"": ["src/", "README.md", ".git/"], "src/": ["main.py", "model.py"]}.get(folder, [])


def text(app: DockApp) -> str:
    return app.docks.composer.prompt.text


def notice(app: DockApp) -> str:
    shown = app.docks.composer.query_one(".notice", Static)
    return str(shown.render()) if shown.display else ""


def hints(app: DockApp) -> list[str]:
    return [key.label for key in app.docks.composer.query_one(".hints", KeyLine).keys]


async def pasted(app: DockApp, pilot: Pilot[None], words: str) -> None:
    app.docks.composer.prompt.post_message(events.Paste(words))
    await pilot.pause()


async def test_enter_sends_at_rest_and_the_box_is_empty() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        await pilot.press(*"hello", "enter")
        await reads(pilot, lambda: [(send.text, send.delivery) for send in app.of(Send)], [("hello", "turn")])
        assert text(app) == ""
        await pilot.press("enter")
        await reads(pilot, lambda: len(app.of(Send)), 1)


async def test_every_terminal_has_a_key_for_a_new_line() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        await pilot.press("a", "shift+enter", "b", "ctrl+j", "c", "alt+enter", "d", "enter")
        await reads(pilot, lambda: [send.text for send in app.of(Send)], ["a\nb\nc\nd"])


async def test_steering_is_a_key_of_its_own_and_only_where_it_is_possible() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with())
        await reads(pilot, lambda: hints(app)[:3], ["queue", "steer now", "stop"])
        await pilot.press("a", "ctrl+s", "b", "ctrl+enter", "c", "enter")
        app.show(state_with(turn=replace(TURN, steerable=False)))
        await until(pilot, lambda: "steer now" not in hints(app))
        await pilot.press("d", "ctrl+s")
        await reads(pilot, lambda: [send.delivery for send in app.of(Send)], ["boundary", "boundary", "turn", "turn"])


async def test_a_refused_message_comes_back_with_the_reason() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        await pilot.press(*"hello", "enter")
        send = await one(pilot, lambda: app.of(Send))
        assert send.refused is not None
        send.refused("The queue is full.")
        await reads(pilot, lambda: text(app), "hello")
        assert notice(app) == "The queue is full."


async def test_a_draft_is_saved_when_the_hands_rest_and_cleared_with_the_message() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        await pilot.press(*"half")
        assert app.orders(SetDraft) == []
        await app.clock.advance(1.5)
        await reads(pilot, lambda: [draft.text for draft in app.orders(SetDraft)], ["half"])
        await pilot.press("enter")
        await reads(pilot, lambda: len(app.orders(ClearDraft)), 1)
        await app.clock.advance(5)
        await pilot.pause()
        assert len(app.orders(SetDraft)) == 1


async def test_a_late_echo_of_our_own_draft_does_not_bring_sent_words_back() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        await pilot.press(*"half")
        await app.clock.advance(1.5)
        await until(pilot, lambda: bool(app.orders(SetDraft)))
        await pilot.press("enter")
        app.show(state_with(turn=None, draft="half"))
        await pilot.pause()
        assert text(app) == ""
        app.show(state_with(turn=None, draft=""))
        assert text(app) == ""


async def test_a_draft_of_another_device_is_taken_over_unless_somebody_writes() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None, draft="from\x1b[31m the phone"))
        await reads(pilot, lambda: text(app), "from␛[31m the phone")
        app.show(state_with(turn=None, draft="longer"))
        assert text(app) == "longer"
        await pilot.press("!")
        app.show(state_with(turn=None, draft="other"))
        assert text(app) == "longer!"


async def test_leaving_keeps_what_is_written_and_each_conversation_has_its_own() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        await pilot.press(*"here")
        last_word = app.docks.leave()
        assert last_word is not None
        assert (last_word.conversation, last_word.command) == ("c-1", SetDraft(text="here"))
        app.show(replace(state_with(turn=None, draft="there"), conversation="c-2"))
        assert text(app) == "there"


async def test_keys_that_come_before_the_opened_conversation_follow_what_was_written_there() -> None:
    for draft, together in (("there", "there now"), ("there\n", "there\nnow"), ("", "now")):
        app = DockApp()
        async with app.run_test() as pilot:
            app.show(state_with(turn=None))
            await pilot.press(*"here")
            app.docks.leave()
            # What is shown until another conversation is loaded.
            app.show(State())
            await pilot.press(*"now")
            app.show(replace(state_with(turn=None, draft=draft), conversation="c-2"))
            await reads(pilot, partial(text, app), together)
            await app.clock.advance(1.5)
            await until(pilot, partial(app.of, Order))
            saved = [(order.conversation, order.command) for order in app.of(Order)]
            assert saved == [("c-2", SetDraft(text=together))]


async def test_words_written_before_the_conversation_is_there_stay() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await pilot.press(*"quick")
        app.show(state_with(turn=None))
        assert text(app) == "quick"


async def test_a_long_paste_is_taken_whole_and_said() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        await pasted(app, pilot, "line\r\n" * 200 + "\x1b[2Jend")
        await reads(pilot, lambda: text(app).count("\n"), 200)
        assert text(app).endswith("␛[2Jend")
        assert notice(app) == "Pasted 201 lines (1.2 KB)"
        assert app.docks.composer.size.height < 14
        assert app.of(Send) == []


async def test_more_than_a_message_may_hold_is_refused_with_words() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        await pilot.press("a")
        await pasted(app, pilot, "x" * (1024 * 1024 + 10))
        assert notice(app).startswith("A message may hold 1 MB; this one holds 1.0 MB.")
        assert text(app) == "a"


async def test_without_a_connection_one_goes_on_writing_and_sending() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        app.connection(Connection("reconnecting"))
        await pilot.press(*"kept", "enter")
        await reads(
            pilot, lambda: notice(app), "Not connected. Your message is kept and sent when the connection is back."
        )
        assert [send.text for send in app.of(Send)] == ["kept"]
        app.connection(Connection("open"))
        await reads(pilot, lambda: notice(app), "")


async def test_up_in_an_empty_box_edits_the_last_queued_message_and_holds_it() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=(queued("i-1", "first"), queued("i-2", "second"))))
        await pilot.pause()
        await pilot.press("up")
        await reads(pilot, lambda: text(app), "second")
        assert notice(app) == "Editing a queued message; it waits for you"
        await pilot.press("!", "enter")
        edits = [EditQueued(item="i-2", held=True), EditQueued(item="i-2", held=False, content="second!")]
        await reads(pilot, lambda: app.orders(EditQueued), edits)
        await reads(pilot, lambda: text(app), "")


async def test_escape_leaves_a_queued_message_as_it_was_and_brings_back_what_was_written() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        image = ImagePart(image_url=ImageUrl(url="data:image/png;base64,x"))
        item = replace(queued("i-1", "first"), content=(TextPart(text="first"), image))
        app.show(state_with(queue=(item,)))
        await pilot.press(*"mine")
        app.docks.composer.begin_edit(item)
        await reads(pilot, lambda: text(app), "first")
        await pilot.press("escape")
        await reads(pilot, lambda: text(app), "mine")
        await reads(pilot, lambda: app.orders(EditQueued)[-1], EditQueued(item="i-1", held=False))
        assert app.stops == 0
        app.docks.composer.begin_edit(item)
        await pilot.press("x", "enter")
        await reads(pilot, lambda: app.orders(EditQueued)[-1].content, (TextPart(text="firstx"), image))


async def test_message_that_is_asked_for_again_while_it_is_edited_keeps_what_was_changed() -> None:
    for what in (queued("i-1", "first"), OfTranscript("m-1", "first")):
        app = DockApp()
        async with app.run_test() as pilot:
            told = Message(id="m-1", role="user", seq=1, updated_seq=1, ts=NOW_MS)
            app.show(state_with(queue=(queued("i-1", "first"),), messages=(told,), turn=None))
            app.docks.composer.begin_edit(what)
            await pilot.press("!")
            begun = len(app.orders(EditQueued))
            app.docks.composer.begin_edit(what)
            await pilot.press("?")
            await reads(pilot, partial(text, app), "first!?")
            assert len(app.orders(EditQueued)) == begun


async def test_earlier_moment_offers_no_key_that_would_write() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        await until(pilot, lambda: "send" in hints(app))
        app.docks.composer.read_only("You look at an earlier moment.")
        await reads(pilot, lambda: hints(app), ["commands"])
        app.docks.composer.read_only("")
        await until(pilot, lambda: "send" in hints(app))


async def test_words_stay_when_the_edited_message_leaves_the_queue() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=(queued("i-1", "first"),)))
        await pilot.pause()
        await pilot.press("up")
        await reads(pilot, lambda: text(app), "first")
        await pilot.press("!")
        await reads(pilot, lambda: text(app), "first!")
        app.show(state_with())
        await reads(pilot, lambda: text(app), "first!")
        gone = "It left the queue before your change arrived. Your words are kept here."
        await reads(pilot, lambda: notice(app), gone)
        await pilot.press("enter")
        await reads(pilot, lambda: [send.text for send in app.of(Send)], ["first!"])


async def test_a_slash_lists_commands_and_enter_does_the_chosen_one() -> None:
    app = DockApp(commands=lambda: COMMANDS)
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        await pilot.press("/", "f", "down", "enter")
        await reads(pilot, lambda: [act.action for act in app.of(Act)], ["find"])
        assert text(app) == ""
        await pilot.press("/", "f", "escape")
        await until(pilot, lambda: not app.docks.composer.query_one(Suggestions).display)
        assert app.stops == 0


async def test_a_command_of_the_agent_is_sent_as_it_is() -> None:
    app = DockApp(commands=lambda: COMMANDS)
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        await pilot.press(*"/compact", "enter")
        await reads(pilot, lambda: [send.text for send in app.of(Send)], ["/compact"])


async def test_an_at_sign_completes_files_folder_by_folder() -> None:
    app = DockApp(files=files)
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        await pilot.press(*"see @s")
        await until(pilot, lambda: app.docks.composer.query_one(Suggestions).display)
        await pilot.press("tab")
        await reads(pilot, lambda: text(app), "see @src/")
        await pilot.press("m", "o", "tab", "x")
        await reads(pilot, lambda: text(app), "see @src/model.py x")
        await until(pilot, lambda: not app.docks.composer.query_one(Suggestions).display)


async def test_a_name_within_a_word_is_no_file() -> None:
    app = DockApp(files=files)
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        await pilot.press(*"me@s")
        await pilot.pause()
        assert not app.docks.composer.query_one(Suggestions).display


async def test_escape_that_closes_nothing_here_stops_the_agent() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with())
        await pilot.press("escape")
        await reads(pilot, lambda: app.stops, 1)


async def test_a_mode_in_which_less_is_asked_stays_in_sight() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        line = app.docks.composer.query_one(".mode", Static)
        app.show(state_with(turn=None))
        await until(pilot, lambda: not line.display)
        assert "Ask first" in hints(app)
        app.show(state_with(turn=None, params={"mode": "full"}))
        await until(pilot, lambda: line.display)
        assert str(line.render()) == "Full access: everything runs without asking, on the whole machine."
