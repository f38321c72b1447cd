"""Coming back: what is new is marked where one left, a link leads to its place each time, and nothing moves meanwhile."""

import re

from playwright.async_api import Page, expect

from tests.browser.looks import stands_still
from tests.browser.served import Palaver
from tests.browser.visitor import Visitor, Visitors
from tests.provider.server import ScriptedProvider

NEW = "New since you left"

# The page is put away, or looked at again: a browser without a window never does either by itself.
SHOWN = """shown => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => !shown });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


async def look(page: Page, shown: bool) -> None:
    await page.evaluate(SHOWN, shown)


async def test_what_came_while_one_was_elsewhere_is_marked_until_one_leaves(
    ada: Visitor, palaver: Palaver, visitors: Visitors
) -> None:
    conversation = await ada.begin("!say What was read.")
    await ada.rests()
    await expect(ada.log).not_to_contain_text(NEW)
    other = await ada.begin("Elsewhere")
    await ada.rests()

    phone = await visitors.owner(palaver.url, palaver.token)
    await phone.open(conversation)
    await phone.send("!say What is new.")
    await expect(phone.row(re.compile("^Agent")).last).to_contain_text("What is new.")
    await phone.rests()

    # By key: the row moves to the top of the list as what is new comes.
    await ada.list.get_by_role("link", name=re.compile("What was read")).press("Enter")
    await expect(ada.log).to_contain_text(NEW)
    for _ in ("as it was opened", "after a reload"):
        read, new = (await ada.read()).split(NEW)
        assert "What was read." in read
        assert "What is new." in new
        await ada.page.reload()
        await expect(ada.log).to_contain_text(NEW)

    await ada.send("!say Nothing new in this.")
    await expect(ada.row(re.compile("^Agent")).last).to_contain_text("Nothing new in this.")
    assert (await ada.read()).count(NEW) == 1
    await ada.open(other)
    await ada.open(conversation)
    await expect(ada.row(re.compile("^Agent")).last).to_contain_text("Nothing new in this.")
    await expect(ada.log).not_to_contain_text(NEW)


async def test_what_came_while_the_page_was_put_away_is_marked(ada: Visitor, provider: ScriptedProvider) -> None:
    await ada.begin("!say Before.\n!gate away\n---\n!say Not after.")
    await provider.gates.reached("away")
    await expect(ada.log).to_contain_text("Before.")
    await look(ada.page, shown=False)
    provider.gates.open("away")
    await ada.rests()
    await ada.send("!say While nobody looked.")
    await expect(ada.row(re.compile("^Agent")).last).to_contain_text("While nobody looked.")
    await ada.rests()
    await expect(ada.log).not_to_contain_text(NEW)
    await look(ada.page, shown=True)
    await expect(ada.log).to_contain_text(NEW)
    assert "While nobody looked." in (await ada.read()).split(NEW)[1]


FILLING = "\n".join(f"!say Paragraph {number}, so that there is something to scroll.\\n\\n" for number in range(40))


async def test_link_to_a_place_leads_there_each_time(ada: Visitor) -> None:
    await ada.begin(f"!say A beginning with a cormorant.\\n\\n\n{FILLING}")
    await ada.rests()
    place = ada.log.get_by_text("A beginning with a cormorant.").last
    await ada.search_field.fill("cormorant")
    hit = ada.list.get_by_role("link").filter(has=ada.page.locator("mark")).filter(has_text="Agent").first
    for _ in range(3):
        await hit.click()
        await expect(place).to_be_in_viewport()
        await stands_still(ada.page)
        await ada.log.focus()
        await ada.press("g")
        await expect(ada.log.get_by_text("Paragraph 39").last).to_be_in_viewport()
        await expect(place).not_to_be_in_viewport()


async def test_way_back_from_a_branch_leads_to_its_message(ada: Visitor) -> None:
    source = await ada.begin("!say Where it began.")
    await ada.rests()
    await ada.send(FILLING)
    await ada.rests()
    await ada.log.focus()
    await ada.press("Shift+G")
    await stands_still(ada.page)
    first = ada.row(re.compile("^Agent")).first
    await expect(first).to_contain_text("Where it began.")
    await first.get_by_role("button", name="Message actions").click()
    await ada.page.get_by_role("menuitem", name="Branch from here").click()
    await expect(ada.page).not_to_have_url(re.compile(source))
    await ada.page.get_by_role("banner").get_by_role("link", name=re.compile("^Branch of")).click()
    await expect(ada.page).to_have_url(re.compile(f"/c/{source}#m="))
    await expect(ada.log.get_by_text("Where it began.").last).to_be_in_viewport()
