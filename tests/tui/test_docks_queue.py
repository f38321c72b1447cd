"""The queue, the plan under way, what the turn does and how the connection stands: said in words, changed by keys."""

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from textual.widgets import Static

from palaver.schema.base import Origin, Usage
from palaver.schema.commands import Accepted, EditQueued, RemoveQueued
from palaver.schema.content import plain_text
from palaver.schema.view import Message, Plan, PlanItem, Retry, State, TextBlock, ToolBlock, ToolStatus, TurnSummary
from palaver.tui.connection import Connection
from palaver.tui.docks.activity import ActivityLine
from palaver.tui.docks.keyline import KeyLine
from palaver.tui.docks.plan import PlanLine
from palaver.tui.docks.queue import QueueStrip
from palaver.tui.intents import Order, Send
from palaver.tui.people import People
from tests.tui.harness import NOW_MS, TURN, DockApp, approval, one, queued, reads, state_with, until

pytestmark = pytest.mark.anyio

QUEUE = (queued("i-1", "first"), queued("i-2", "second"), queued("i-3", "third"))


def strip(app: DockApp) -> QueueStrip:
    return app.docks.query_one(QueueStrip)


def lines(app: DockApp) -> list[str]:
    return str(strip(app).query_one(".items", Static).render()).split("\n")


def paused(app: DockApp) -> str:
    line = strip(app).query_one(".lead", Static)
    return str(line.render()) if line.display else ""


def keys(app: DockApp) -> list[str]:
    return [key.label for key in strip(app).query_one(KeyLine).keys]


def _keys_pressed(app: DockApp) -> list[str]:
    return [key.key for key in strip(app).query_one(KeyLine).keys]


def _has_edits(app: DockApp, count: int) -> bool:
    return len(app.orders(EditQueued)) == count


def activity(app: DockApp) -> str:
    return str(app.docks.query_one(ActivityLine).render())


async def test_the_strip_is_hidden_when_empty_and_says_how_each_message_stands() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with())
        await pilot.pause()
        assert not strip(app).display
        steers = queued("i-2", "now\nplease", delivery="boundary", origin=Origin(face="cli"))
        idle = queued("i-4", "go on", trigger="idle")
        app.show(state_with(queue=(QUEUE[0], steers, queued("i-3", "wait", held=True), idle)))
        said = [
            "  1 first  next",
            "  2 now  steers the running turn · via the command line",
            "  3 wait  held back",
            "  4 Idle prompt: go on",
        ]
        await reads(pilot, lambda: lines(app), said)


async def test_a_paused_queue_says_why_and_lets_one_or_all_go() -> None:
    held = tuple(replace(item, held=True) for item in QUEUE)
    ended = TurnSummary(id="t-1", outcome="interrupted", ended_at=NOW_MS, stopped="user")
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=held, turn=None, last_turn=ended))
        await reads(pilot, lambda: paused(app), "Paused: you stopped the agent.")
        await reads(pilot, lambda: keys(app), ["let all go"])
        await pilot.press("f6", "down")
        await reads(pilot, lambda: keys(app), ["let it go", "let all go", "edit", "remove", "move"])
        await pilot.press("l", "a")
        await reads(pilot, lambda: app.orders(EditQueued), [EditQueued(item="i-2", held=False), EditQueued(held=False)])
        app.show(state_with(queue=(QUEUE[1],), last_turn=ended))
        await reads(pilot, lambda: paused(app), "")


async def test_whoever_may_only_read_is_offered_no_key_of_the_queue() -> None:
    held = tuple(replace(item, held=True) for item in QUEUE)
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=held))
        await reads(pilot, lambda: keys(app), ["let all go"])
        app.docks.introduce(People(may_write=False))
        await reads(pilot, lambda: keys(app), [])
        await pilot.press("f6", "down", "e", "d", "s", "l", "a", "shift+up", "enter")
        await reads(pilot, lambda: lines(app)[1], "▸ 2 second  held back")
        assert app.of(Order) == []
        assert keys(app) == []


async def test_a_queue_in_which_one_is_held_is_let_go_from_anywhere_in_it() -> None:
    held = (replace(QUEUE[0], held=True), QUEUE[1])
    ended = TurnSummary(id="t-1", outcome="interrupted", ended_at=NOW_MS, stopped="user")
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=held, turn=None, last_turn=ended))
        await reads(pilot, lambda: keys(app), ["let it go"])
        await pilot.press("f6")
        await reads(pilot, lambda: keys(app), ["let it go", "edit", "remove", "move"])
        await pilot.press("down")
        await reads(pilot, lambda: keys(app), ["let all go", "edit", "remove", "move"])


