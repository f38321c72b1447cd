"""What a turn can do beyond talking, driven on the page over a real server: decisions together and for longer, branches,
modes, settings. The model is the scripted one that does what it is told."""

import re

import pytest
from playwright.async_api import Locator, expect

from tests.browser.served import Palaver
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.anyio


def together(visitor: Visitor) -> Locator:
    return visitor.approval.get_by_role("group", name="Decide together")


async def test_waiting_calls_are_allowed_together(ada: Visitor, palaver: Palaver) -> None:
    await ada.begin("!write one.txt 1\n!write two.txt 2\n!shell touch three.txt")
    await expect(together(ada).locator(".together-item")).to_have_count(3)
    await ada.asked()
    await together(ada).get_by_role("button", name="Allow all 3").click()
    await expect(ada.approval).to_have_count(0)
    await expect(ada.log.get_by_text("Results:")).to_be_visible()
    assert [(palaver.project / name).exists() for name in ("one.txt", "two.txt", "three.txt")] == [True] * 3


async def test_waiting_calls_are_denied_together_and_nothing_runs(ada: Visitor, palaver: Palaver) -> None:
    await ada.begin("!shell touch never-1.txt\n!shell touch never-2.txt")
    await ada.asked()
    await together(ada).get_by_role("button", name="Deny all").click()
    await expect(ada.row(re.compile("never-2.txt, denied"))).to_be_visible()
    await ada.rests()
    assert not list(palaver.project.glob("never-*"))


async def test_each_waiting_call_can_be_looked_at_before_deciding(ada: Visitor) -> None:
    await ada.begin("!shell printf first\n!shell printf second")
    both = together(ada).get_by_label("Exactly what will run")
    await expect(both).to_contain_text("printf first")
    await expect(both).to_contain_text("printf second")
    one = ada.approval.get_by_label("Exactly what will run").last
    await expect(one).to_have_text("printf first")
    await together(ada).locator(".together-item").nth(1).click()
    await expect(one).to_have_text("printf second")
    await ada.asked()
    await together(ada).get_by_role("button", name="Deny all").click()
    await ada.rests()


async def test_lasting_yes_is_listed_and_can_be_taken_back(ada: Visitor) -> None:
    await ada.begin("!shell printf again")
    await ada.asked()
    await ada.press("Alt+2")
    await ada.approval.get_by_role("button", name="Always allow").click()
    await expect(ada.log.get_by_text("Results:")).to_be_visible()
    await ada.rests()

    await ada.send("!shell printf again")
    await expect(ada.log.get_by_text("Results:")).to_have_count(2)
    await ada.page.get_by_role("button", name="Mode: Ask first").click()
    await ada.page.get_by_role("menuitem", name="Always allowed here").click()
    settings = ada.page.get_by_role("dialog", name="Conversation settings")
    await expect(settings).to_contain_text("printf again")
    await settings.get_by_role("button", name="Ask again before printf again").click()
    await expect(settings.get_by_role("button", name="Ask again before")).to_have_count(0)
    await settings.get_by_role("button", name="Close").click()

    await ada.send("!shell printf again")
    await ada.asked()
    await ada.press("Alt+3")
    await ada.rests()


async def test_branch_holds_what_came_before_and_leads_back(ada: Visitor) -> None:
    parent = await ada.begin("!say The first answer.")
    await ada.rests()
    await ada.send("!say The second answer.")
    await expect(ada.log.get_by_text("The second answer.", exact=True)).to_be_visible()
    await ada.rests()

    first = ada.row(re.compile("^Agent ")).filter(has_text="The first answer.")
    await first.hover()
    await first.get_by_role("button", name="Message actions").click()
    await ada.page.get_by_role("menuitem", name="Branch from here").click()
    await ada.page.wait_for_url(lambda url: "/c/" in url and parent not in url)
    await expect(ada.log.get_by_text("The first answer.", exact=True)).to_be_visible()
    await expect(ada.log.get_by_text("The second answer.", exact=True)).to_have_count(0)
    await expect(ada.list.get_by_role("link", name=re.compile("branched from"))).to_be_visible()

    await ada.page.get_by_role("banner").get_by_role("link", name=re.compile("^Branch of")).click()
    await ada.page.wait_for_url(lambda url: parent in url)
    await expect(ada.log.get_by_text("The second answer.", exact=True)).to_be_visible()


PLAN = """!tool plan {"summary": "Paint the shed", "items": [{"title": "Buy paint"}, {"title": "Paint"}]}"""


async def plan_proposed(ada: Visitor) -> Locator:
    await ada.go()
    await ada.page.get_by_role("button", name="Mode: Ask first").click()
    await ada.page.get_by_role("menuitemradio", name="Plan only").click()
    await ada.send(PLAN)
    card = ada.page.get_by_role("region", name="The agent proposes a plan")
    await expect(card).to_contain_text("Buy paint")
    await expect(card.get_by_role("button", name="Approve")).to_be_enabled()
    return card


