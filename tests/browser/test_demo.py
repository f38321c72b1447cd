"""What the demo agent shows, as a new user meets it: questions, plans, processes, recalled notes, less context, changes."""

import re

import pytest
from playwright.async_api import expect

from tests.browser.served import Palaver
from tests.browser.visitor import Visitor, Visitors

pytestmark = pytest.mark.anyio


@pytest.fixture
async def guest(visitors: Visitors, palaver: Palaver) -> Visitor:
    visitor = await visitors.owner(palaver.url, palaver.token)
    await visitor.page.add_init_script("localStorage.setItem('palaver.agent', 'demo')")
    return visitor


async def test_question_is_answered_by_choice(guest: Visitor) -> None:
    await guest.begin("question")
    card = guest.page.get_by_role("region", name="A question for you")
    await expect(card.get_by_role("button", name="Answer")).to_be_disabled()
    await card.get_by_role("radio", name="A table").check()
    await card.get_by_role("button", name="Answer").click()
    await expect(guest.log).to_contain_text("You answered: A table.")
    await expect(card).to_have_count(0)


async def test_question_is_answered_in_own_words(guest: Visitor) -> None:
    await guest.begin("question")
    card = guest.page.get_by_role("region", name="A question for you")
    await card.get_by_role("radio", name="Something else").check()
    await card.get_by_role("textbox", name="Your own answer").fill("a quiet evening")
    await card.get_by_role("button", name="Answer").click()
    await expect(guest.log).to_contain_text("You answered: a quiet evening.")


async def test_question_can_be_skipped(guest: Visitor) -> None:
    await guest.begin("question")
    card = guest.page.get_by_role("region", name="A question for you")
    await card.get_by_role("button", name="Skip").click()
    await expect(guest.log).to_contain_text("Nobody answered")


# Opens the plan as soon as there is one, and notes how many of its steps are under way: each is so only for a while.
WATCHED = """
window.underWay = [];
new MutationObserver(() => {
  const line = document.querySelector(".plan-line");
  if (line === null) return;
  line.querySelector("[aria-expanded=false]")?.click();
  const steps = [...line.querySelectorAll("li")];
  if (steps.length > 0) window.underWay.push(steps.filter(step => step.textContent.includes("under way")).length);
}).observe(document, { childList: true, subtree: true, characterData: true });
"""


async def test_plan_is_approved_and_worked_off_in_sight(guest: Visitor) -> None:
    await guest.page.add_init_script(WATCHED)
    await guest.begin("plan")
    card = guest.page.get_by_role("region", name="The agent proposes a plan")
    await expect(card.locator(".is-label")).to_have_count(4)
    await card.get_by_role("button", name="Approve").click()
    plan = guest.page.get_by_role("region", name="Plan", exact=True)
    await expect(plan).to_contain_text("4 of 4 done")
    await expect(plan.get_by_role("listitem")).to_have_count(4)
    assert set(await guest.page.evaluate("window.underWay")) == {0, 1}


async def test_plan_is_sent_back_with_words(guest: Visitor) -> None:
    await guest.begin("plan")
    card = guest.page.get_by_role("region", name="The agent proposes a plan")
    await card.get_by_role("button", name="Revise").click()
    await card.get_by_role("textbox", name="What should change?").fill("Quieter, please.")
    await card.get_by_role("button", name="Ask for changes").click()
    await expect(card).to_have_count(0)
    await expect(guest.log).to_contain_text("Then not.")


async def test_background_process_is_shown_and_stopped(guest: Visitor) -> None:
    await guest.begin("process")
    strip = guest.page.get_by_role("region", name="Background processes")
    await expect(strip).to_contain_text("tide-clock")
    await expect(guest.row("Process ended")).to_contain_text("make hornexit 0")
    await strip.get_by_role("button", name="Stop tide-clock").click()
    await expect(strip).to_have_count(0)
    await expect(guest.row("Process stopped")).to_contain_text("tide-clock --port 9180")


async def test_recalled_notes_stand_under_the_message(guest: Visitor) -> None:
    await guest.begin("knowledge")
    await guest.rests()
    await guest.log.get_by_role("button", name="Recalled 2 notes and 1 file").press("Enter")
    await expect(guest.row(re.compile("^You, "))).to_contain_text("three seconds in every thirty")


async def test_compressed_context_is_a_divider_and_the_meter_tells_its_parts(guest: Visitor) -> None:
    await guest.begin("context")
    await guest.rests()
    divider = guest.log.get_by_role("button", name=re.compile(r"shorter version of what is above \(.62 %, medium\)"))
    await divider.press("Enter")
    shortened = guest.row("Shortened for the model")
    await expect(shortened).to_contain_text("Old messages are replaced by a summary")
    await expect(shortened).to_contain_text("The keeper wants a fog horn.")
    await expect(guest.log).to_contain_text("A conversation outgrows what a model can take in at once.")
    await expect(guest.row("demo-small took over from demo-large")).to_contain_text("busy")
    await guest.page.get_by_role("button", name="Context and cost").click()
    await expect(guest.page.get_by_text("Project instructions")).to_be_visible()


async def test_changed_files_are_summed_up_and_open_to_their_lines(guest: Visitor) -> None:
    await guest.begin("together")
    await guest.asked()
    await guest.approval.get_by_role("button", name="Allow all 3").click()
    await guest.rests()
    changed = guest.row("Changed 2 files")
    await changed.get_by_role("button", name="src/horn.py new +6").press("Enter")
    await expect(changed.get_by_role("group", name="Changes to src/horn.py")).to_contain_text("QUIET_UNTIL_H = 6")
    await guest.unfold()
    await guest.row(re.compile("^Tool: Edited LOG.md")).get_by_role("button").first.press("Enter")
    await expect(guest.row(re.compile("^Tool: Edited LOG.md"))).to_contain_text("Horn: 3 s in 30.")


async def test_spending_limit_is_asked_about_as_money(guest: Visitor) -> None:
    await guest.begin("spending")
    card = guest.page.get_by_role("region", name="Spending limit reached")
    await expect(card).to_contain_text("This conversation has cost $1.03.")
    await expect(card.get_by_role("button", name="Go on")).to_be_enabled()
    await guest.press("Alt+3")
    await expect(guest.log).to_contain_text("a real agent would stop here")