async def test_the_way_to_a_paused_queue_is_said_with_every_key_it_takes() -> None:
    held = tuple(replace(item, held=True) for item in QUEUE)
    plan = Plan(summary="All", items=(PlanItem(title="Write", status="in_progress"),), status="executing")
    for shown, way in (
        (state_with(queue=held), "F6 A"),
        (state_with(queue=held, plan=plan), "F6 F6 A"),
        (state_with(approval(), queue=held, plan=plan), "F6 F6 F6 A"),
    ):
        app = DockApp()
        async with app.run_test() as pilot:
            app.show(shown)
            await reads(pilot, partial(_keys_pressed, app), [way])
            for key in way.lower().split():
                await pilot.press(key)
            await until(pilot, partial(_has_edits, app, 1))


async def test_the_way_to_a_paused_queue_is_counted_from_where_the_focus_is() -> None:
    held = tuple(replace(item, held=True) for item in QUEUE)
    plan = Plan(summary="All", items=(PlanItem(title="Write", status="in_progress"),), status="executing")
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(approval(), queue=held, plan=plan))
        for way in ("F6 F6 F6 A", "F6 F6 A", "F6 A"):
            await reads(pilot, lambda: _keys_pressed(app), [way])
            await pilot.press("f6")
            app.docks.focus_went(app.focused)
        await until(pilot, lambda: strip(app).has_focus)
        app.docks.focus_composer()
        await reads(pilot, lambda: _keys_pressed(app), ["F6 F6 F6 A"])
        app.show(state_with(queue=held, plan=plan))
        await reads(pilot, lambda: _keys_pressed(app), ["F6 F6 A"])


async def test_a_paused_queue_waits_with_the_message_that_is_edited_and_says_so_again_after() -> None:
    held = tuple(replace(item, held=True) for item in QUEUE[:2])
    ended = TurnSummary(id="t-1", outcome="interrupted", ended_at=NOW_MS, stopped="user")
    for queue in (held, held[:1]):
        app = DockApp()
        async with app.run_test() as pilot:
            app.show(state_with(queue=queue, turn=None, last_turn=ended))
            app.docks.composer.begin_edit(queue[0])
            await reads(pilot, partial(keys, app), [])
            assert bool(paused(app)) is (len(queue) > 1)
            strip(app).focus()
            await pilot.press("a", "l")
            await until(pilot, lambda: "let it go" not in keys(app))  # noqa: B023
            assert app.orders(EditQueued) == [EditQueued(item="i-1", held=True)]
            app.docks.focus_composer()
            await pilot.press("escape")
            await reads(pilot, partial(paused, app), "Paused: you stopped the agent.")
            await reads(pilot, partial(keys, app), ["let all go" if len(queue) > 1 else "let it go"])


async def test_what_was_held_is_put_back_held() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=(replace(QUEUE[0], held=True),), turn=None))
        strip(app).focus()
        await pilot.press("d")
        order = await one(pilot, lambda: app.of(Order))
        assert order.accepted is not None
        order.accepted(Accepted(conversation="c-1", seq=9))
        app.show(state_with(turn=None))
        await reads(pilot, lambda: keys(app), ["put back what was removed"])
        await pilot.press("u")
        back = await one(pilot, lambda: app.of(Send))
        assert (back.text, back.held) == ("first", True)


async def test_what_was_removed_is_put_back_with_its_own_agent_mode_and_turn() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=(replace(QUEUE[0], agent="scout", mode="plan", merge=True),)))
        strip(app).focus()
        await pilot.press("d")
        order = await one(pilot, lambda: app.of(Order))
        assert order.accepted is not None
        order.accepted(Accepted(conversation="c-1", seq=9))
        app.show(state_with())
        await pilot.press("u")
        back = await one(pilot, lambda: app.of(Send))
        assert (back.agent, back.mode, back.merge) == ("scout", "plan", True)


