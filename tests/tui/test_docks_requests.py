"""Requests above the composer: answered by keys alone, deaf at first, never in the way of somebody who writes."""

from functools import partial

import pytest
from msgspec.structs import replace
from textual import events
from textual._xterm_parser import XTermParser
from textual.pilot import Pilot
from textual.widgets import Input, Static, TextArea

from palaver.client.client import WaitingRequest
from palaver.schema.base import Origin
from palaver.schema.commands import DecideTools, ResolveRequest
from palaver.schema.view import Offer, Plan, PlanItem, Question, QuestionOption, Request, Resolution, Turn
from palaver.tui.docks.card import RequestCard
from palaver.tui.docks.keyline import KeyLine
from palaver.tui.docks.requests import RequestDock
from palaver.tui.intents import Order
from palaver.tui.people import People
from tests.tui.harness import NOW_MS, TURN, DockApp, approval, one, question, reads, state_with, until

pytestmark = pytest.mark.anyio


def said(app: DockApp) -> str:
    """All that the shown card says."""
    card = app.docks.query_one(RequestDock).card
    assert card is not None
    texts = [str(widget.render()) for widget in card.query(Static) if widget.display]
    return "\n".join(texts)


def keys(app: DockApp) -> list[str]:
    card = app.docks.query_one(RequestDock).card
    assert card is not None
    return [key.label for key in card.query_one(".bar", KeyLine).keys]


async def shown(app: DockApp, pilot: Pilot[None], *requests: Request, turn: Turn | None = TURN) -> None:
    app.show(state_with(*requests, turn=turn))
    await until(pilot, lambda: app.docks.query_one(RequestDock).card is not None)
    await pilot.pause()
    await app.hear()


async def typed(app: DockApp, pilot: Pilot[None], sent: str) -> None:
    """Characters as a terminal sends them."""
    for event in XTermParser().feed(sent):
        if isinstance(event, events.Key):
            event.set_sender(app)
            app.post_message(event)
    await pilot.pause()


async def test_alt_with_a_digit_answers_as_every_terminal_sends_it() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval())
        await typed(app, pilot, "\x1b3")
        await reads(pilot, lambda: [order.verdict for order in app.orders(ResolveRequest)], ["deny"])


async def test_approval_keys_are_deaf_at_first_and_then_allow_once() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(approval()))
        await pilot.pause()
        await pilot.press("alt+1", "f7")
        assert app.orders(ResolveRequest) == []
        await app.hear()
        await pilot.press("alt+1")
        await reads(pilot, lambda: app.orders(ResolveRequest), [ResolveRequest(request="r-1", verdict="allow")])


async def test_typing_while_an_approval_arrives_never_answers_it() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await pilot.press("h", "i")
        await shown(app, pilot, approval())
        await pilot.press("1", "2", "3", "n", "s", "e", "a", "space", "y")
        # What a Spanish and a British keyboard type is no answer, though Alt+1 and Alt+3 were once taken for it.
        await typed(app, pilot, "¡£")
        await reads(pilot, lambda: app.docks.composer.prompt.text, "hi123nsea y¡£")
        assert app.orders(ResolveRequest) == []


async def test_function_keys_answer_where_alt_is_eaten() -> None:
    for key, verdict in (("f7", "allow"), ("f9", "deny")):
        app = DockApp()
        async with app.run_test() as pilot:
            await shown(app, pilot, approval())
            await pilot.press(key)
            await until(pilot, partial(app.orders, ResolveRequest))
            assert [order.verdict for order in app.orders(ResolveRequest)] == [verdict]


async def test_an_answer_is_sent_once() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval())
        await pilot.press("alt+1", "alt+1", "alt+3")
        await reads(pilot, lambda: len(app.orders(ResolveRequest)), 1)


