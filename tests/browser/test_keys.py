"""Without a mouse: every part of the page is reached, read, answered and stopped by keys alone."""

import re

from playwright.async_api import expect

from tests.browser.served import Palaver
from tests.browser.visitor import Visitor
from tests.provider.server import ScriptedProvider


async def walk_to_the_log(visitor: Visitor) -> None:
    """F6 goes round the regions; five are the most there are between two places."""
    for _ in range(6):
        await visitor.press("F6")
        if await visitor.log.evaluate("log => log === document.activeElement"):
            return
    raise AssertionError("F6 never reaches the transcript")


async def test_transcript_shows_a_ring_to_the_keyboard_alone(ada: Visitor) -> None:
    await ada.begin("!say Ready.")
    await ada.rests()
    ring = ada.page.locator(".transcript-ring")
    await ada.row(re.compile("^Agent")).click()
    await expect(ada.box).not_to_be_focused()
    await expect(ring).to_have_css("border-top-style", "none")
    await ada.box.focus()
    await walk_to_the_log(ada)
    await expect(ring).to_have_css("border-top-style", "solid")


async def test_regions_blocks_and_layers_are_reached_by_keys(ada: Visitor) -> None:
    await ada.go()
    await expect(ada.box).to_be_focused()
    await ada.page.keyboard.type("!think A quiet thought about the keys.")
    await ada.press("Shift+Enter")
    await ada.page.keyboard.type("!say Spoken.")
    await ada.press("Enter")
    await expect(ada.row(re.compile("^Agent"))).to_contain_text("Spoken.")
    await ada.rests()
    await expect(ada.box).to_be_focused()

    await walk_to_the_log(ada)
    rows = ada.log.get_by_role("article")
    await ada.press("j")
    await ada.press("k", "k", "k")
    await expect(rows.nth(0)).to_be_focused()
    await ada.press("j")
    await expect(rows.nth(1)).to_be_focused()
    await expect(rows.nth(1)).not_to_contain_text("A quiet thought")
    await ada.press("o")
    await expect(rows.nth(1)).to_contain_text("A quiet thought about the keys.")
    await ada.press("j")
    await expect(rows.nth(2)).to_be_focused()
    await ada.press("k", "o")
    await expect(rows.nth(1)).not_to_contain_text("A quiet thought")

    dialog = ada.page.get_by_role("dialog")
    await ada.press("?")
    await expect(dialog).to_contain_text("Keyboard")
    await ada.press("Escape")
    await expect(dialog).to_have_count(0)
    await ada.press("Control+k")
    await expect(dialog.get_by_role("combobox")).to_be_focused()
    await ada.page.keyboard.type("find in")
    await ada.press("Enter")
    await expect(dialog).to_have_count(0)
    field = ada.page.get_by_role("textbox", name="Find in conversation")
    await expect(field).to_be_focused()
    await ada.press("Escape")
    await expect(field).to_have_count(0)
    await ada.press("Control+f")
    await expect(field).to_be_focused()
    await ada.page.keyboard.type("spoken")
    await expect(ada.page.get_by_role("search", name="Find", exact=True)).to_contain_text("of 2")
    await ada.press("Escape")
    await expect(field).to_have_count(0)


async def test_another_conversation_is_opened_from_the_list_by_keys(ada: Visitor) -> None:
    first = await ada.begin("The first of two gardens")
    await ada.rests()
    await ada.begin("The second of two gardens")
    await ada.rests()
    await ada.command("search all")
    await expect(ada.search_field).to_be_focused()
    wanted = ada.list.get_by_role("link", name="The first of two gardens")
    for _ in range(20):
        await ada.press("Tab")
        if await wanted.evaluate("link => link === document.activeElement"):
            break
    await expect(wanted).to_be_focused()
    await ada.press("Enter")
    await expect(ada.page).to_have_url(re.compile(f"/c/{first}$"))
    await expect(ada.log).to_contain_text("You said: The first of two gardens")


async def test_approval_is_answered_and_the_agent_stopped_by_keys(
    ada: Visitor, palaver: Palaver, provider: ScriptedProvider
) -> None:
    await ada.begin("!shell touch allowed-by-key.txt")
    await ada.asked()
    await expect(ada.box).to_be_focused()
    await ada.press("Alt+1")
    await expect(ada.log).to_contain_text("Results:")
    await ada.rests()
    assert (palaver.project / "allowed-by-key.txt").exists()

    await ada.send("!say Until you press Escape.\n!gate escape")
    await provider.gates.reached("escape")
    await expect(ada.row(re.compile("^Agent")).last).to_contain_text("Until you press Escape.")
    await ada.press("Escape")
    await expect(ada.row(re.compile("^Interrupted by you"))).to_be_visible()
    await ada.rests()


async def test_buttons_of_an_approval_are_reached_by_tab(ada: Visitor, palaver: Palaver) -> None:
    await ada.begin("!shell touch denied-by-tab.txt")
    await ada.asked()
    deny = ada.approval.get_by_role("button", name="Deny")
    for _ in range(20):
        await ada.press("Shift+Tab")
        if await deny.evaluate("button => button === document.activeElement"):
            break
    await expect(deny).to_be_focused()
    await ada.press("Enter")
    await expect(ada.row(re.compile("^Tool: .*denied-by-tab.txt, denied"))).to_be_visible()
    assert not (palaver.project / "denied-by-tab.txt").exists()
