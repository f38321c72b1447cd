"""Reading while the agent writes: the page follows its end until the reader scrolls away, and then moves nothing under them."""

import re

from playwright.async_api import expect

from tests.browser.looks import stands_still
from tests.browser.visitor import Visitor
from tests.provider.server import ScriptedProvider

FILLING = "\n".join(
    f"!say Paragraph {number} of many, so that there is something to scroll.\\n\\n" for number in range(40)
)

# The furthest a row was from where it stood when the reader stopped scrolling, looked at in every frame.
WATCH = """() => {
  const log = document.querySelector("[role=log]");
  const row = [...log.querySelectorAll("article p")].find(one => one.getBoundingClientRect().top > 150);
  const top = row.getBoundingClientRect().top;
  window.movedPx = 0;
  const frame = () => {
    window.movedPx = Math.max(window.movedPx, Math.abs(row.getBoundingClientRect().top - top));
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""


async def test_reader_further_up_is_not_moved_by_what_is_written_below(
    ada: Visitor, provider: ScriptedProvider
) -> None:
    await ada.begin(f"{FILLING}\n!gate reading\n!long 600\n!say The very end.")
    await provider.gates.reached("reading")
    last = ada.log.get_by_text("Paragraph 39 of many")
    await expect(last.last).to_be_in_viewport()

    await ada.log.hover()
    await ada.page.mouse.wheel(0, -900)
    to_end = ada.page.get_by_role("button", name=re.compile("To the end|new$"))
    await expect(to_end).to_be_visible()
    await stands_still(ada.page)
    await ada.page.evaluate(WATCH)
    provider.gates.open("reading")
    await ada.rests()
    await stands_still(ada.page)
    assert await ada.page.evaluate("window.movedPx") < 1
    await expect(ada.log.get_by_text("The very end.").last).not_to_be_in_viewport()

    await to_end.click()
    await expect(ada.log.get_by_text("The very end.").last).to_be_in_viewport()
    await expect(to_end).to_have_count(0)
    await ada.send("!say Still following.")
    await expect(ada.row(re.compile("^Agent")).last).to_contain_text("Still following.")
    await expect(ada.row(re.compile("^Agent")).last).to_be_in_viewport()


async def test_opened_row_stays_open_when_it_was_scrolled_away_and_when_others_change(
    ada: Visitor, provider: ScriptedProvider
) -> None:
    # Twice: once is not more than the list keeps ready above its window.
    await ada.begin(f"!think A thought to be kept open.\n{FILLING}\n{FILLING}\n!gate open\n!say The very end.")
    await provider.gates.reached("open")
    await expect(ada.log.get_by_text("Paragraph 39 of many").last).to_be_in_viewport()
    await stands_still(ada.page)
    await ada.log.focus()
    await ada.press("Shift+G")
    thought = ada.row(re.compile("^Thought"))
    await expect(thought).to_be_in_viewport()
    await stands_still(ada.page)
    await thought.get_by_role("button").press("Enter")
    await expect(thought).to_contain_text("A thought to be kept open.")
    await ada.log.focus()
    await ada.press("g")
    await expect(thought).to_have_count(0)
    provider.gates.open("open")
    await ada.rests()
    await ada.press("Shift+G")
    await expect(thought).to_contain_text("A thought to be kept open.")


# Rows that were taken away and made anew.
MADE_AGAIN = """() => {
  const gone = new Set();
  const keys = nodes => [...nodes].flatMap(one => [...(one.querySelectorAll?.('[data-key]') ?? [])]).map(row => row.dataset.key);
  window.madeAgain = [];
  new MutationObserver(changes => changes.forEach(({addedNodes, removedNodes}) => {
    keys(removedNodes).forEach(key => gone.add(key));
    window.madeAgain.push(...keys(addedNodes).filter(key => gone.has(key)));
  })).observe(document.querySelector('[role=log]'), {subtree: true, childList: true});
}"""


async def test_following_what_is_written_makes_no_row_above_it_anew(ada: Visitor, provider: ScriptedProvider) -> None:
    await ada.begin("!say Answer 0.")
    for number in range(1, 8):
        await ada.rests()
        await ada.send(f"!say Answer {number}.")
        await expect(ada.log).to_contain_text(f"Answer {number}.")
    await ada.rests()
    await ada.send("\n".join(f"!gate {number}\n!say Line {number}\\n\\n" for number in range(6)))
    await provider.gates.reached("0")
    await stands_still(ada.page)
    await ada.page.evaluate(MADE_AGAIN)
    for number in range(6):
        provider.gates.open(f"{number}")
        await expect(ada.log.get_by_text(f"Line {number}", exact=True)).to_be_in_viewport()
        await stands_still(ada.page)
    await ada.rests()
    assert await ada.page.evaluate("window.madeAgain") == []


SELECT = "text => getSelection().setBaseAndExtent(text.firstChild, 0, text.firstChild, 5)"


async def test_selection_stays_while_its_paragraph_grows(ada: Visitor, provider: ScriptedProvider) -> None:
    await ada.begin("!long 40\n!gate selecting\n!say and *more* of `it`.")
    await provider.gates.reached("selecting")
    await expect(ada.log).to_contain_text("word40")
    await ada.row(re.compile("^Agent")).locator("p").first.evaluate(SELECT)
    provider.gates.open("selecting")
    await expect(ada.log.locator("p code")).to_have_text("it")
    await ada.rests()
    assert await ada.page.evaluate("getSelection().toString()") == "word1"


PILLS = """() => {
  window.pillCount = 0;
  const look = () => { window.pillCount += document.querySelectorAll('.pill').length };
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true});
}"""


async def test_opening_a_row_at_the_end_offers_no_way_to_the_end(ada: Visitor) -> None:
    await ada.begin("!think A short thought.\n!say The very end.")
    await ada.rests()
    thought = ada.row(re.compile("^Thought"))
    await expect(thought).to_be_in_viewport()
    await stands_still(ada.page)
    await ada.page.evaluate(PILLS)
    await thought.get_by_role("button").press("Enter")
    await expect(thought).to_contain_text("A short thought.")
    await stands_still(ada.page)
    assert await ada.page.evaluate("window.pillCount") == 0