async def test_whoever_may_only_read_sees_what_is_asked_and_no_key_that_answers() -> None:
    reader = People(may_write=False, may_decide=False)
    asks = question("q-1", Question(question="Which?", options=(QuestionOption(label="One"),)))
    plan = Request(id="p-1", kind="plan", ts=NOW_MS, plan=Plan(summary="All", items=(PlanItem(title="Write"),)))
    for request, shown_words in ((approval(), "rm -rf build"), (asks, "Which?"), (plan, "Write")):
        app = DockApp()
        async with app.run_test() as pilot:
            app.docks.introduce(reader)
            await shown(app, pilot, request)
            await until(pilot, lambda: shown_words in said(app))  # noqa: B023
            await reads(pilot, partial(keys, app), [])
            await pilot.press("alt+1", "f8", "f9", "f6", "1", "n", "s", "e", "m", "enter")
            await pilot.pause()
            assert app.of(Order) == []
            assert keys(app) == []
            assert "Somebody who may decide must answer this" in said(app)


async def test_whoever_may_only_read_goes_from_one_request_to_the_next() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.docks.introduce(People(may_decide=False))
        await shown(app, pilot, approval(), approval("r-2", "make"))
        await pilot.press("f6")
        await reads(pilot, partial(keys, app), ["next request"])
        await pilot.press("right")
        await until(pilot, lambda: "make" in said(app))


async def test_a_refused_answer_is_said_and_can_be_given_again() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval())
        await pilot.press("alt+1")
        order = await one(pilot, lambda: app.of(Order))
        assert order.refused is not None
        order.refused("The role `decide` is missing.")
        await until(pilot, lambda: "The role “decide” is missing." in said(app))
        await pilot.press("alt+3")
        await reads(pilot, lambda: [order.verdict for order in app.orders(ResolveRequest)], ["allow", "deny"])


async def test_a_card_shows_the_exact_command_its_risk_and_its_place() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        tricky = "curl x\u202e | sh\x1b[2K [red]"
        first = approval(command=tricky, risk="Runs a script", sandbox="bwrap: no network", expires_at=NOW_MS + 61_000)
        await shown(app, pilot, first, approval("r-2"))
        text = said(app)
        assert "curl x⟨202E⟩ | sh␛[2K [red]" in text
        assert "demo wants to run a command" in text
        assert "Runs a script · Sandbox: bwrap, no network · expires in 1 min" in text
        assert "1 of 2" in text


async def test_a_new_request_does_not_replace_the_one_that_is_read() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval("r-2", "second", ts=NOW_MS + 5))
        app.show(state_with(approval("r-1", "first"), approval("r-2", "second", ts=NOW_MS + 5)))
        await until(pilot, lambda: "second" in said(app))
        assert "2 of 2" in said(app)
        await pilot.press("alt+1")
        await reads(pilot, lambda: [order.request for order in app.orders(ResolveRequest)], ["r-2"])


async def test_the_next_request_is_deaf_anew() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval("r-1"), approval("r-2", ts=NOW_MS + 5))
        await pilot.press("alt+1")
        app.show(state_with(approval("r-2", ts=NOW_MS + 5)))
        await pilot.pause()
        await pilot.press("alt+1")
        await reads(pilot, lambda: [order.request for order in app.orders(ResolveRequest)], ["r-1"])
        await app.hear()
        await pilot.press("alt+1")
        await reads(pilot, lambda: [order.request for order in app.orders(ResolveRequest)], ["r-1", "r-2"])


async def test_a_lasting_yes_asks_what_and_where() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        offers = (Offer(label="exactly this", match="rm -rf build"), Offer(label="rm with any arguments"))
        await shown(app, pilot, approval(offers=offers))
        await pilot.press("alt+2")
        await pilot.pause()
        await pilot.press("2", "tab", "2", "enter")
        await reads(
            pilot,
            lambda: app.orders(ResolveRequest),
            [ResolveRequest(request="r-1", verdict="allow", scope="project", offer=1)],
        )


async def test_one_scope_and_one_offer_need_no_further_question() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval(scopes=("once", "agent")))
        assert "Always allow for this agent" in keys(app)
        await pilot.press("f8")
        await reads(pilot, lambda: [order.scope for order in app.orders(ResolveRequest)], ["agent"])


async def test_a_no_may_carry_a_note_or_stop_the_turn() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval())
        await pilot.press("f6", "n")
        await pilot.pause()
        await pilot.press(*"use make", "enter")
        await reads(
            pilot, lambda: app.orders(ResolveRequest), [ResolveRequest(request="r-1", verdict="deny", text="use make")]
        )
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval())
        await pilot.press("f6", "s")
        await reads(
            pilot, lambda: app.orders(ResolveRequest), [ResolveRequest(request="r-1", verdict="deny", then="stop")]
        )


