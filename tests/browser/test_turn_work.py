"""The work of a turn on the page: the states of its calls, one summary when it is over, structured answers, the typing
indicator. Played from logs, live and after a reload, and looked at in both colour schemes and on a phone."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Locator, expect

from palaver.schema.content import as_content
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    FilesChanged,
    KnownEvent,
    MessageAdded,
    RequestOpened,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    TurnFinished,
    TurnInterrupted,
)
from palaver.schema.view import FileChange, ToolError
from tests.browser.looks import SCHEMES, axe_findings, fits, picture
from tests.browser.player import Player
from tests.browser.served import Palaver
from tests.browser.visitor import DESKTOP, PHONE, Visitor, Visitors
from tests.golden.record import Record
from tests.provider.server import ScriptedProvider

INTERRUPTED = ToolError(code="tool_interrupted", message="Interrupted, effect unknown.")
FAILED = ToolError(code="tool_error", message="No such file: moon.txt")
DENIED = ToolError(code="tool_denied", message="Denied.")
DIFF = "--- a/tides.py\n+++ b/tides.py\n@@ -1 +1 @@\n-ebb\n+flood\n"


def begun(name: str = "work-of-turns") -> Record:
    log = Record(name)
    log.created(title="Tides")
    log.asked("m1", "Mend the tides", "t1")
    log.add(AnswerStarted(message="m2"))
    return log


def called(block: int, name: str, **fields: object) -> ToolCalled:
    return ToolCalled(message="m2", block=block, call=f"c{block}", name=name, input=fields)


def ran(block: int, name: str, result: ToolFinished | None = None, **fields: object) -> tuple[KnownEvent, ...]:
    ended = result or ToolFinished(call=f"c{block}", ok=True, output="done")
    return called(block, name, **fields), ToolStarted(call=f"c{block}", grant="rule"), ended


def worked() -> Record:
    """A turn at its last word: it looked around, edited, ran commands of which one failed, and answered."""
    log = begun()
    change = FileChange(path="tides.py", kind="modified", additions=1, deletions=1, diff=DIFF)
    log.add(
        ThinkingFinished(message="m2", block=0, text="The moon, perhaps.", duration_ms=2_000),
        TextFinished(message="m2", block=1, text="I look at the tables first."),
        *ran(2, "read", path="tides.py"),
        *ran(3, "read", path="moon.py"),
        *ran(4, "grep", pattern="ebb"),
        called(5, "edit", path="tides.py", old="ebb", new="flood"),
        ToolStarted(call="c5", grant="rule"),
        FilesChanged(files=(change,), call="c5"),
        ToolFinished(call="c5", ok=True),
        *ran(6, "shell", ToolFinished(call="c6", ok=False, error=FAILED, exit_code=1), command="cat moon.txt"),
        TextFinished(message="m2", block=7, text="There is no moon."),
        *ran(8, "shell", command="make tides"),
        TextFinished(message="m2", block=9, text="The tides are mended."),
        AnswerFinished(message="m2", finish_reason="stop"),
    )
    return log


@asynccontextmanager
async def playing(
    visitors: Visitors, log: Record, size: tuple[int, int] = DESKTOP
) -> AsyncIterator[tuple[Visitor, Player]]:
    """Everything in the log has happened."""
    async with Player(log.lines).serving() as player:
        player.head = len(player.lines)
        visitor = await visitors.stranger(player.url, size)
        await visitor.open(player.conversation)
        await expect(visitor.log.get_by_role("article").first).to_be_visible()
        await player.followed()
        try:
            yield visitor, player
        finally:
            await visitor.page.close()


async def happens(player: Player, log: Record, *events: KnownEvent) -> None:
    """More of the log, live."""
    log.add(*events)
    more = Player(log.lines)
    player.lines, player.states = more.lines, more.states
    await player.play(len(player.lines))


async def moments(visitor: Visitor) -> AsyncIterator[str]:
    """What is asserted holds as it happened and once more for who comes later."""
    yield "live"
    await visitor.page.reload()
    yield "after a reload"


async def looks_good(visitor: Visitor, name: str) -> None:
    """In both colour schemes, and on a phone."""
    for scheme in SCHEMES:
        await picture(visitor.page, f"turns/{name}-{scheme}", scheme)
        assert await axe_findings(visitor.page, scheme) == []
    await visitor.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    await fits(visitor.page)
    await picture(visitor.page, f"turns/{name}-phone")
    assert await axe_findings(visitor.page, "light") == []
    await visitor.page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})


async def frame(row: Locator, property: str) -> str:
    """How the frame around a call's line is drawn."""
    line = row.locator(".tool-line")
    return str(await line.evaluate(f"line => getComputedStyle(line, '::before').{property}"))