async def test_an_answer_that_comes_late_is_not_for_the_conversation_opened_meanwhile() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=QUEUE))
        strip(app).focus()
        await pilot.press("d", "down", "s")
        await until(pilot, lambda: len(app.orders(RemoveQueued)) == 2)
        other = replace(state_with(queue=QUEUE), conversation="c-2")
        app.show(other)
        for order in app.of(Order):
            assert order.accepted is not None
            order.accepted(Accepted(conversation="c-1", seq=9))
        assert (await one(pilot, lambda: app.of(Send))).conversation == "c-1"
        assert "put back what was removed" not in keys(app)


async def test_a_held_message_that_is_edited_stays_held_only_in_a_paused_queue() -> None:
    held = tuple(replace(item, held=True) for item in QUEUE[:2])
    for queue, stays in ((held, True), ((held[0], QUEUE[1]), False)):
        app = DockApp()
        async with app.run_test() as pilot:
            app.show(state_with(queue=queue))
            strip(app).focus()
            await pilot.press("e", "!", "enter")
            await until(pilot, partial(_has_edits, app, 2))
            begun, saved = app.orders(EditQueued)
            assert begun == EditQueued(item="i-1", held=True)
            assert saved == EditQueued(item="i-1", held=stays, content="first!")


async def test_a_command_that_waits_says_what_it_will_do_and_can_only_be_removed() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        cut = replace(queued("i-1", ""), content=(), command={"type": "truncate_messages", "from_index": 2})
        app.show(state_with(queue=(cut,)))
        await reads(pilot, lambda: lines(app), ["  1 Then: Truncate from message 3  next"])
        strip(app).focus()
        await pilot.press("e", "s", "d")
        await reads(pilot, lambda: app.orders(RemoveQueued), [RemoveQueued(item="i-1")])
        assert app.orders(EditQueued) == []


async def test_the_strip_shows_its_cursor_and_its_keys_as_soon_as_one_is_there() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=QUEUE))
        await reads(pilot, lambda: lines(app)[0], "  1 first  next")
        await pilot.press("f6")
        await reads(pilot, lambda: lines(app)[0], "▸ 1 first  next")
        await reads(pilot, lambda: keys(app), ["edit", "remove", "steer now", "move"])
        await pilot.press("escape")
        await reads(pilot, lambda: lines(app)[0], "  1 first  next")
        await reads(pilot, lambda: keys(app), [])


async def test_a_long_queue_shows_some_and_counts_the_rest() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=tuple(queued(f"i-{at}", f"message {at}") for at in range(9))))
        await reads(pilot, lambda: lines(app)[-1], "  and 4 more")
        strip(app).focus()
        await pilot.press(*["down"] * 8)
        await reads(pilot, lambda: lines(app)[-1], "▸ 9 message 8")


async def test_a_message_moves_before_its_neighbour_or_to_the_end() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=QUEUE))
        strip(app).focus()
        await pilot.press("down", "shift+up", "shift+down")
        await reads(
            pilot,
            lambda: app.orders(EditQueued),
            [EditQueued(item="i-2", before="i-1"), EditQueued(item="i-2", before="")],
        )
        app.show(state_with(queue=(QUEUE[1], QUEUE[0], QUEUE[2])))
        await reads(pilot, lambda: getattr(strip(app).item, "id", None), "i-2")


async def test_a_removed_message_can_be_put_back_for_a_while() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=QUEUE[:1]))
        strip(app).focus()
        await pilot.press("d")
        order = await one(pilot, lambda: app.of(Order))
        assert order.command == RemoveQueued(item="i-1")
        assert order.accepted is not None
        order.accepted(Accepted(conversation="c-1", seq=9))
        app.show(state_with())
        await until(pilot, lambda: strip(app).display)
        await pilot.press("u")
        await reads(
            pilot,
            lambda: [plain_text(send.content) for send in app.of(Send) if not isinstance(send.content, str)],
            ["first"],
        )


async def test_the_time_to_put_back_passes() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=QUEUE[:1]))
        strip(app).focus()
        await pilot.press("d")
        order = await one(pilot, lambda: app.of(Order))
        assert order.accepted is not None
        order.accepted(Accepted(conversation="c-1", seq=9))
        app.show(state_with())
        await app.clock.advance(6)
        strip(app).tick()
        await until(pilot, lambda: not strip(app).display)
        await until(pilot, lambda: app.docks.composer.prompt.has_focus)