async def test_a_command_can_be_changed_before_it_is_allowed() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval(input={"command": "rm -rf build", "timeout_s": 5}))
        await pilot.press("f6", "e")
        await until(pilot, lambda: bool(app.docks.query("#edited")))
        area = app.docks.query_one("#edited", TextArea)
        area.load_text("rm -r build/tmp")
        await pilot.press("ctrl+s")
        changed = {"command": "rm -r build/tmp", "timeout_s": 5}
        assert app.orders(ResolveRequest) == [ResolveRequest(request="r-1", verdict="allow", input=changed)]


async def test_other_arguments_are_edited_as_json_and_broken_json_is_said() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval(tool="fetch", input={"url": "http://x"}))
        await pilot.press("f6", "e")
        await until(pilot, lambda: bool(app.docks.query("#edited")))
        area = app.docks.query_one("#edited", TextArea)
        area.load_text('{"url": ')
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "not valid JSON" in said(app))
        area.load_text('{"url": "http://y"}')
        await pilot.press("ctrl+s")
        await reads(pilot, lambda: [order.input for order in app.orders(ResolveRequest)], [{"url": "http://y"}])


async def test_a_program_that_takes_no_other_arguments_is_not_offered_them() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval(), turn=replace(TURN, backend="acp:gemini"))
        await pilot.press("f6", "e")
        await pilot.pause()
        assert not app.docks.query("#edited")
        assert "Edit what runs …" not in keys(app)


async def test_several_calls_are_decided_together_by_name() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval("r-1", "one"), approval("r-2", "two"))
        await pilot.press("f6", "a")
        await until(
            pilot, lambda: "1  demo wants to run a command\none\n2  demo wants to run a command\ntwo" in said(app)
        )
        await pilot.pause()
        await pilot.press("alt+1")
        order = await one(pilot, lambda: app.orders(DecideTools))
        assert [(one.call, one.accepted) for one in order.decisions] == [("call-r-1", True), ("call-r-2", True)]
        assert order.then == "continue"


async def test_nothing_takes_the_focus_and_an_answer_from_inside_gives_it_back() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval())
        assert app.docks.composer.prompt.has_focus
        await pilot.press("f6")
        await until(pilot, lambda: isinstance(app.focused, RequestCard))
        await pilot.press("1")
        await until(pilot, lambda: app.docks.composer.prompt.has_focus)


async def test_answered_elsewhere_and_expired_are_said_for_a_moment() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval("r-1"))
        by = Origin(face="cli")
        ended = Resolution(status="answered", ts=NOW_MS, verdict="deny", by=by)
        app.show(state_with(replace(approval("r-1"), status="answered", resolution=ended)))
        over = app.docks.query_one(RequestDock).query_one(".over", Static)
        await reads(pilot, lambda: str(over.render()), "Denied · answered elsewhere · via the command line")
        await shown(app, pilot, approval("r-2"))
        gone = Resolution(status="expired", ts=NOW_MS)
        app.show(state_with(replace(approval("r-2"), status="expired", resolution=gone)))
        await reads(pilot, lambda: str(over.render()), "Expired without an answer")
        await app.clock.advance(10)
        app.docks.query_one(RequestDock)._say_farewell()
        assert not app.docks.query_one(RequestDock).display


async def test_what_a_subagent_asks_is_answered_in_its_own_conversation() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        below = WaitingRequest(conversation="c-2", request=approval("r-9"), agent="scout")
        app.show(state_with(), [below])
        await until(pilot, lambda: app.docks.query_one(RequestDock).card is not None)
        await app.hear()
        assert "scout, working for this conversation, wants to run a command" in said(app)
        await pilot.press("alt+1")
        await reads(pilot, lambda: [order.conversation for order in app.of(Order)], ["c-2"])


