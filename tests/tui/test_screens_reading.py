"""Search, inspector, changed files, inbox, agents, a new conversation and the small boxes, over a real server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.widgets import Input, Static

from palaver.backends.script.script import Say, Tool
from palaver.client import Client
from palaver.clock import ManualClock, SystemClock
from palaver.core.fold.evolve import fold
from palaver.schema.commands import DeleteConversation, ResolveRequest, SetParams, UpdateConversation
from palaver.schema.view import FileChange, Message, State, TextBlock, ToolBlock
from palaver.tui.docks.choices import Choices
from palaver.tui.intents import Act, Begin, Copy, JumpTo, OpenConversation, Order, ViewAt
from palaver.tui.screens.agents import AgentsScreen, BackendsScreen
from palaver.tui.screens.choose import ChooseMode, ConfirmDelete, Rename
from palaver.tui.screens.files import ChangedFiles, DiffScreen, list_changed_files
from palaver.tui.screens.inspector import EventInspector
from palaver.tui.screens.new import NewConversation
from palaver.tui.screens.open import Where, screen_for
from palaver.tui.screens.requests import WaitingInbox
from palaver.tui.screens.search import SearchScreen, hits_in
from palaver.tui.transcript.diffs import by_file
from tests.flows.served import Served, serving
from tests.tui.harness import NOW_MS, ScreenApp, one, reads, state_with, until

pytestmark = pytest.mark.anyio

DIFF = "--- a/src/x.py\n+++ b/src/x.py\n@@ -1,2 +1,2 @@\n import os\n-old\n+new\u202e\n"


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with serving(tmp_path_factory.mktemp("reading") / "data") as server:
        yield server


@pytest.fixture(scope="module")
async def talked(served: Served) -> str:
    conversation = await served.create(title="A talk")
    await served.send(conversation, "look for the needle")
    await served.settled(conversation)
    return conversation


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    async with Client.connect(served.url, served.token) as connected:
        yield connected


# -- search


async def test_words_are_found_in_this_conversation_and_jumped_to(client: Client, talked: str) -> None:
    state = await client.snapshot(talked)
    app = ScreenApp(SearchScreen(client, SystemClock(), state))
    async with app.run_test() as pilot:
        await until(pilot, lambda: "Type words to look for." in app.said())
        await pilot.press(*"needle")
        await until(pilot, lambda: "1 match" in app.said())
        await pilot.press("enter")
        await reads(
            pilot, lambda: [(jump.message, jump.words) for jump in app.of(JumpTo)], [(state.messages[0].id, "needle")]
        )


async def test_words_are_found_everywhere_and_opened_where_they_stand(client: Client, talked: str) -> None:
    app = ScreenApp(SearchScreen(client, SystemClock(), None))
    async with app.run_test() as pilot:
        await pilot.press(*"needle")
        await until(pilot, lambda: "A talk" in app.said())
        await pilot.press("enter")
        opened = await one(pilot, lambda: app.of(OpenConversation))
        assert opened.conversation == talked
        assert opened.message is not None


async def test_a_search_without_a_hit_says_what_to_try(client: Client, talked: str) -> None:
    app = ScreenApp(SearchScreen(client, SystemClock(), await client.snapshot(talked)))
    async with app.run_test() as pilot:
        await pilot.press(*"qqq")
        await until(pilot, lambda: "Nothing matches “qqq”." in app.said())
        await pilot.press("tab")
        await until(pilot, lambda: "Search in all conversations" in app.said())


async def test_older_messages_are_searched_too(client: Client, served: Served) -> None:
    conversation = await served.create()
    await served.send(conversation, "an early haystack")
    await served.settled(conversation)
    state = await client.snapshot(conversation, tail=1)
    assert state.offset > 0
    app = ScreenApp(SearchScreen(client, SystemClock(), state))
    async with app.run_test() as pilot:
        await pilot.press(*"haystack")
        await until(pilot, lambda: "1 match" in app.said())


def test_a_hit_shows_its_surroundings_in_any_case() -> None:
    block = TextBlock(index=0, text="The Needle is in\nthe hay")
    message = Message(id="m-1", role="user", seq=1, updated_seq=1, ts=0, blocks=(block,))
    (hit,) = hits_in([message], "hay needle", "c-1")
    assert (hit.before, hit.match, hit.after) == ("The Needle is in\nthe ", "hay", "")
    assert hits_in([message], "hay straw", "c-1") == []


def test_a_call_is_found_by_what_it_was_given_as_it_is_written() -> None:
    block = ToolBlock(index=0, call="call-1", name="read", status="ok", input={"path": "a.py", "whole": True})
    message = Message(id="m-1", role="assistant", seq=1, updated_seq=1, ts=0, blocks=(block,))
    (hit,) = hits_in([message], '"path": "a.py"', "c-1")
    assert hit.before + hit.match + hit.after == 'read {"path": "a.py", "whole": true} '


# -- the inspector


async def test_the_inspector_shows_the_log_and_the_view_at_any_event(client: Client, talked: str) -> None:
    sheet = EventInspector(client, talked)
    app = ScreenApp(sheet)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "turn.finished" in app.said())
        events = sheet._book.events
        state = State(conversation=talked)
        for event in events:
            state = fold(state, (event,))
            assert sheet._book.view_at(event.seq) == state
        await pilot.press("home", "v")
        await reads(pilot, lambda: [view.seq for view in app.of(ViewAt)], [events[0].seq])
        assert "paused at event 1" in app.said()
        await pilot.press("c")
        assert '"type": "conversation.created"' in (await one(pilot, lambda: app.of(Copy))).text
        await pilot.press("n")
        await until(pilot, lambda: app.of(ViewAt)[-1].seq is None)


async def test_the_inspector_filters_by_type(client: Client, talked: str) -> None:
    app = ScreenApp(EventInspector(client, talked))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "turn.finished" in app.said())
        await pilot.press("slash", *"turn.")
        await until(pilot, lambda: "message.added" not in app.said())
        assert "turn.started" in app.said()
        await pilot.press(*"zz")
        await until(pilot, lambda: "No event's type holds “turn.zz”." in app.said())


# -- files


def with_files() -> State:
    change = FileChange(path="src/x.py", kind="modified", additions=1, deletions=1, diff=DIFF)
    tool = ToolBlock(index=0, call="t", name="edit", status="ok", changes=(change,))
    message = Message(id="m", role="assistant", seq=1, updated_seq=1, ts=0, blocks=(tool,))
    bare = FileChange(path="src/x.py", kind="modified", additions=1, deletions=1)
    made = FileChange(path="new\x1b[31m.md", kind="created", additions=3)
    return state_with(messages=(message,), files=(bare, made))


async def test_changed_files_open_to_their_lines_and_are_copied_as_a_patch() -> None:
    app = ScreenApp(ChangedFiles(with_files()))
    async with app.run_test() as pilot:
        await until(pilot, lambda: "new␛[31m.md" in app.said())
        assert "Changed files · 2 files · +4 \N{MINUS SIGN}1" in app.said()
        assert "new␛[31m.md  new  +3" in app.said()
        await pilot.press("c")
        await reads(pilot, lambda: [copy.text for copy in app.of(Copy)], [DIFF])
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, DiffScreen) and app.screen.query("#lines"))
        change = ["  import os", "- old", "+ new⟨202E⟩"]
        await reads(pilot, lambda: str(app.screen.query_one("#lines", Static).render()).split("\n")[1:], change)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.sheet)


async def test_no_changed_files_and_a_change_without_lines_say_so() -> None:
    app = ScreenApp(ChangedFiles(state_with()))
    async with app.run_test() as pilot:
        await until(pilot, lambda: "No files were changed in this conversation." in app.said())
    (made,) = by_file((FileChange(path="big.bin", kind="created"),))
    app = ScreenApp(DiffScreen(made))
    async with app.run_test() as pilot:
        await until(pilot, lambda: "The lines of this change are not at hand." in app.said())


def test_lines_come_from_the_calls_and_kinds_from_the_view() -> None:
    first, second = list_changed_files(with_files())
    assert first.parts[0].diff == DIFF
    assert second.kind == "created"


# -- the inbox


async def test_the_inbox_answers_what_waits_anywhere_and_says_when_nothing_does(tmp_path: Path) -> None:
    script = (Tool("shell", {"command": "make all"}, asks=True), Say("Done."))
    async with serving(tmp_path / "data", script) as server, Client.connect(server.url, server.token) as client:
        clock = ManualClock(NOW_MS)
        sheet = WaitingInbox(client, clock)
        app = ScreenApp(sheet)
        async with app.run_test() as pilot:
            await until(pilot, lambda: "Nothing waits for you." in app.said())
            conversation = await server.create(title="Asking")
            await server.send(conversation, "go")
            await until(pilot, lambda: bool(app.sheet.query("ApprovalCard .bar")) and "make all" in app.said())
            await pilot.press("alt+1")
            assert app.orders(ResolveRequest) == []
            await clock.advance(1)
            await pilot.press("alt+1")
            order = await one(pilot, lambda: app.of(Order))
            assert order.conversation == conversation
            await client.command(order.conversation, order.command)
            await until(pilot, lambda: "Allowed once" in app.said() and "Nothing waits for you." in app.said())


async def test_the_inbox_says_what_became_of_requests_that_are_over(tmp_path: Path) -> None:
    script = (Tool("shell", {"command": "make all"}, asks=True), Say("Done."))
    async with serving(tmp_path / "data", script) as server, Client.connect(server.url, server.token) as client:
        missed = await server.create(title="Slept", params={"request_timeout_s": 0.05})
        await server.send(missed, "go")
        await server.settled(missed)
        denied = await server.create(title="Awake")
        await server.send(denied, "go")
        async with server.events(denied, after=0) as events:
            asked = [event async for event in events.until(lambda event: event["type"] == "request.opened")][-1]
        await server.command(denied, type="resolve_request", request=asked["request"], verdict="deny")
        await server.settled(denied)
        stopped = await server.create(title="Stopped")
        await server.send(stopped, "go")
        async with server.events(stopped, after=0) as events:
            [event async for event in events.until(lambda event: event["type"] == "request.opened")]
        await server.command(stopped, type="interrupt")
        await server.settled(stopped)
        sheet = WaitingInbox(client, SystemClock())
        app = ScreenApp(sheet)
        async with app.run_test(size=(100, 30)) as pilot:
            await until(pilot, lambda: "Expired without an answer" in app.said())
            became = [line.strip() for line in app.said().splitlines() if " · now" in line]
            assert became == [
                "Withdrawn · Stopped · now",
                "Denied · answered elsewhere · Awake · now",
                "Missed · Expired without an answer · Slept · now",
            ]
            await pilot.press("end", "o")
            await reads(pilot, lambda: [opened.conversation for opened in app.of(OpenConversation)], [missed])


async def test_the_inbox_opens_the_conversation_of_a_request(tmp_path: Path) -> None:
    script = (Tool("shell", {"command": "make all"}, asks=True), Say("Done."))
    async with serving(tmp_path / "data", script) as server, Client.connect(server.url, server.token) as client:
        conversation = await server.create(title="Asking")
        await server.send(conversation, "go")
        sheet = WaitingInbox(client, SystemClock())
        app = ScreenApp(sheet)
        async with app.run_test() as pilot:
            await until(pilot, lambda: sheet.chosen is not None)
            await pilot.press("o")
            await reads(pilot, lambda: [opened.conversation for opened in app.of(OpenConversation)], [conversation])


# -- agents, backends, a new conversation


async def test_agents_are_listed_and_one_is_chosen_for_this_conversation(client: Client) -> None:
    app = ScreenApp(AgentsScreen(client, conversation="c-1", current="default"))
    async with app.run_test() as pilot:
        await until(pilot, lambda: "Other" in app.said())
        assert "answers here" in app.said()
        await pilot.press("end", "enter")
        await reads(pilot, lambda: app.orders(UpdateConversation), [UpdateConversation(agent="other")])
        await pilot.press("b")
        await reads(pilot, lambda: [act.action for act in app.of(Act)], ["backends"])


async def test_backends_say_how_they_stand_and_are_tried(client: Client) -> None:
    app = ScreenApp(BackendsScreen(client, SystemClock()))
    async with app.run_test() as pilot:
        await until(pilot, lambda: "Ready" in app.said())
        await pilot.press("t")
        await until(pilot, lambda: "Answered in" in app.said() or "It did not answer" in app.said())


async def test_a_new_conversation_begins_with_its_message_agent_folder_and_mode(client: Client) -> None:
    sheet = NewConversation(client, agent="other")
    app = ScreenApp(sheet)
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: bool(sheet.query("#agents Choices")))
        await pilot.press(*"Fix", "ctrl+j", *"it")
        sheet.query_one("#folder", Input).value = "/srv/app"
        sheet.query_one("#mode", Choices).choose(1)
        await pilot.press("enter")
        begin = await one(pilot, lambda: app.of(Begin))
        body = begin.body
        assert (body.agent, body.project, body.params, body.message) == (
            "other",
            "/srv/app",
            {"mode": "plan"},
            "Fix\nit",
        )
        assert begin.refused is not None
        begin.refused("`project`: there is no such folder.")
        await until(pilot, lambda: "“project”: there is no such folder." in app.said())


async def test_without_an_agent_a_new_conversation_says_how_to_get_one() -> None:
    async with Client.connect("http://127.0.0.1:9", "none") as client:
        app = ScreenApp(NewConversation(client))
        async with app.run_test() as pilot:
            await until(pilot, lambda: "The agents could not be loaded." in app.said())


# -- small boxes


async def test_full_access_is_given_only_when_asked_twice() -> None:
    app = ScreenApp(ChooseMode(state_with()))
    async with app.run_test() as pilot:
        await pilot.press("5", "enter")
        await until(pilot, lambda: "Give full access?" in app.said())
        assert app.orders(SetParams) == []
        await pilot.press("1", "enter")
        await reads(pilot, lambda: app.orders(SetParams), [SetParams(patch={"mode": "plan"})])
        await pilot.press("5", "enter")
        await until(pilot, lambda: "Give full access?" in app.said())
        await pilot.press("enter")
        await reads(pilot, lambda: app.orders(SetParams)[-1], SetParams(patch={"mode": "full"}))


async def test_renaming_and_deleting_close_when_the_server_took_them() -> None:
    app = ScreenApp(Rename(state_with(title="Old")))
    async with app.run_test() as pilot:
        await pilot.press("!", "enter")
        await reads(pilot, lambda: app.orders(UpdateConversation), [UpdateConversation(title="Old!")])
        assert app.screen is app.sheet
    app = ScreenApp(ConfirmDelete(state_with(title="Old")))
    async with app.run_test() as pilot:
        await pilot.press("enter")
        assert app.orders(DeleteConversation) == []
        await pilot.press("y")
        order = await one(pilot, lambda: app.of(Order))
        assert order.refused is not None
        order.refused("Not now.")
        await until(pilot, lambda: "Not now." in app.said())


async def test_every_screen_of_the_palette_opens(client: Client) -> None:
    where = Where(client, SystemClock(), state_with())
    opening = ("list", "new", "palette", "keys", "find", "search", "waiting", "backends", "agents", "agent")
    here = ("files", "inspector", "mode", "rename", "delete")
    for action in (*opening, *here):
        assert screen_for(action, where) is not None  # type: ignore[arg-type]
    nowhere = Where(client, SystemClock(), None)
    assert all(screen_for(action, nowhere) is not None for action in opening)  # type: ignore[arg-type]
    assert all(screen_for(action, nowhere) is None for action in here)  # type: ignore[arg-type]