async def test_what_had_left_before_is_not_offered_to_be_sent_again() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=QUEUE[:1]))
        strip(app).focus()
        await pilot.press("d", "s")
        for order in app.of(Order):
            assert order.accepted is not None
            order.accepted(Accepted(conversation="c-1", seq=9, applied=False))
        app.show(state_with())
        await until(pilot, lambda: not strip(app).display)
        assert app.of(Send) == []


async def test_steering_takes_a_message_out_before_it_is_sent() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(queue=QUEUE))
        strip(app).focus()
        await pilot.press("s")
        assert app.of(Send) == []
        order = await one(pilot, lambda: app.of(Order))
        assert order.command == RemoveQueued(item="i-1")
        assert order.accepted is not None
        order.accepted(Accepted(conversation="c-1", seq=9))
        await reads(pilot, lambda: [(send.text, send.delivery) for send in app.of(Send)], [("first", "boundary")])


async def test_the_plan_under_way_is_one_line_that_opens() -> None:
    items = (
        PlanItem(title="Read", status="done"),
        PlanItem(title="Write", status="in_progress"),
        PlanItem(title="Test"),
    )
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(plan=Plan(summary="All", items=items, status="executing")))
        line = app.docks.query_one(PlanLine)
        await reads(pilot, lambda: str(line.render()), "▸ Plan  Write  1 of 3 done")
        await pilot.press("f6", "o")
        await reads(pilot, lambda: str(line.render()).split("\n")[1:], ["● Read", "◐ Write", "○ Test"])
        app.show(state_with(plan=Plan(summary="All", items=items, status="planned")))
        await until(pilot, lambda: not line.display)


async def test_a_plan_that_was_put_down_says_so_until_somebody_goes_on() -> None:
    items = (PlanItem(title="Read", status="done"), PlanItem(title="Write", status="in_progress"))
    plan = Plan(summary="All", items=items, status="executing")
    ended = TurnSummary(id="t-1", outcome="interrupted", ended_at=NOW_MS, stopped="user")
    app = DockApp()
    async with app.run_test() as pilot:
        line = app.docks.query_one(PlanLine)
        app.show(state_with(plan=plan, turn=None, last_turn=ended))
        await reads(pilot, lambda: str(line.render()), "▸ Plan  Write  stopped · 1 of 2 done")
        line.action_open_or_close()
        assert str(line.render()).split("\n")[1:] == ["● Read", "◇ Write  stopped here"]
        app.show(state_with(plan=plan, last_turn=ended))
        await reads(pilot, lambda: str(line.render()).split("\n")[0], "▾ Plan  Write  1 of 2 done")
        app.show(state_with(plan=plan, turn=None, last_turn=replace(ended, outcome="completed")))
        await reads(pilot, lambda: str(line.render()).split("\n")[0], "▾ Plan  Write  1 of 2 done")


async def test_one_key_leads_from_the_prompt_to_what_waits_and_on_through_everything() -> None:
    items = (PlanItem(title="Read", status="in_progress"),)
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(approval(), plan=Plan(summary="All", items=items, status="executing"), queue=QUEUE))
        await pilot.pause()
        for region in ("ApprovalCard", "PlanLine", "QueueStrip", "Prompt"):
            await pilot.press("f6")
            await reads(pilot, lambda: type(app.focused).__name__, region)
        await pilot.press("shift+f6")
        await reads(pilot, lambda: type(app.focused).__name__, "QueueStrip")


def with_tool(status: str, **fields: object) -> State:
    tool = ToolBlock(index=0, call="t-1", name="shell", status=status, input={"command": "pytest -q"}, **fields)  # type: ignore[arg-type]
    message = Message(id="m-2", role="assistant", seq=3, updated_seq=4, ts=NOW_MS, turn="turn-1", blocks=(tool,))
    return state_with(messages=(message,))


async def test_the_activity_is_said_in_words_and_time() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None))
        assert not app.docks.query_one(ActivityLine).display
        app.show(with_tool("running", started_at=NOW_MS - 12_000))
        await until(pilot, lambda: activity(app).startswith("● Running pytest -q · 12 s"))
        app.show(state_with(approval()))
        assert activity(app).startswith("▲ Waiting for you")
        text = TextBlock(index=0, text="Hel", status="streaming")
        message = Message(id="m-2", role="assistant", seq=3, updated_seq=4, ts=NOW_MS, turn="turn-1", blocks=(text,))
        spent = replace(TURN, usage=Usage(input_tokens=12_400, output_tokens=830), cost_usd=0.02)
        app.show(state_with(messages=(message,), turn=spent))
        assert activity(app) == "● Writing · 0 s   $0.02 · Tokens: 12.4k in, 830 out"