async def test_a_spending_limit_goes_on_or_stops() -> None:
    money = Request(
        id="r-1", kind="approval", ts=NOW_MS, turn="turn-1", title="$5.00 are spent", preview="Another $5.00?"
    )
    for key, verdict in (("alt+1", "allow"), ("alt+3", "deny")):
        app = DockApp()
        async with app.run_test() as pilot:
            await shown(app, pilot, money)
            assert keys(app) == ["Go on", "Stop here"]
            await pilot.press("alt+2", key)
            await until(pilot, partial(app.orders, ResolveRequest))
            assert [order.verdict for order in app.orders(ResolveRequest)] == [verdict]


CHOICE = Question(
    question="Which store?",
    options=(QuestionOption(label="SQLite", description="one file"), QuestionOption(label="PostgreSQL")),
)
CHECKS = Question(
    question="Which checks?", multi_select=True, options=(QuestionOption(label="lint"), QuestionOption(label="types"))
)


async def test_a_question_is_answered_by_choosing_one() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, question("q-1", CHOICE))
        await pilot.press("f6", "down", "enter")
        order = await one(pilot, lambda: app.orders(ResolveRequest))
        assert [(one.question_index, one.selected) for one in order.answers] == [(0, ("PostgreSQL",))]


async def test_several_questions_are_all_answered_before_anything_is_sent() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, question("q-1", CHOICE, CHECKS))
        await pilot.press("f6", "1", "enter")
        assert app.orders(ResolveRequest) == []
        await pilot.press("1", "2", "enter")
        order = await one(pilot, lambda: app.orders(ResolveRequest))
        assert [one.selected for one in order.answers] == [("SQLite",), ("lint", "types")]


async def test_a_question_takes_own_words() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, question("q-1", CHOICE))
        await pilot.press("f6", "3")
        await until(pilot, lambda: isinstance(app.focused, Input))
        await pilot.press(*"files", "enter")
        order = await one(pilot, lambda: app.orders(ResolveRequest))
        assert [(one.selected, one.custom_text) for one in order.answers] == [((), "files")]


async def test_a_question_can_be_skipped_and_is_never_answered_in_passing() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, question("q-1", CHOICE))
        await pilot.press("alt+1")
        assert app.orders(ResolveRequest) == []
        await pilot.press("escape")
        await until(pilot, lambda: app.docks.composer.prompt.has_focus)
        await pilot.press("alt+3")
        await reads(pilot, lambda: app.orders(ResolveRequest), [ResolveRequest(request="q-1", verdict="deny")])


def plan_request() -> Request:
    plan = Plan(summary="Move the parser", items=(PlanItem(title="Cut it out"), PlanItem(title="Test it")))
    return Request(id="p-1", kind="plan", ts=NOW_MS, plan=plan)


async def test_a_plan_is_approved_in_the_mode_that_is_chosen() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, plan_request(), turn=None)
        await until(pilot, lambda: "1. Cut it out" in said(app))
        await pilot.press("f6", "m", "alt+1")
        approved = ResolveRequest(request="p-1", verdict="allow", input={"mode": "accept_edits"})
        await reads(pilot, lambda: app.orders(ResolveRequest), [approved])


async def test_a_plan_is_revised_with_words_or_rejected() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, plan_request(), turn=None)
        await pilot.press("alt+2")
        await until(pilot, lambda: isinstance(app.focused, Input))
        await pilot.press(*"smaller", "enter")
        await reads(
            pilot, lambda: app.orders(ResolveRequest), [ResolveRequest(request="p-1", verdict="deny", text="smaller")]
        )
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, plan_request(), turn=None)
        await pilot.press("f9")
        await reads(
            pilot, lambda: app.orders(ResolveRequest), [ResolveRequest(request="p-1", verdict="deny", then="stop")]
        )


async def test_an_earlier_moment_can_neither_be_answered_nor_written_to() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        await shown(app, pilot, approval())
        app.docks.is_past = True
        app.docks.composer.read_only("You look at an earlier moment.")
        app.show(state_with(approval("r-0")))
        await until(pilot, lambda: app.docks.query_one(RequestDock).card is None)
        await app.hear()
        await pilot.press("alt+1", "x", "enter")
        assert app.intents == []
        assert app.docks.query_one(RequestDock).card is None
        app.docks.is_past = False
        app.docks.composer.read_only("")
        await shown(app, pilot, approval())
        await pilot.press("alt+1")
        await reads(pilot, lambda: [order.request for order in app.orders(ResolveRequest)], ["r-1"])
