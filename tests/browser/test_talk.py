"""Talking with an agent: what it says and thinks appears as it comes, and a reload changes nothing."""

import re

from playwright.async_api import expect

from tests.browser.visitor import Visitor
from tests.provider.server import ScriptedProvider


async def test_answer_streams_as_markdown_and_reads_the_same_after_a_reload(
    ada: Visitor, provider: ScriptedProvider
) -> None:
    await ada.begin("!think Let me see.\n!say # The first half\\n\\n- one\\n- two\\n\\n\n!gate half\n!markdown")
    await provider.gates.reached("half")
    await expect(ada.log.get_by_role("heading", name="The first half")).to_be_visible()
    await expect(ada.log.get_by_role("listitem").filter(has_text="two")).to_be_visible()
    await expect(ada.stop_button).to_be_visible()
    halfway = await ada.read()

    await ada.page.reload()
    await ada.reads(halfway)

    provider.gates.open("half")
    await expect(ada.log.get_by_role("table")).to_be_visible()
    await expect(ada.log.get_by_text("return 42")).to_be_visible()
    await ada.rests()
    whole = await ada.read()
    assert whole.startswith(halfway[:20])

    await ada.page.reload()
    await ada.reads(whole)


async def test_thinking_is_one_line_that_opens(ada: Visitor) -> None:
    await ada.begin("!think The answer must be forty-two.\n!say Forty-two.")
    await expect(ada.log.get_by_text("Forty-two.", exact=True)).to_be_visible()
    thought = ada.row(re.compile("^Thought"))
    await ada.rests()
    await expect(thought).not_to_contain_text("The answer must be")
    await thought.get_by_role("button").press("Enter")
    await expect(thought).to_contain_text("The answer must be forty-two.")


async def test_markdown_needs_nothing_that_the_policy_forbids(ada: Visitor) -> None:
    """Columns with a side, code, a picture from elsewhere, HTML: a complaint of the browser would fail the test."""
    table = "| left | right |\\n|:--|--:|\\n| 1 | 2 |"
    await ada.begin(
        f"!say {table}\\n\\n![far](https://example.invalid/x.png) <b onclick=alert(1)>bold</b>\\n\n!markdown"
    )
    await expect(ada.log.get_by_role("cell", name="2").first).to_have_css("text-align", "end")
    await expect(ada.log.get_by_text("return 42")).to_be_visible()
    await expect(ada.log).to_contain_text("<b onclick=alert(1)>bold</b>")
    await expect(ada.log.locator("img")).to_have_count(0)


async def test_title_appears_in_the_list_and_in_the_window(ada: Visitor) -> None:
    await ada.begin("Prune the roses before the frost")
    await expect(ada.log.get_by_text("You said: Prune the roses")).to_be_visible()
    await expect(ada.list.get_by_role("link", name="Prune the roses")).to_be_visible()
    await expect(ada.page).to_have_title(re.compile("Prune the roses.* · Palaver"))
