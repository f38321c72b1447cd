"""What runs in the background: shown with its time, stopped by a key, gone when it ended."""

import pytest
from textual.widgets import Static

from palaver.schema.commands import StopProcess
from palaver.schema.view import Process
from palaver.tui.docks.keyline import KeyLine
from palaver.tui.docks.processes import ProcessStrip
from palaver.tui.intents import Order, Say
from palaver.tui.people import People
from tests.tui.harness import NOW_MS, DockApp, one, queued, reads, state_with, until

pytestmark = pytest.mark.anyio

CLOCK = Process(id="p-1", command="tide-clock --port 9180", started_at=NOW_MS - 3_000)
HORN = Process(id="p-2", command="make\nhorn", started_at=NOW_MS - 65_000)
ENDED = Process(id="p-0", command="true", running=False, exit_code=0)


def strip(app: DockApp) -> ProcessStrip:
    return app.docks.query_one(ProcessStrip)


def lines(app: DockApp) -> list[str]:
    return str(strip(app).query_one(".items", Static).render()).split("\n") if strip(app).display else []


def keys(app: DockApp) -> list[str]:
    return [key.label for key in strip(app).query_one(KeyLine).keys]


async def test_what_runs_is_listed_with_its_time_and_what_ended_is_not() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None, processes=(ENDED,)))
        await reads(pilot, lambda: lines(app), [])
        app.show(state_with(turn=None, processes=(ENDED, CLOCK, HORN)))
        said = ["  tide-clock --port 9180  running · 3 s", "  make horn  running · 1 min 05 s"]
        await reads(pilot, lambda: lines(app), said)
        assert keys(app) == []  # A letter belongs to the message that is written.
        await app.clock.advance(2)
        strip(app).tick()
        await reads(pilot, lambda: lines(app)[0], "  tide-clock --port 9180  running · 5 s")


async def test_one_is_stopped_by_a_key_and_says_so_until_it_ended() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None, processes=(CLOCK, HORN)))
        await reads(pilot, lambda: len(lines(app)), 2)
        await pilot.press("f6", "down", "x", "x")
        await until(pilot, lambda: app.orders(StopProcess))
        await reads(pilot, lambda: lines(app)[1], "▸ make horn  stopping … · 1 min 05 s")
        assert app.orders(StopProcess) == [StopProcess(process="p-2")]
        assert keys(app) == []
        app.show(state_with(turn=None, processes=(CLOCK,)))
        await reads(pilot, lambda: lines(app), ["▸ tide-clock --port 9180  running · 3 s"])
        await reads(pilot, lambda: keys(app), ["stop it"])


async def test_whoever_may_only_read_has_no_key_that_stops_one() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.docks.introduce(People(may_write=False))
        app.show(state_with(processes=(CLOCK,)))
        strip(app).focus()
        await until(pilot, lambda: lines(app)[0].startswith("▸"))
        await pilot.press("x")
        assert app.orders(StopProcess) == []
        assert keys(app) == []


async def test_a_refused_stop_is_said_and_can_be_tried_again() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None, processes=(CLOCK,)))
        await reads(pilot, lambda: len(lines(app)), 1)
        await pilot.press("f6", "x")
        order = await one(pilot, lambda: app.of(Order))
        assert order.refused is not None
        order.refused("The server is busy.")
        assert (await one(pilot, lambda: app.of(Say))).words == "The server is busy."
        await reads(pilot, lambda: keys(app), ["stop it"])


async def test_whoever_was_in_the_strip_writes_on_when_the_last_one_ended() -> None:
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None, processes=(CLOCK,)))
        await reads(pilot, lambda: len(lines(app)), 1)
        await pilot.press("f6")
        await until(pilot, lambda: strip(app).has_focus)
        app.show(state_with(turn=None))
        await until(pilot, lambda: app.docks.composer.prompt.has_focus)


async def test_the_way_to_the_queue_counts_what_runs() -> None:
    held = queued("i-1", "later", held=True), queued("i-2", "and then", held=True)
    app = DockApp()
    async with app.run_test() as pilot:
        app.show(state_with(turn=None, processes=(CLOCK,), queue=held))
        await reads(pilot, lambda: [key.key for line in app.docks.query(KeyLine) for key in line.keys][:1], ["F6 F6 A"])