async def test_the_activity_names_the_call_that_runs_and_not_the_next_one() -> None:
    def call(index: int, status: ToolStatus, **fields: Any) -> ToolBlock:
        given = {"command": f"sleep {index}"}
        return ToolBlock(index=index, call=f"c-{index}", name="shell", status=status, input=given, **fields)

    def calling(*calls: ToolBlock) -> State:
        message = Message(id="m-2", role="assistant", seq=3, updated_seq=4, ts=NOW_MS, turn="turn-1", blocks=calls)
        return state_with(messages=(message,))

    app = DockApp()
    async with app.run_test():
        app.show(calling(call(40, "running", started_at=NOW_MS), call(41, "called"), call(42, "called")))
        assert activity(app).startswith("● Running sleep 40")
        # Of several that run at once, the one that started last.
        running = [call(at, "running", started_at=NOW_MS - at) for at in (2, 1, 3)]
        app.show(calling(*running, call(4, "called")))
        assert activity(app).startswith("● Running sleep 1")
        app.show(calling(call(1, "ok"), call(2, "called"), call(3, "called")))
        assert activity(app).startswith("● Running sleep 2")


async def test_the_time_of_a_turn_does_not_count_for_the_next_that_begins_with_the_same() -> None:
    def writing(turn: str, started_at: int) -> State:
        text = TextBlock(index=0, text="Hel", status="streaming")
        message = Message(id=f"m-{turn}", role="assistant", seq=3, updated_seq=4, ts=NOW_MS, turn=turn, blocks=(text,))
        return state_with(messages=(message,), turn=replace(TURN, id=turn, started_at=started_at))

    app = DockApp()
    async with app.run_test():
        app.show(writing("t-1", NOW_MS))
        await app.clock.advance(20)
        assert activity(app).startswith("● Writing · 20 s")
        app.show(writing("t-2", NOW_MS + 19_000))
        assert activity(app).startswith("● Writing · 1 s")


async def test_a_retry_counts_down_and_silence_is_said() -> None:
    app = DockApp()
    async with app.run_test():
        waiting = replace(TURN, retry=Retry(attempt=2, of=5, after_s=8, reason="429: slow down."))
        app.show(state_with(turn=waiting))
        assert "Retrying in 8 s (2 of 5): 429: slow down" in activity(app)
        await app.clock.advance(5)
        assert "Retrying in 3 s (2 of 5)" in activity(app)
        await app.clock.advance(5)
        assert "Retrying now (2 of 5)" in activity(app)
        app.show(state_with())
        await app.clock.advance(35)
        assert "No sign from the agent for 45 s" in activity(app)


async def test_stopping_is_said_until_the_log_says_it() -> None:
    app = DockApp()
    async with app.run_test():
        app.show(state_with())
        app.docks.stopping()
        assert "Stopping …" in activity(app)
        app.show(state_with(turn=None))
        assert not app.docks.query_one(ActivityLine).display


async def test_a_short_trouble_of_the_connection_is_not_mentioned_and_a_long_one_is() -> None:
    app = DockApp()
    async with app.run_test():
        lost = Connection("reconnecting", retry_at_ms=NOW_MS + 10_000, heard_at_ms=NOW_MS, seq=1042)
        app.connection(lost)
        assert not app.line.display
        app.connection(Connection("open"))
        await app.clock.advance(3)
        app.line.tick()
        assert not app.line.display
        app.connection(lost)
        await app.clock.advance(3)
        app.line.tick()
        assert app.line.display
        assert str(app.line.render()).startswith("No connection. Trying again in 4 s · last heard from at ")
        assert str(app.line.render()).endswith("event 1,042")
        app.connection(Connection("caught_up", events=37))
        assert app.line.display
        assert str(app.line.render()) == "Caught up, 37 events"
        await app.clock.advance(5)
        app.line.tick()
        assert not app.line.display


async def test_being_signed_out_is_said_at_once() -> None:
    app = DockApp()
    async with app.run_test():
        app.connection(Connection("signed_out"))
        assert app.line.display