def tool(visitor: Visitor, words: str) -> Locator:
    return visitor.log.locator(".tool").filter(has_text=words).last


def summary(visitor: Visitor) -> Locator:
    return visitor.row("Work of this turn").get_by_role("button")


# -- the states of a call


async def test_call_shows_its_state_by_class_mark_and_words_live_and_after_a_reload(visitors: Visitors) -> None:
    log = begun()
    cut = ToolFinished(call="c3", ok=True, output="a\n" * 50, truncated=True, total_lines=90_000, total_bytes=180_000)
    log.add(
        *ran(0, "shell", command="make ebb"),
        *ran(1, "shell", ToolFinished(call="c1", ok=False, error=FAILED), command="make moon"),
        *ran(2, "shell", ToolFinished(call="c2", ok=False, error=DENIED), command="rm -r sea"),
        *ran(3, "shell", cut, command="cat sea.log"),
        *ran(4, "shell", ToolFinished(call="c4", ok=False, error=INTERRUPTED), command="sleep 400"),
        called(5, "shell", command="make flood"),
        ToolStarted(call="c5", grant="rule"),
        ToolOutputDelta(call="c5", text="flooding\n"),
        called(6, "shell", command="make calm"),
    )
    async with playing(visitors, log) as (visitor, _):
        async for _moment in moments(visitor):
            done = tool(visitor, "make ebb")
            await expect(done).to_have_class(re.compile(r"\bsuccess\b"))
            await expect(done.locator(".tool-state.is-check")).to_have_text("done")
            failed = tool(visitor, "make moon")
            await expect(failed).to_have_class(re.compile(r"\berror\b"))
            await expect(failed).to_contain_text("failed · No such file")
            await expect(tool(visitor, "rm -r sea")).to_have_class(re.compile(r"\berror\b"))
            await expect(tool(visitor, "rm -r sea")).to_contain_text("denied")
            truncated = tool(visitor, "cat sea.log")
            await expect(truncated).to_have_class(re.compile(r"\bsuccess .*\btruncated\b"))
            await expect(truncated.locator(".tool-state.is-warn")).to_have_text("Output truncated")
            await expect(visitor.row(re.compile("cat sea.log, output truncated$"))).to_be_visible()
            interrupted = tool(visitor, "sleep 400")
            await expect(interrupted).to_have_class(re.compile(r"\binterrupted\b"))
            await expect(interrupted).to_contain_text("⚠ Interrupted")
            assert await frame(interrupted, "borderStyle") == "dashed"
            for words in ("make flood", "make calm"):
                await expect(tool(visitor, words)).to_have_class(re.compile(r"\bpending\b"))
            assert await frame(tool(visitor, "make flood"), "animationName") == "pulse"
        await looks_good(visitor, "states")
        # It is looked at with less motion.
        assert await frame(tool(visitor, "make flood"), "animationName") == "none"


async def test_answer_of_another_agent_has_its_own_accent(visitors: Visitors) -> None:
    log = begun()
    log.add(
        TextFinished(message="m2", block=0, text="I asked the harbour."),
        AnswerFinished(message="m2", finish_reason="stop"),
        TurnFinished(outcome="completed"),
        MessageAdded(message="m3", role="event", event_kind="agent_callback", content=as_content("No rain today.")),
    )
    async with playing(visitors, log) as (visitor, _):
        async for _moment in moments(visitor):
            answer = visitor.log.locator(".agent-callback")
            await expect(answer).to_contain_text("No rain today.")
            await expect(answer).to_have_css("border-left-style", "solid")
        await looks_good(visitor, "callback")


# -- the phases of a turn


async def test_turn_folds_into_one_summary_when_it_is_over(visitors: Visitors) -> None:
    log = worked()
    async with playing(visitors, log) as (visitor, player):
        live = summary(visitor)
        await expect(live).to_have_attribute("aria-expanded", "true")
        await expect(live).to_contain_text("Working: read 2 files, searched once, edited 1 file, ran 2 commands")
        await expect(visitor.log).to_contain_text("I look at the tables first.")
        await looks_good(visitor, "working")

        await happens(player, log, TurnFinished(outcome="completed"))
        async for _moment in moments(visitor):
            done = summary(visitor)
            await expect(done).to_have_attribute("aria-expanded", "false")
            await expect(done).to_contain_text("Read 2 files, searched once, edited 1 file, ran 2 commands")
            await expect(done).to_contain_text(re.compile(r"1 failed · 6 tool calls · \d+ s"))
            await expect(visitor.log).not_to_contain_text("I look at the tables first.")
            await expect(visitor.log).not_to_contain_text("make tides")
            # What failed is never hidden, nor is the answer.
            await expect(visitor.row(re.compile("^Tool: Ran cat moon.txt"))).to_be_visible()
            await expect(visitor.log).to_contain_text("The tides are mended.")
        await looks_good(visitor, "done")

        await summary(visitor).press("Enter")
        await expect(visitor.log).to_contain_text("I look at the tables first.")
        await expect(visitor.row(re.compile("^Tool: Ran make tides"))).to_be_visible()
        words = await visitor.read()
        assert (
            words.index("I look at") < words.index("Explored") < words.index("There is no moon") < words.index("mended")
        )
        await looks_good(visitor, "opened")


