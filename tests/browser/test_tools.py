"""Tools that wait for a person, over both wire formats: exactly what would run is shown, and one answer holds everywhere."""

import re

import pytest
from playwright.async_api import expect

from tests.browser.served import Palaver, Wire
from tests.browser.visitor import Visitor, Visitors


@pytest.fixture(scope="module", params=["openai", "anthropic"])
def wire(request: pytest.FixtureRequest) -> Wire:
    chosen: Wire = request.param
    return chosen


async def test_edit_waits_with_its_diff_and_happens_once_allowed(ada: Visitor, palaver: Palaver) -> None:
    roses = palaver.project / "roses.txt"
    roses.write_text("red\nwhite\n")
    await ada.begin("!edit roses.txt white => yellow")
    await expect(ada.approval).to_contain_text("change a file: roses.txt")
    await expect(ada.approval).to_contain_text("white")
    await expect(ada.approval).to_contain_text("yellow")
    assert roses.read_text() == "red\nwhite\n"

    await ada.asked()
    await ada.approval.get_by_role("button", name="Allow once").click()
    await expect(ada.approval).to_have_count(0)
    await expect(ada.log.get_by_text("Results:")).to_be_visible()
    assert roses.read_text() == "red\nyellow\n"
    await ada.rests()
    await ada.unfold()
    await ada.row(re.compile("^Tool: Edited roses.txt")).get_by_role("button").first.press("Enter")
    await expect(ada.log).to_contain_text("Allowed once · by you")


async def test_command_is_answered_in_one_window_and_seen_answered_in_the_other(
    ada: Visitor, palaver: Palaver, visitors: Visitors
) -> None:
    command = "printf 'one\\n' > answered.txt && cat answered.txt"
    conversation = await ada.begin(f"!shell {command}")
    phone = await visitors.owner(palaver.url, palaver.token)
    await phone.open(conversation)
    for visitor in (ada, phone):
        await expect(visitor.approval).to_contain_text("run a command")
        await expect(visitor.approval.get_by_label("Exactly what will run")).to_have_text(command)
    assert not (palaver.project / "answered.txt").exists()

    await phone.asked()
    await phone.press("Alt+1")
    await expect(phone.approval).to_have_count(0)
    await expect(ada.approval).to_have_count(0)
    for visitor, who in ((ada, "Allowed once · answered elsewhere"), (phone, "Allowed once · by you")):
        await expect(visitor.log.get_by_text("Results:")).to_be_visible()
        await visitor.rests()
        for _ in ("as it happened", "after a reload"):
            await visitor.unfold()
            await visitor.row(re.compile("^Tool: Ran ")).get_by_role("button").first.press("Enter")
            await expect(visitor.log).to_contain_text(who)
            await visitor.page.reload()
    assert (palaver.project / "answered.txt").read_text() == "one\n"


async def test_denied_command_is_shown_as_denied_and_never_runs(ada: Visitor, palaver: Palaver) -> None:
    await ada.begin("!shell touch denied.txt")
    await ada.asked()
    await ada.approval.get_by_role("button", name="Deny").click()
    await expect(ada.row(re.compile("^Tool: .*touch denied.txt, denied"))).to_be_visible()
    await ada.rests()
    assert not (palaver.project / "denied.txt").exists()


# Clicks and presses the moment the button is drawn, and keeps how it was shown.
HASTY = """
window.shown = [];
new MutationObserver(() => {
  const button = document.querySelector(".request .button.primary");
  if (button === null || window.shown.length > 0) return;
  window.shown.push(button.getAttribute("aria-disabled"));
  button.click();
  window.dispatchEvent(new KeyboardEvent("keydown", { code: "Digit1", altKey: true }));
}).observe(document, { childList: true, subtree: true });
"""


async def test_approval_shows_that_it_does_not_hear_yet(ada: Visitor, palaver: Palaver) -> None:
    await ada.page.add_init_script(HASTY)
    await ada.begin("!shell touch hasty.txt")
    await ada.asked()
    assert await ada.page.evaluate("window.shown") == ["true"]
    await expect(ada.approval).to_contain_text("your press was not taken for an answer")
    assert not (palaver.project / "hasty.txt").exists()
    await ada.approval.get_by_role("button", name="Deny").click()
    await expect(ada.row(re.compile("^Tool: .*touch hasty.txt, denied"))).to_be_visible()


async def test_typing_while_an_approval_arrives_never_answers_it(ada: Visitor, palaver: Palaver) -> None:
    await ada.begin("!say Ready.")
    await ada.rests()
    await ada.send("!shell touch typed.txt")
    await ada.box.press_sequentially("1 2 3 y n yes allow ", delay=30)
    await expect(ada.approval).to_be_visible()
    await expect(ada.box).to_be_focused()
    await ada.box.press_sequentially("1 2 3 y n yes allow", delay=30)
    await ada.box.press("Enter")
    await expect(ada.queue).to_contain_text("yes allow")
    await expect(ada.box).to_be_empty()
    for key in ("1", "2", "3", "y", "Enter", "Space", "Control+1", "Shift+1"):
        await ada.press(key)
    await expect(ada.approval.get_by_role("button", name="Allow once")).to_be_enabled()
    assert not (palaver.project / "typed.txt").exists()

    await ada.press("Alt+3")
    await expect(ada.row(re.compile("^Tool: .*touch typed.txt, denied"))).to_be_visible()
