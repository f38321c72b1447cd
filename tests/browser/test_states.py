"""States that a scripted model seldom reaches, played from a log: what became of a change, the end of a task, a failure that is
mended elsewhere, a reader who may only read."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Locator, Route, expect

from palaver.schema.content import as_content
from palaver.schema.errors import WireError
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    CitationAdded,
    FilesChanged,
    KnownEvent,
    QueueAdded,
    RequestOpened,
    RequestResolved,
    TextFinished,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnInterrupted,
)
from palaver.schema.view import FileChange, Question, QuestionOption, ToolError
from tests.browser.looks import axe_findings
from tests.browser.player import Player
from tests.browser.visitor import Visitor, Visitors
from tests.golden.record import BROWSER, Record

SAME = "".join(f" line {number}\n" for number in range(20))
DIFF = f"--- a/tides.py\n+++ b/tides.py\n@@ -1,21 +1,21 @@\n{SAME}-ebb\n+flood\n"
EDIT = {"path": "tides.py", "old": "ebb", "new": "flood"}


def begun() -> Record:
    log = Record("states")
    log.created(title="States")
    log.asked("m1", "Mend the tides", "t1")
    log.add(AnswerStarted(message="m2"))
    return log


@asynccontextmanager
async def showing(visitors: Visitors, log: Record, **roles: bool) -> AsyncIterator[Visitor]:
    async with Player(log.lines).serving() as player:
        player.head = len(player.lines)
        visitor = await visitors.stranger(player.url)
        if roles:

            async def session(route: Route) -> None:
                answer = await route.fetch()
                allowed = [role for role, has in roles.items() if has]
                await route.fulfill(response=answer, json={**await answer.json(), "roles": allowed})

            await visitor.page.route("**/api/session", session)
        await visitor.open(player.conversation)
        await expect(visitor.log.get_by_role("article").first).to_be_visible()
        try:
            yield visitor
        finally:
            await visitor.page.close()


async def opened(visitor: Visitor, name: str) -> Locator:
    row = visitor.row(re.compile(name))
    await row.get_by_role("button").first.press("Enter")
    return row


CHANGED = FilesChanged(
    files=(FileChange(path="tides.py", kind="modified", additions=1, deletions=1, diff=DIFF),), call="c1"
)
FAILED = ToolFinished(call="c1", ok=False, error=ToolError(code="tool_error", message="`ebb` is not in it."))
ASKED = RequestOpened(request="r1", kind="approval", call="c1", tool="edit", input=EDIT)
REFUSED = RequestResolved(request="r1", status="answered", verdict="deny")
DENIED = ToolFinished(call="c1", ok=False, error=ToolError(code="tool_denied", message="Denied."))
CUT = ToolFinished(call="c1", ok=False, error=ToolError(code="tool_interrupted", message="Interrupted."))
STARTED = ToolStarted(call="c1", grant="rule")


@pytest.mark.parametrize(
    ("state", "events"),
    [
        ("Proposed, not applied yet", (ASKED,)),
        ("Rejected, not applied", (ASKED, REFUSED, DENIED)),
        ("Applied", (STARTED, CHANGED, ToolFinished(call="c1", ok=True))),
        ("Partly applied", (STARTED, CHANGED, FAILED)),
        ("Not applied: it does not fit", (STARTED, FAILED)),
        ("Interrupted: it may be applied in part", (STARTED, CUT)),
    ],
)
async def test_change_says_what_became_of_it(visitors: Visitors, state: str, events: tuple[KnownEvent, ...]) -> None:
    log = begun()
    log.add(ToolCalled(message="m2", block=0, call="c1", name="edit", input=EDIT), *events)
    async with showing(visitors, log) as visitor:
        row = await opened(visitor, "^Tool: Edit")
        await expect(row.locator(".diff-state")).to_have_text(re.compile(f"^{state}"))


async def test_unchanged_lines_are_folded_and_a_change_is_shown_side_by_side(visitors: Visitors) -> None:
    log = begun()
    log.add(
        ToolCalled(message="m2", block=0, call="c1", name="edit", input=EDIT),
        STARTED,
        CHANGED,
        ToolFinished(call="c1", ok=True),
    )
    async with showing(visitors, log) as visitor:
        row = await opened(visitor, "^Tool: Edit")
        lines = row.locator(".diff-lines")
        await expect(lines).to_contain_text("line 17")
        await expect(lines).not_to_contain_text("line 16\n")
        await row.get_by_role("button", name="17 unchanged lines").click()
        await expect(lines).to_contain_text("line 3")
        beside = row.get_by_role("button", name="Side by side")
        await beside.click()
        await expect(beside).to_have_attribute("aria-pressed", "true")
        await expect(row.locator(".diff-pair", has_text="ebb")).to_contain_text("flood")
        await visitor.page.set_viewport_size({"width": 390, "height": 844})
        await expect(row.locator(".diff-pair")).to_have_count(0)
        await expect(lines).to_contain_text("flood")


async def test_opened_group_shows_what_was_thought_between_its_calls(visitors: Visitors) -> None:
    log = begun()
    log.add(
        ToolCalled(message="m2", block=0, call="c1", name="read_file", input={"path": "tides.py"}),
        ThinkingFinished(message="m2", block=1, text="Perhaps the moon."),
        ToolCalled(message="m2", block=2, call="c2", name="grep", input={"pattern": "moon"}),
        ToolStarted(call="c1", grant="rule"),
        ToolFinished(call="c1", ok=True, output="ebb"),
        ToolStarted(call="c2", grant="rule"),
        ToolFinished(call="c2", ok=True),
    )
    async with showing(visitors, log) as visitor:
        row = await opened(visitor, "^Tool: Explored 1 file, 1 search")
        await row.get_by_role("button", name="Thought").click()
        await expect(row).to_contain_text("Perhaps the moon.")


async def test_skipped_question_is_no_failure_and_keeps_what_was_asked(visitors: Visitors) -> None:
    log = begun()
    asked = Question(question="Which tide?", options=(QuestionOption(label="Ebb"), QuestionOption(label="Flood")))
    told = "The person declined to answer: no answer. Assume none."
    log.add(
        ToolCalled(
            message="m2", block=0, call="c1", name="ask_user", input={"questions": [{"question": "Which tide?"}]}
        ),
        RequestOpened(request="r1", kind="question", call="c1", tool="ask_user", questions=(asked,)),
        RequestResolved(request="r1", status="answered", verdict="deny", origin=BROWSER),
        ToolFinished(call="c1", ok=False, error=ToolError(code="no_answer", message=told)),
    )
    async with showing(visitors, log) as visitor:
        row = await opened(visitor, "^Tool: Ask Which tide\\?, not answered$")
        await expect(row.get_by_role("definition")).to_have_text("No answer")
        await expect(row.locator(".tool-footer")).to_contain_text("Skipped")
        await expect(row).not_to_contain_text("Assume none")


async def test_more_changed_files_than_are_listed_are_said_to_be_more(visitors: Visitors) -> None:
    log = begun()
    files = tuple(FileChange(path=f"tide{number}.py", kind="created", additions=1) for number in range(201))
    log.add(ToolCalled(message="m2", block=0, call="c1", name="shell", input={"command": "make"}), STARTED)
    log.add(FilesChanged(files=files, call="c1"), ToolFinished(call="c1", ok=True))
    async with showing(visitors, log) as visitor:
        await visitor.page.get_by_role("button", name="Context and cost").click()
        await expect(visitor.page.get_by_text("tide200.py")).to_be_visible()
        await expect(visitor.page.get_by_text("and 192 more")).to_be_visible()
        await visitor.page.get_by_role("button", name="Show the changes").click()
        listed = visitor.page.get_by_role("dialog", name="Changed files")
        await expect(listed).to_contain_text("These are the 200 files that were changed last")


async def test_sources_that_an_answer_cites_are_listed_with_its_words(visitors: Visitors) -> None:
    log = begun()
    cited = {"url": "https://tides.example/spring", "title": "Spring tides", "cited_text": "Twice a month."}
    log.add(TextFinished(message="m2", block=0, text="They come twice a month."))
    log.add(CitationAdded(message="m2", block=0, citation=cited), CitationAdded(message="m2", block=0, citation=cited))
    async with showing(visitors, log) as visitor:
        row = visitor.row(re.compile("^Agent")).filter(has_text="They come twice")
        await row.get_by_role("button", name="Cites 1 source").click()
        await expect(row.get_by_role("link", name="Spring tides")).to_have_attribute("href", cited["url"])
        await expect(row).to_contain_text("Twice a month.")
        assert not await axe_findings(visitor.page, "light")


async def test_end_of_a_task_is_a_card(visitors: Visitors) -> None:
    log = begun()
    log.add(
        ToolCalled(message="m2", block=0, call="c1", name="finish_task", input={"summary": "All **done**."}),
        AnswerFinished(message="m2", finish_reason="tool_use"),
        STARTED,
        ToolFinished(call="c1", ok=True),
        TurnFinished(outcome="task", summary="All **done**."),
    )
    async with showing(visitors, log) as visitor:
        card = visitor.log.get_by_role("region", name="Task done")
        await expect(card.locator("strong")).to_have_text("done")


@pytest.mark.parametrize("code", ["not_installed", "not_logged_in"])
async def test_failure_that_is_mended_with_the_backends_leads_there(visitors: Visitors, code: str) -> None:
    log = begun()
    log.add(TurnFinished(outcome="failed", error=WireError(code=code, message="Run `claude` once.")))
    async with showing(visitors, log) as visitor:
        card = visitor.log.locator(".error-card")
        await expect(card).to_contain_text("Run “claude” once.")
        await card.get_by_role("link", name="See what it needs").click()
        await expect(visitor.page).to_have_url(re.compile("/backends$"))


async def test_reader_who_may_only_read_is_told_and_can_neither_write_nor_decide(visitors: Visitors) -> None:
    log = begun()
    log.add(ToolCalled(message="m2", block=0, call="c1", name="edit", input=EDIT), ASKED)
    async with showing(visitors, log, read=True, send=False, decide=False) as visitor:
        await expect(visitor.page.get_by_text("You may read here.")).to_be_visible()
        await expect(visitor.box).to_have_count(0)
        await expect(visitor.approval).to_contain_text("Somebody who may decide must answer this")
        await expect(visitor.approval.get_by_role("button", name="Allow once")).to_be_disabled()


async def test_reader_who_may_only_read_is_offered_nothing_that_changes_anything(visitors: Visitors) -> None:
    log = begun()
    log.add(TextFinished(message="m2", block=0, text="The tides are"), TurnInterrupted(reason="user"))
    log.asked("m3", "Go on", "t2")
    log.add(QueueAdded(item="q1", content=as_content("And the moon?")))
    async with showing(visitors, log, read=True, send=False) as visitor:
        header = visitor.page.get_by_role("banner")
        await expect(header).to_contain_text("read only")
        await expect(header.get_by_role("button", name="States")).to_be_disabled()
        await expect(visitor.log).to_contain_text("Interrupted")
        await expect(visitor.queue).to_contain_text("And the moon?")
        for name in ("Stop", "Continue", "Edit and resend", "Remove from queue", "Answer again", "New conversation"):
            await expect(visitor.page.get_by_role("button", name=name)).to_have_count(0)
        await header.get_by_role("button", name="Conversation actions").click()
        menu = visitor.page.get_by_role("menu")
        await expect(menu.get_by_role("menuitem", name="Export …")).to_be_visible()
        for name in ("Rename conversation", "Conversation settings", "Archive", "Delete …"):
            await expect(menu.get_by_role("menuitem", name=name)).to_have_count(0)
        await visitor.press("Escape", "Escape")
        await visitor.page.keyboard.press("Control+K")
        commands = visitor.page.get_by_role("listbox", name="Commands")
        await expect(commands).to_contain_text("Find in conversation")
        await expect(commands).not_to_contain_text("Stop the agent")
        await expect(visitor.page.get_by_text("Stopping …")).to_have_count(0)