async def test_fold_is_remembered_while_the_page_lives(visitors: Visitors) -> None:
    log = worked()
    log.add(TurnFinished(outcome="completed"))
    async with playing(visitors, log) as (visitor, player):
        await summary(visitor).press("Enter")
        await expect(visitor.log).to_contain_text("I look at the tables first.")
        await visitor.page.evaluate(
            "history.pushState(null, '', '/waiting'); dispatchEvent(new PopStateEvent('popstate'))"
        )
        await expect(visitor.page.get_by_role("heading", name="Waiting for you")).to_be_visible()
        await visitor.page.go_back()
        await expect(summary(visitor)).to_have_attribute("aria-expanded", "true")
        await happens(player, log, MessageAdded(message="m9", content=as_content("Thanks")))
        await expect(visitor.log).to_contain_text("Thanks")
        await expect(summary(visitor)).to_have_attribute("aria-expanded", "true")
        await summary(visitor).press("Enter")
        await expect(visitor.log).not_to_contain_text("I look at the tables first.")


async def test_turn_that_ends_while_somebody_reads_in_it_stays_open(visitors: Visitors) -> None:
    log = worked()
    async with playing(visitors, log) as (visitor, player):
        await visitor.row(re.compile("^Tool: Ran make tides")).get_by_role("button").press("Enter")
        await happens(player, log, TurnFinished(outcome="completed"))
        await expect(visitor.page).to_have_title(re.compile(re.escape(Player.mark(player.head))))
        await expect(summary(visitor)).to_have_attribute("aria-expanded", "true")
        await expect(visitor.row(re.compile("^Tool: Ran make tides"))).to_be_visible()


async def test_found_words_and_links_open_the_work_they_are_in(visitors: Visitors) -> None:
    log = Record("found")
    log.created(title="Tides")
    for turn in range(1, 30):
        log.asked(f"u{turn}", f"Question {turn}", f"t{turn}")
        log.add(
            AnswerStarted(message=f"w{turn}"),
            TextFinished(message=f"w{turn}", block=0, text=f"Looking for pearl {turn}."),
            ToolCalled(message=f"w{turn}", block=1, call=f"c{turn}", name="shell", input={"command": "dive"}),
            ToolStarted(call=f"c{turn}", grant="rule"),
            ToolFinished(call=f"c{turn}", ok=True),
            AnswerStarted(message=f"a{turn}"),
            TextFinished(message=f"a{turn}", block=0, text=f"Answer {turn}."),
            TurnFinished(outcome="completed"),
        )
    async with playing(visitors, log) as (visitor, player):
        await expect(visitor.log).to_contain_text("Answer 29.")
        await expect(visitor.log).not_to_contain_text("pearl")
        await visitor.press("Control+f")
        field = visitor.page.get_by_role("textbox", name="Find in conversation")
        await field.fill("pearl 7")
        await expect(visitor.page.get_by_role("search", name="Find", exact=True)).to_contain_text("1 of 1")
        await field.press("Enter")
        await expect(visitor.log.get_by_text("Looking for pearl 7.")).to_be_in_viewport()
        await visitor.go(f"/c/{player.conversation}#m=w12")
        await expect(visitor.log.get_by_text("Looking for pearl 12.")).to_be_in_viewport()
        await expect(visitor.log).not_to_contain_text("pearl 13")


async def test_open_request_is_in_sight_though_the_reader_folded_the_work(visitors: Visitors) -> None:
    log = begun()
    log.add(
        *ran(0, "shell", command="make ebb"),
        called(1, "shell", command="make flood"),
        RequestOpened(request="r1", kind="approval", call="c1", tool="shell", input={"command": "make flood"}),
    )
    async with playing(visitors, log) as (visitor, _):
        await summary(visitor).press("Enter")
        await expect(visitor.log).not_to_contain_text("make ebb")
        await expect(visitor.row(re.compile("^Tool: Run make flood, waits for you"))).to_be_visible()
        await expect(summary(visitor)).to_contain_text("1 waits for you")