async def test_plan_is_approved_with_the_mode_to_go_on_in(ada: Visitor) -> None:
    card = await plan_proposed(ada)
    await card.get_by_role("radio", name="Accept edits").check()
    await card.get_by_role("button", name="Approve").click()
    await expect(ada.row("Plan approved")).to_be_visible()
    await expect(ada.page.get_by_role("button", name="Mode: Accept edits")).to_be_visible()
    await ada.rests()


async def test_plan_is_sent_back_with_words_and_stays_a_plan(ada: Visitor) -> None:
    card = await plan_proposed(ada)
    await ada.press("Alt+2")
    await card.get_by_role("textbox", name="What should change?").fill("Green paint, please.")
    await card.get_by_role("button", name="Ask for changes").click()
    await expect(ada.row("Plan sent back with changes")).to_contain_text("Green paint, please.")
    await expect(ada.page.get_by_role("button", name="Mode: Plan only")).to_be_visible()
    await ada.rests()


async def test_background_command_runs_on_until_it_is_stopped_here(ada: Visitor) -> None:
    await ada.begin("""!tool shell {"command": "sleep 300", "background": true}""")
    await ada.asked()
    await ada.press("Alt+1")
    strip = ada.page.get_by_role("region", name="Background processes")
    await expect(strip).to_contain_text("sleep 300")
    await ada.rests()
    await strip.get_by_role("button", name="Stop sleep 300").click()
    await expect(strip).to_have_count(0)
    await expect(ada.row("Process stopped")).to_contain_text("sleep 300")


async def test_message_is_answered_again_from_its_place(ada: Visitor) -> None:
    await ada.begin("!say One.")
    await ada.rests()
    await ada.send("!say Two.")
    await expect(ada.log.get_by_text("Two.", exact=True)).to_be_visible()
    await ada.rests()
    mine = ada.row(re.compile("^You, ")).first
    await mine.hover()
    await mine.get_by_role("button", name="Message actions").click()
    await ada.page.get_by_role("menuitem", name="Answer again from here").click()
    await expect(ada.log.get_by_text("Two.", exact=True)).to_have_count(0)
    await expect(ada.log.get_by_text("One.", exact=True)).to_have_count(1)
    await ada.rests()


async def test_mode_says_what_it_means_and_full_access_is_not_offered_where_it_is_not_allowed(ada: Visitor) -> None:
    await ada.begin("!say Ready.")
    await ada.rests()
    banner = ada.page.get_by_role("note")
    await ada.page.get_by_role("button", name="Mode: Ask first").click()
    await ada.page.get_by_role("menuitemradio", name="Plan only").click()
    await expect(banner).to_contain_text("changes nothing until you approve")
    await banner.get_by_role("button", name="Ask first").click()
    await expect(banner).to_have_count(0)

    await ada.page.get_by_role("button", name="Mode: Ask first").click()
    full = ada.page.get_by_role("menuitemradio", name="Full access")
    await expect(full).to_be_disabled()
    await expect(full).to_contain_text("full_enabled")
    await full.click(force=True)
    await expect(ada.page.get_by_role("dialog")).to_have_count(0)


async def test_full_access_is_asked_twice(ada: Visitor) -> None:
    await ada.may_choose_full()
    await ada.begin("!say Ready.")
    await ada.rests()
    await ada.page.get_by_role("button", name="Mode: Ask first").click()
    await ada.page.get_by_role("menuitemradio", name="Full access").click()
    confirm = ada.page.get_by_role("dialog", name="Give full access?")
    await expect(confirm).to_contain_text("without asking")
    await confirm.get_by_role("button", name="Keep asking").click()
    await expect(ada.page.get_by_role("button", name="Mode: Ask first")).to_be_visible()


async def test_settings_are_kept_and_a_refusal_stands_at_its_field(ada: Visitor) -> None:
    ada.complaints.expect("status of 400")
    await ada.begin("!say Ready.")
    await ada.rests()
    settings = ada.page.get_by_role("dialog", name="Conversation settings")
    await ada.page.get_by_role("button", name="Agent: ").click()
    await ada.page.get_by_role("menuitem", name="Model and settings").click()
    longest = settings.get_by_label("Longest answer")
    await longest.fill("1.5")
    await settings.get_by_role("button", name="Save").click()
    await expect(settings.get_by_role("alert")).to_contain_text("whole number")
    await expect(longest).to_have_attribute("aria-invalid", "true")
    await longest.fill("400")
    await settings.get_by_label("Model", exact=True).fill("scripted-2")
    await settings.get_by_role("button", name="Save").click()
    await expect(settings).to_have_count(0)

    await ada.page.reload()
    await ada.page.get_by_role("button", name="Agent: ").click()
    await ada.page.get_by_role("menuitem", name="Model and settings").click()
    await expect(settings.get_by_label("Longest answer")).to_have_value("400")
    await expect(settings.get_by_label("Model", exact=True)).to_have_value("scripted-2")
