"""Keys that come all at once do what they do one by one."""

from collections.abc import Sequence

import pytest
from textual import events

from palaver.schema.commands import ResolveRequest
from palaver.schema.view import Question, QuestionOption, Request
from palaver.tui.docks.completion import SlashCommand
from palaver.tui.docks.requests import RequestDock
from palaver.tui.intents import Act, Send
from tests.flows.served import Served, serving
from tests.tui.harness import DockApp, approval, press_together, question, state_with, until
from tests.tui.opened import opened

STORE = Question(question="Which?", options=(QuestionOption(label="SQLite"), QuestionOption(label="PostgreSQL")))
CHECKS = Question(
    question="Which checks?", multi_select=True, options=(QuestionOption(label="lint"), QuestionOption(label="types"))
)
PLAN = Request(id="p-1", kind="plan", ts=1, preview="Move it.")


@pytest.mark.parametrize(
    ("request_", "keys", "given"),
    [
        (question("q", STORE), ("f6", "2", "enter"), [((0, ("PostgreSQL",), None),)]),
        (question("q", STORE), ("alt+1", "2", "enter"), [((0, ("PostgreSQL",), None),)]),
        (question("q", STORE), ("alt+1", "down", "space", "alt+1"), [((0, ("PostgreSQL",), None),)]),
        (question("q", STORE), ("f6", "3", *"files", "enter"), [((0, (), "files"),)]),
        (
            question("q", STORE, CHECKS),
            ("f6", "1", "enter", "1", "2", "enter"),
            [((0, ("SQLite",), None), (1, ("lint", "types"), None))],
        ),
    ],
)
async def test_question_is_answered_by_keys_that_come_at_once(
    request_: Request, keys: Sequence[str], given: object
) -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(request_))
        await until(pilot, lambda: app.docks.query_one(RequestDock).card is not None)
        await pilot.pause()
        await app.hear()
        press_together(app, *keys)
        await until(pilot, lambda: bool(app.orders(ResolveRequest)))
        answers = [order.answers for order in app.orders(ResolveRequest)]
        assert [tuple((a.question_index, a.selected, a.custom_text) for a in one) for one in answers] == given
        assert app.docks.composer.prompt.text == ""


@pytest.mark.parametrize(
    ("request_", "keys", "answer"),
    [
        (approval(), ("f6", "n", *"no", "enter"), ResolveRequest(request="r-1", verdict="deny", text="no")),
        (
            approval(),
            ("alt+2", "down", "space", "enter"),
            ResolveRequest(request="r-1", verdict="allow", scope="project"),
        ),
        (PLAN, ("alt+2", *"less", "enter"), ResolveRequest(request="p-1", verdict="deny", text="less")),
    ],
)
async def test_form_that_a_key_opens_gets_the_keys_behind_it(
    request_: Request, keys: Sequence[str], answer: ResolveRequest
) -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(request_))
        await until(pilot, lambda: app.docks.query_one(RequestDock).card is not None)
        await pilot.pause()
        await app.hear()
        press_together(app, *keys)
        await until(pilot, lambda: bool(app.orders(ResolveRequest)))
        assert app.orders(ResolveRequest) == [answer]


async def test_command_is_taken_and_not_sent_when_enter_comes_with_its_letters() -> None:
    app = DockApp(commands=lambda: [SlashCommand("mode", "Choose how much is asked", "mode")])
    async with app.run_test() as pilot:
        app.show(state_with())
        await pilot.pause()
        press_together(app, *"/mod", "enter")
        await until(pilot, lambda: bool(app.of(Act)))
        assert [act.action for act in app.of(Act)] == ["mode"]
        assert app.of(Send) == []


async def test_lines_that_come_at_once_stay_apart() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with())
        await pilot.pause()
        press_together(app, *"one", "enter", *"two", "ctrl+j", *"three", "enter")
        await until(pilot, lambda: len(app.of(Send)) == 2)
        assert [send.text for send in app.of(Send)] == ["one", "two\nthree"]


async def test_words_behind_the_key_of_a_screen_are_written_there(tmp_path_factory: pytest.TempPathFactory) -> None:
    async with serving(tmp_path_factory.mktemp("typing") / "data") as served:
        await _look_for_the_sea(served)


async def _look_for_the_sea(served: Served) -> None:
    conversation = await served.create(message="of the sea")
    async with opened(served, conversation) as terminal:
        await terminal.until_shown("Hello there, how are you?")
        press_together(terminal.app, "ctrl+f", *"sea")
        await terminal.until_shown("1 match")
        assert terminal.app.main.docks.composer.prompt.text == ""


async def test_key_that_comes_while_the_app_is_left_raises_nothing() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with())
        await pilot.pause()
    assert not app.screen_stack
    for key in (events.Key("left", None), events.Key("a", "a")):
        await app.on_event(key)