async def test_stopped_turn_keeps_its_interrupted_call_in_sight(visitors: Visitors) -> None:
    log = begun()
    log.add(
        *ran(0, "shell", command="make ebb"),
        called(1, "shell", command="sleep 400"),
        ToolStarted(call="c1", grant="rule"),
    )
    async with playing(visitors, log) as (visitor, player):
        await expect(visitor.log.locator(".typing")).to_be_visible()
        await happens(player, log, ToolFinished(call="c1", ok=False, error=INTERRUPTED), TurnInterrupted(reason="user"))
        async for _moment in moments(visitor):
            await expect(summary(visitor)).to_contain_text("1 interrupted · 2 tool calls")
            await expect(tool(visitor, "sleep 400")).to_contain_text("⚠ Interrupted")
            await expect(visitor.log.locator(".typing")).to_have_count(0)
        await looks_good(visitor, "stopped")


async def test_text_has_a_cursor_while_it_streams_and_the_turn_a_typing_indicator_throughout(
    visitors: Visitors,
) -> None:
    log = begun()
    typing, cursor = (
        ".typing",
        "getComputedStyle(document.querySelector('.agent-text:last-of-type .md p'), '::after').content",
    )
    async with playing(visitors, log) as (visitor, player):
        await happens(player, log, ThinkingDelta(message="m2", block=0, text="Hm"))
        await expect(visitor.log.get_by_text("Thinking")).to_be_visible()
        await expect(visitor.log.locator(typing)).to_be_visible()
        await happens(
            player, log, ThinkingFinished(message="m2", block=0, text="Hm"), *ran(1, "shell", command="make ebb")
        )
        await expect(visitor.log).to_contain_text("make ebb")
        await expect(visitor.log.locator(typing)).to_be_visible()
        await happens(player, log, TextDelta(message="m2", block=2, text="The tide"))
        await expect(visitor.log).to_contain_text("The tide")
        await expect(visitor.log.locator(".agent-text.streaming")).to_have_count(1)
        assert await visitor.page.evaluate(cursor) == '""'
        await expect(visitor.log.locator(typing)).to_be_visible()
        await looks_good(visitor, "streaming")
        await happens(player, log, TextFinished(message="m2", block=2, text="The tide turns."))
        await expect(visitor.log).to_contain_text("The tide turns.")
        assert await visitor.page.evaluate(cursor) == "none"
        await expect(visitor.log.locator(typing)).to_be_visible()
        await happens(player, log, TurnFinished(outcome="completed"))
        await expect(visitor.log.locator(typing)).to_have_count(0)


async def test_activity_names_the_call_that_runs_not_the_next_one(visitors: Visitors) -> None:
    log = begun()
    calls = [called(at, "shell", command=f"sleep 4{at}") for at in range(3)]
    log.add(*calls, AnswerFinished(message="m2", finish_reason="tool_use"), ToolStarted(call="c0", grant="rule"))
    async with playing(visitors, log) as (visitor, player):
        activity = visitor.page.get_by_role("group", name="Activity")
        await expect(activity).to_contain_text("Running sleep 40")
        await happens(player, log, ToolFinished(call="c0", ok=True), ToolStarted(call="c1", grant="rule"))
        await expect(activity).to_contain_text("Running sleep 41")


async def test_change_report_stands_below_a_turn_that_changed_one_file(visitors: Visitors) -> None:
    log = worked()
    log.add(TurnFinished(outcome="completed"))
    async with playing(visitors, log) as (visitor, _):
        report = visitor.row("Changed 1 file")
        await report.get_by_role("button", name=re.compile(r"^tides\.py")).press("Enter")
        await expect(report).to_contain_text("flood")


# -- structured answers

PLAN = {
    "type": "plan",
    "summary": "Move the tables to the moon",
    "items": [
        {"title": "Read the tables", "status": "done"},
        {"title": "Count the moons", "description": "One, as far as we know", "status": "in_progress"},
        {"title": "Write it down"},
    ],
}
TASK = {
    "type": "finalize_task",
    "packet": {"title": "Tides", "summary": "All **mended**.", "acceptance_criteria": ["make tides passes"]},
}
REPORT = {
    "type": "change_report",
    "files": [{"path": "tides.py", "summary": "ebb becomes flood", "diff": DIFF}, {"path": "moon.py"}],
    "truncated_count": 2,
}
ASK = {
    "type": "ask_user",
    "question_id": "q1",
    "questions": [
        {
            "question": "Which tide?",
            "header": "Tide",
            "options": [{"label": "Ebb", "description": "going out"}, {"label": "Flood"}],
        },
        {"question": "Which days?", "options": ["Monday", "Friday"], "multi_select": True},
    ],
}


