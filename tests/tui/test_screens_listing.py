"""The list of conversations and the palette over a real server: found, opened, renamed, archived; deleted when asked twice."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import get_args

import pytest
from textual.binding import Binding

from palaver.backends.script.script import Say, Tool
from palaver.client import Client
from palaver.clock import SystemClock
from palaver.schema.commands import DeleteConversation, UpdateConversation
from palaver.schema.view import Listing, Message, State, TurnSummary
from palaver.tui.docks.keyline import KeyLine
from palaver.tui.docks.processes import ProcessStrip
from palaver.tui.docks.queue import QueueStrip
from palaver.tui.intents import Act, ActionName, Begin, OpenConversation
from palaver.tui.people import People
from palaver.tui.screens.actions import KEYS, WRITING, action, actions_for
from palaver.tui.screens.conversations import ConversationList
from palaver.tui.screens.keyhelp import WIDTH, KeyHelp, KeyHelpScreen, help_content
from palaver.tui.screens.listing import group_listings, row_of
from palaver.tui.screens.open import Where, screen_for
from palaver.tui.screens.palette import CommandPalette
from palaver.tui.text.screens import Actions, Keys
from tests.flows.served import Served, serving
from tests.tui.harness import NOW_MS, ScreenApp, one, queued, reads, state_with, until

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with serving(tmp_path_factory.mktemp("screens") / "data") as server:
        for title in ("Tidy the build", "Why is login slow", "Release notes"):
            await server.create(title=title)
        yield server


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    async with Client.connect(served.url, served.token) as connected:
        yield connected


def listed(client: Client) -> ScreenApp:
    return ScreenApp(ConversationList(client, SystemClock()))


async def test_the_list_shows_every_conversation_and_enter_opens_one(client: Client) -> None:
    app = listed(client)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "Release notes" in app.said())
        assert "Today" in app.said()
        assert "Tidy the build" in app.said()
        await pilot.press("down", "enter")
        ids = {row.title: row.id for row in await client.conversations()}
        assert [intent.conversation for intent in app.of(OpenConversation)] == [ids["Why is login slow"]]
        assert app.screen is not app.sheet


async def test_a_filter_keeps_what_matches_and_says_when_nothing_does(client: Client) -> None:
    app = listed(client)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "Release notes" in app.said())
        await pilot.press("slash", *"login")
        await until(pilot, lambda: "Release notes" not in app.said())
        assert "Why is login slow" in app.said()
        await pilot.press(*"zz")
        await until(pilot, lambda: "Nothing matches “loginzz”" in app.said())
        await pilot.press("escape")
        await until(pilot, lambda: "Release notes" in app.said())
        assert app.screen is app.sheet


async def test_a_title_is_changed_in_place(client: Client) -> None:
    app = listed(client)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "Release notes" in app.said())
        await pilot.press("r", "!", "enter")
        await reads(pilot, lambda: app.orders(UpdateConversation), [UpdateConversation(title="Release notes!")])


async def test_deleting_asks_first_and_escape_forgets_it(client: Client) -> None:
    app = listed(client)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "Release notes" in app.said())
        await pilot.press("y")
        await pilot.press("d", "escape")
        assert app.orders(DeleteConversation) == []
        await pilot.press("d")
        await until(pilot, lambda: "Delete “Release notes”? It disappears from every device." in app.said())
        await pilot.press("y")
        await reads(pilot, lambda: len(app.orders(DeleteConversation)), 1)


async def test_archiving_branching_and_beginning_are_one_key(client: Client) -> None:
    app = listed(client)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "Release notes" in app.said())
        await pilot.press("a", "b")
        await reads(pilot, lambda: app.orders(UpdateConversation), [UpdateConversation(archived=True)])
        branch = (await one(pilot, lambda: app.of(Begin))).body.branch
        assert branch is not None
        assert branch.message is None
    app = listed(client)
    async with app.run_test() as pilot:
        await pilot.press("n")
        await reads(pilot, lambda: [act.action for act in app.of(Act)], ["new"])


async def test_an_empty_list_says_how_to_begin(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server, Client.connect(server.url, server.token) as client:
        app = listed(client)
        async with app.run_test() as pilot:
            await until(pilot, lambda: "Press N and write a message to begin." in app.said())


async def test_a_server_that_does_not_answer_is_said_with_what_to_do() -> None:
    async with Client.connect("http://127.0.0.1:9", "none") as client:
        app = listed(client)
        async with app.run_test() as pilot:
            await until(pilot, lambda: "Start it with “palaver serve”." in app.said())


async def test_what_waits_and_what_runs_stand_first(tmp_path: Path) -> None:
    script = (Tool("shell", {"command": "ls"}, asks=True), Say("Done."))
    async with serving(tmp_path / "data", script) as server, Client.connect(server.url, server.token) as client:
        await server.create(title="Quiet")
        waiting = await server.create(title="Asking")
        await server.send(waiting, "go")
        app = listed(client)
        async with app.run_test() as pilot:
            await until(pilot, lambda: "Waiting for you" in app.said())
            rows = app.said().split("\n")
            assert rows.index("Waiting for you") < rows.index("Today")
            assert "▲ Asking" in app.said()


def row(id: str, **fields: object) -> Listing:
    given: dict[str, object] = {
        "id": id,
        "title": id,
        "agent": "demo",
        "project": None,
        "status": "idle",
        "created_at": 0,
        "updated_at": NOW_MS,
        "seq": 1,
        **fields,
    }
    return Listing(**given)  # type: ignore[arg-type]


def test_rows_are_grouped_as_on_the_page() -> None:
    rows = [
        row("old", updated_at=0),
        row("asks", open_requests=1),
        row("runs", turn="t", status="generating"),
        row("new"),
        row("newer", updated_at=NOW_MS + 1),
        row("child", parent="new", parent_kind="subagent"),
        row("gone", deleted=True),
        row("put away", archived=True),
    ]
    found = {group.name: [item.id for item in group.items] for group in group_listings(rows, "", frozenset(), NOW_MS)}
    assert found == {
        "waiting": ["asks"],
        "active": ["runs"],
        "today": ["newer", "new"],
        "older": ["old"],
        "archived": ["put away"],
    }
    assert [group.items[0].id for group in group_listings(rows, "NEWER", frozenset({"child"}), NOW_MS)] == ["newer"]


def test_a_row_shows_hostile_words_and_obeys_none() -> None:
    hostile = row("x", title="[red]a\x1b[2J\u202eb", last_line="\x1b]0;t\x07 hi", agent="d\x07")
    said = row_of(hostile, NOW_MS, 60, {}, is_current=False, is_unread=True).plain
    assert "[red]a␛[2J⟨202E⟩b" in said
    assert all(sign.isprintable() or sign == "\n" for sign in said)
    assert [len(line) for line in said.split("\n")] == [60, 60]


# -- the palette


async def test_the_palette_lists_every_action_with_its_key_and_does_it(client: Client) -> None:
    app = ScreenApp(CommandPalette(client, state_with()))
    async with app.run_test(size=(100, 40)) as pilot:
        for one in actions_for(state_with()):
            assert one.label in app.said()
            assert one.key in app.said()
        await pilot.press(*"inspector", "enter")
        await reads(pilot, lambda: [act.action for act in app.of(Act)], ["inspector"])
        assert app.screen is not app.sheet


async def test_the_palette_finds_conversations_and_says_when_nothing_matches(client: Client) -> None:
    app = ScreenApp(CommandPalette(client, None))
    async with app.run_test() as pilot:
        await pilot.press(*"release")
        await until(pilot, lambda: "Release notes" in app.said())
        await pilot.press("enter")
        await reads(pilot, lambda: len(app.of(OpenConversation)), 1)
    app = ScreenApp(CommandPalette(None, None))
    async with app.run_test() as pilot:
        await pilot.press(*"zzz")
        await until(pilot, lambda: "Nothing matches." in app.said())
        await pilot.press("enter")
        assert app.intents == []


def test_every_action_has_words_and_a_place_in_the_palette() -> None:
    names = set(get_args(ActionName))
    assert set(Actions.LABELS) == names
    offered = {one.name for one in actions_for(None)} | {one.name for one in actions_for(state_with())}
    resting = state_with(turn=None, archived=True)
    offered |= {one.name for one in actions_for(resting)}
    # Those that depend on what is there: said by the next test.
    assert names - offered <= {
        "palette",
        "continue",
        "regenerate",
        "edit",
        "plan",
        "processes",
        "trust",
        "queue",
        "hold",
        "release",
    }


def test_actions_fit_the_conversation() -> None:
    assert "stop" in {one.name for one in actions_for(state_with())}
    assert "stop" not in {one.name for one in actions_for(state_with(turn=None))}
    held = (queued("i-1", "waits"), queued("i-2", "held", held=True))
    assert {"queue", "hold", "release"} <= {one.name for one in actions_for(state_with(queue=held))}
    assert {one.name for one in actions_for(state_with(queue=held[:1]))}.isdisjoint({"release"})
    assert {one.name for one in actions_for(state_with(queue=held[1:]))}.isdisjoint({"hold"})
    assert {one.name for one in actions_for(state_with(queue=held, turn=None))}.isdisjoint({"hold"})
    assert {one.name for one in actions_for(State())}.isdisjoint({"rename", "files", "delete"})


def test_whoever_may_only_read_is_offered_only_what_reads() -> None:
    waits = (queued("i-1", "waits"), queued("i-2", "held", held=True))
    ended = TurnSummary(id="t-1", outcome="interrupted", ended_at=NOW_MS, stopped="user")
    said = Message(id="m", role="user", seq=1, updated_seq=1, ts=NOW_MS, blocks=())
    resting = state_with(turn=None, last_turn=ended, messages=(said,))
    for state in (state_with(queue=waits), resting, State()):
        offered = {one.name for one in actions_for(state)}
        assert {one.name for one in actions_for(state, may_write=False)} == offered - WRITING
    assert {one.name for one in actions_for(state_with(), may_write=False)} >= {"find", "files", "export", "list"}


async def test_whoever_may_only_read_has_no_key_in_the_list_that_would_change_one(client: Client) -> None:
    sheet = screen_for("list", Where(client, SystemClock(), people=People(may_write=False)))
    assert sheet is not None
    app = ScreenApp(sheet)
    async with app.run_test() as pilot:
        offered = ["open", "filter", "archived too", "close"]
        await reads(pilot, lambda: [key.label for key in sheet.query_one(".keys", KeyLine).keys], offered)
        await pilot.press("a", "d", "b", "n", "r")
        assert app.intents == []
        assert not sheet.query_one("#title").display


def test_the_key_help_names_every_key_of_an_action() -> None:
    said = help_content().plain
    for name, key in KEYS.items():
        if name != "stop":
            assert key in said, action(name).label


def test_the_key_help_names_every_key_of_the_strips() -> None:
    lines = help_content().plain.split("\n")
    named = {key for line in lines[lines.index(Keys.WAITING) + 1 :] for key in line[:WIDTH].split()}
    letters = {key.upper() for strip in (QueueStrip, ProcessStrip) for key in _letters(strip)}
    assert letters <= named


def _letters(strip: type[QueueStrip | ProcessStrip]) -> list[str]:
    bound = [binding.key.split(",")[0] for binding in strip.BINDINGS if isinstance(binding, Binding)]
    return [key for key in bound if len(key) == 1]


async def test_the_key_help_has_a_line_for_each_key_in_eighty_columns() -> None:
    app = ScreenApp(KeyHelpScreen())
    async with app.run_test(size=(80, 24)) as pilot:
        helped = app.sheet.query_one(KeyHelp)
        await until(pilot, lambda: helped.size.width > 0)
        assert helped.size.height == len(help_content().plain.split("\n"))
