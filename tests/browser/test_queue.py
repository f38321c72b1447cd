"""Messages sent while the agent works: shown in their order, changed and removed until their turn comes."""

import re

from playwright.async_api import expect

from tests.browser.visitor import Visitor
from tests.provider.server import ScriptedProvider


async def test_queued_messages_are_edited_removed_and_delivered_in_order(
    ada: Visitor, provider: ScriptedProvider
) -> None:
    await ada.begin("!say Busy.\n!gate queue")
    await provider.gates.reached("queue")
    for text in ("first in line", "second, to be changed", "third, to be removed", "fourth in line"):
        await ada.send(text)
    items = ada.queue.get_by_role("listitem")
    await expect(items).to_contain_text(["first in line", "second, to be changed", "third, to be removed", "fourth"])

    await items.nth(1).get_by_role("button", name="Edit queued message").click()
    field = ada.queue.get_by_role("textbox", name="Edit queued message")
    await field.fill("second, changed")
    await field.press("Enter")
    await items.filter(has_text="third").get_by_role("button", name="Remove from queue").click()
    await expect(items).to_contain_text(["first in line", "second, changed", "fourth in line"])
    await ada.page.reload()
    await expect(items).to_contain_text(["first in line", "second, changed", "fourth in line"])

    provider.gates.open("queue")
    await expect(ada.queue).to_have_count(0)
    await expect(ada.log).to_contain_text("You said: fourth in line")
    await ada.rests()
    asked = ada.row(re.compile("^You, "))
    await expect(asked).to_contain_text(["Busy.", "first in line", "second, changed", "fourth in line"])
    whole = await ada.read()
    assert "third, to be removed" not in whole
    assert "second, to be changed" not in whole
    answers = [whole.index(f"You said: {text}") for text in ("first", "second, changed", "fourth")]
    assert answers == sorted(answers)


async def test_held_message_waits_for_its_editor(ada: Visitor, provider: ScriptedProvider) -> None:
    await ada.begin("!say Busy.\n!gate held")
    await provider.gates.reached("held")
    await ada.send("unfinished thought")
    await expect(ada.queue).not_to_contain_text("Sending")
    await ada.queue.get_by_role("button", name="Edit queued message").click()
    field = ada.queue.get_by_role("textbox", name="Edit queued message")
    await field.fill("finished thought")
    await expect(ada.queue).to_contain_text("it waits for you")
    provider.gates.open("held")
    await ada.rests()
    await expect(field).to_have_value("finished thought")
    await field.press("Enter")
    await expect(ada.log).to_contain_text("You said: finished thought")
    assert "unfinished" not in await ada.read()