def answered(block: object) -> Record:
    log = begun()
    text = block if isinstance(block, str) else json.dumps(block)
    log.add(
        TextFinished(message="m2", block=0, text=text),
        AnswerFinished(message="m2", finish_reason="stop"),
        TurnFinished(outcome="completed"),
    )
    return log


@pytest.mark.parametrize(
    ("name", "block", "region", "words"),
    [
        ("plan", PLAN, "Plan", ("Move the tables to the moon", "Count the moons", "One, as far as we know")),
        ("task", TASK, "Task summary", ("Tides", "All mended.", "Acceptance criteria", "make tides passes")),
        ("report", REPORT, "Change report", ("tides.py", "ebb becomes flood", "moon.py", "and 2 more files")),
        ("ask", ASK, "A question for you", ("Which tide?", "going out", "Monday")),
    ],
)
async def test_structured_answer_is_shown_as_a_widget(
    visitors: Visitors, name: str, block: object, region: str, words: tuple[str, ...]
) -> None:
    async with playing(visitors, answered(block)) as (visitor, _):
        async for _moment in moments(visitor):
            card = visitor.log.get_by_role("region", name=region)
            for part in words:
                await expect(card).to_contain_text(part)
            await expect(visitor.log).not_to_contain_text('"type"')
        await looks_good(visitor, f"special-{name}")


@pytest.mark.parametrize("text", ['{"type": "poem", "lines": ["ebb"]}', '{"type": "plan", "items": "ebb"}', "{ebb"])
async def test_any_other_json_stays_text(visitors: Visitors, text: str) -> None:
    async with playing(visitors, answered(text)) as (visitor, _):
        await expect(visitor.log.get_by_text("ebb")).to_be_visible()
        await expect(visitor.log.locator(".special")).to_have_count(0)


async def test_structured_answer_is_text_until_it_is_finished(visitors: Visitors) -> None:
    log = begun()
    log.add(TextDelta(message="m2", block=0, text=json.dumps(PLAN)))
    async with playing(visitors, log) as (visitor, player):
        await expect(visitor.log).to_contain_text("Count the moons")
        await expect(visitor.log.locator(".special")).to_have_count(0)
        await happens(player, log, TextFinished(message="m2", block=0, text=json.dumps(PLAN)))
        await expect(visitor.log.get_by_role("region", name="Plan")).to_contain_text("Count the moons")


async def test_question_in_an_answer_is_answered_by_the_next_message(
    ada: Visitor, palaver: Palaver, provider: ScriptedProvider
) -> None:
    await ada.begin(f"!say {json.dumps(ASK)}")
    await ada.rests()
    card = ada.log.get_by_role("region", name="A question for you")
    await expect(card.get_by_role("button", name="Answer")).to_be_disabled()
    await card.get_by_label("Flood").check()
    await card.get_by_label("Monday").check()
    await card.get_by_label("Friday").check()
    await card.get_by_role("button", name="Answer").press("Enter")
    await expect(ada.log.get_by_text("Which tide? Flood")).to_be_visible()
    await expect(ada.log.get_by_text("Which days? Monday, Friday")).to_be_visible()
    await ada.rests()
    # It is answered: nobody can answer it again.
    await expect(card.get_by_role("button", name="Answer")).to_have_count(0)
    await expect(card.get_by_label("Ebb")).to_be_disabled()


async def test_plan_in_an_answer_is_approved_by_the_next_message(ada: Visitor) -> None:
    await ada.begin(f"!say {json.dumps(PLAN)}")
    await ada.rests()
    card = ada.log.get_by_role("region", name="Plan")
    await card.get_by_role("button", name="Approve the plan").press("Enter")
    await expect(ada.log.get_by_text("I approve this plan. Go ahead.")).to_be_visible()
    await expect(card.get_by_role("button", name="Approve the plan")).to_have_count(0)


# -- opened with a text


async def test_page_opens_with_a_prompt_in_the_box_and_does_not_send_it(ada: Visitor) -> None:
    await ada.go("/?prompt=Mend%20the%20tides%20%26%20the%20moon")
    await expect(ada.box).to_have_value("Mend the tides & the moon")
    await expect(ada.page).to_have_url(f"{ada.url}/")
    await expect(ada.log).to_have_count(0)
