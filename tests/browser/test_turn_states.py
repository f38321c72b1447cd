"""States of a turn that the page says in words: steered, put down, shortened, held back. Played from logs that hold them."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import expect

from palaver.schema.content import as_content
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    MessageAdded,
    PlanUpdated,
    QueueAdded,
    QueueEdited,
    TextFinished,
    TurnFinished,
    TurnInterrupted,
    TurnStatus,
)
from palaver.schema.view import Plan, PlanItem
from tests.browser.looks import SCHEMES, axe_findings, fits, picture
from tests.browser.player import Player
from tests.browser.visitor import DESKTOP, PHONE, Visitor, Visitors
from tests.golden.record import BROWSER, Record
from tests.provider.server import ScriptedProvider

SIZES = {"desktop": DESKTOP, "phone": PHONE}


def begun() -> Record:
    log = Record("turns")
    log.created(title="Turns")
    log.asked("m1", "Paint the shed", "t1")
    return log


def say(log: Record, message: str, words: str) -> None:
    log.add(
        AnswerStarted(message=message),
        TextFinished(message=message, block=0, text=words),
        AnswerFinished(message=message, finish_reason="stop"),
    )


@asynccontextmanager
async def showing(visitors: Visitors, log: Record, size: tuple[int, int] = DESKTOP) -> AsyncIterator[Visitor]:
    async with Player(log.lines).serving() as player:
        player.head = len(player.lines)
        visitor = await visitors.stranger(player.url, size)
        await visitor.open(player.conversation)
        await expect(visitor.log.get_by_role("article").first).to_be_visible()
        try:
            yield visitor
        finally:
            await visitor.page.close()


async def looks_good(visitor: Visitor, name: str, size: str) -> None:
    await fits(visitor.page)
    for scheme in SCHEMES if size == "desktop" else SCHEMES[:1]:
        await picture(visitor.page, f"{name}-{size}-{scheme}", scheme)
        assert not await axe_findings(visitor.page, scheme)


@pytest.mark.parametrize("size", SIZES)
async def test_message_that_joined_a_turn_at_work_says_so(visitors: Visitors, size: str) -> None:
    log = begun()
    say(log, "m2", "Red, then.")
    log.add(MessageAdded(message="m3", content=as_content("No, blue"), origin=BROWSER))
    say(log, "m4", "Blue it is.")
    log.add(TurnFinished(outcome="completed"))
    async with showing(visitors, log, SIZES[size]) as visitor:
        await expect(visitor.row(re.compile("^You")).filter(has_text="No, blue")).to_contain_text(
            "steered the running turn"
        )
        await expect(visitor.row(re.compile("^You")).filter(has_text="Paint the shed")).not_to_contain_text("steered")
        await looks_good(visitor, "steered", size)


@pytest.mark.parametrize("size", SIZES)
async def test_plan_of_an_interrupted_turn_is_shown_as_stopped(visitors: Visitors, size: str) -> None:
    log = begun()
    items = (
        PlanItem(title="Buy paint", status="done"),
        PlanItem(title="Paint the door", status="in_progress"),
        PlanItem(title="Paint the walls"),
    )
    plan = Plan(summary="Paint the shed", items=items, status="executing")
    log.add(PlanUpdated(plan=plan))
    say(log, "m2", "The door is wet.")
    put_down = Plan(summary=plan.summary, items=items, status="approved")
    log.add(PlanUpdated(plan=put_down), TurnInterrupted(reason="user", origin=BROWSER))
    async with showing(visitors, log, SIZES[size]) as visitor:
        shown = visitor.page.get_by_role("region", name="Plan", exact=True)
        await expect(shown).to_contain_text("stopped · 1 of 3 done")
        await shown.get_by_role("button").press("Enter")
        await expect(shown.get_by_role("listitem").nth(1)).to_contain_text("stopped here")
        await expect(shown).not_to_contain_text("under way")
        await looks_good(visitor, "plan-stopped", size)


@pytest.mark.parametrize("size", SIZES)
async def test_history_that_is_being_shortened_is_said_in_words(visitors: Visitors, size: str) -> None:
    log = begun()
    log.add(TurnStatus(status="working", detail="compressing"))
    async with showing(visitors, log, SIZES[size]) as visitor:
        activity = visitor.page.get_by_role("group", name="Activity")
        await expect(activity).to_contain_text("Shortening the history for the model")
        await expect(activity).not_to_contain_text("compressing")
        if size == "desktop":
            await expect(visitor.page.get_by_role("banner")).to_contain_text("Compacting")
        await looks_good(visitor, "compacting", size)


@pytest.mark.parametrize("size", SIZES)
async def test_held_message_shows_the_way_on(visitors: Visitors, size: str) -> None:
    log = begun()
    say(log, "m2", "Red, then.")
    log.add(
        QueueAdded(item="q1", content=as_content("And the fence, with the paint that is left over"), origin=BROWSER),
        QueueEdited(item="q1", version=2, held=True),
        TurnInterrupted(reason="user", origin=BROWSER),
    )
    async with showing(visitors, log, SIZES[size]) as visitor:
        await expect(visitor.queue).to_contain_text("held back")
        await expect(visitor.queue.get_by_role("button", name="Let it go")).to_be_visible()
        await looks_good(visitor, "queue-held", size)


async def test_held_message_is_let_go_by_another_window(
    visitors: Visitors, ada: Visitor, provider: ScriptedProvider
) -> None:
    """Somebody edits it elsewhere and went away."""
    await ada.begin("!say Busy.\n!gate letting-go")
    await provider.gates.reached("letting-go")
    await ada.send("a late thought")
    await ada.queue.get_by_role("button", name="Edit queued message").click()
    await expect(ada.queue).to_contain_text("it waits for you")
    other = Visitor(await ada.page.context.new_page(), ada.url, ada.complaints)
    await other.open(ada.conversation)
    release = other.queue.get_by_role("button", name="Let it go")
    await expect(release).to_be_visible()
    await release.press("Enter")
    await expect(other.queue).not_to_contain_text("held back")
    provider.gates.open("letting-go")
    await expect(other.log).to_contain_text("You said: a late thought")
    await other.rests()
