"""Messages sent while the agent works: shown in their order, changed and removed until their turn comes."""

import re

from playwright.async_api import expect

from tests.browser.looks import fits, picture
from tests.browser.served import Palaver
from tests.browser.visitor import PHONE, Visitor, Visitors
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


async def test_queued_message_is_sent_into_the_running_turn(ada: Visitor, provider: ScriptedProvider) -> None:
    await ada.begin("!say Busy.\n!gate steered")
    await provider.gates.reached("steered")
    for text in ("waits its turn", "cannot wait"):
        await ada.send(text)
    items = ada.queue.get_by_role("listitem")
    urgent = items.filter(has_text="cannot wait")
    await urgent.get_by_role("button", name="Send into the running turn").click()
    await expect(items.filter(has_text="steers the running turn")).to_contain_text("cannot wait")
    await expect(items).to_have_count(2)
    await expect(urgent.get_by_role("button", name="Send into the running turn")).to_have_count(0)
    provider.gates.open("steered")
    await expect(ada.queue).to_have_count(0)
    await ada.rests()
    whole = await ada.read()
    assert whole.count("You said: cannot wait") == 1
    assert whole.index("You said: cannot wait") < whole.index("You said: waits its turn")


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


async def test_stop_that_holds_the_queue_keeps_it_until_it_is_let_go_in_order(
    ada: Visitor, provider: ScriptedProvider, palaver: Palaver, visitors: Visitors
) -> None:
    await ada.begin("!say Busy.\n!gate paused")
    await provider.gates.reached("paused")
    hold = ada.page.get_by_role("button", name="Stop and hold the queue")
    await expect(hold).to_have_count(0)
    for text in ("first of the held", "second of the held"):
        await ada.send(text)
    items = ada.queue.get_by_role("listitem")
    await expect(items).to_contain_text(["first of the held", "second of the held"])
    await expect(ada.queue).not_to_contain_text("Sending")
    await hold.click()
    await expect(ada.row(re.compile("^Interrupted by you"))).to_be_visible()
    await expect(ada.queue.get_by_role("status")).to_contain_text("Paused: you stopped the agent.")
    await expect(items).to_contain_text(["held back", "held back"])
    await ada.rests()
    provider.gates.open("paused")

    await ada.page.reload()
    await expect(ada.queue.get_by_role("status")).to_contain_text("Paused: you stopped the agent.")
    phone = await visitors.owner(palaver.url, palaver.token)
    await phone.open(ada.conversation)
    await expect(phone.queue.get_by_role("status")).to_contain_text("stopped from another client")

    await ada.send("by itself")
    await expect(ada.log).to_contain_text("You said: by itself")
    await ada.rests()
    await expect(items).to_contain_text(["first of the held", "second of the held"])
    await items.nth(1).get_by_role("button", name="Remove from queue").click()
    await ada.queue.get_by_role("button", name="Put back").click()
    await expect(items).to_contain_text(["first of the held", "second of the held"])
    await expect(items.nth(1)).to_contain_text("held back")
    await ada.queue.get_by_role("button", name="Let all go").click()
    await expect(ada.log).to_contain_text("You said: second of the held")
    await expect(ada.queue).to_have_count(0)
    await ada.rests()
    whole = await ada.read()
    said = [whole.index(f"You said: {text}") for text in ("by itself", "first of the held", "second of the held")]
    assert said == sorted(said)


async def test_held_queue_is_reached_by_keys_and_an_edit_does_not_send_it(
    ada: Visitor, provider: ScriptedProvider
) -> None:
    await ada.begin("!say Busy.\n!gate keys")
    await provider.gates.reached("keys")
    for text in ("one to change", "another one"):
        await ada.send(text)
    items = ada.queue.get_by_role("listitem")
    await expect(items).to_contain_text(["one to change", "another one"])
    await expect(ada.queue).not_to_contain_text("Sending")
    await ada.command("Stop and hold the queue")
    await expect(ada.queue.get_by_role("status")).to_contain_text("Paused: you stopped the agent.")
    await ada.rests()
    provider.gates.open("keys")

    await items.first.get_by_role("button", name="Edit queued message").click()
    field = ada.queue.get_by_role("textbox", name="Edit queued message")
    await field.fill("one, changed")
    await field.press("Enter")
    await expect(items.first).to_contain_text("one, changed")
    await expect(items.first).to_contain_text("held back")
    await ada.rests()
    await expect(items).to_have_count(2)

    await items.last.get_by_role("button", name="Let it go").click()
    await expect(ada.log).to_contain_text("You said: another one")
    await ada.rests()
    await expect(items).to_contain_text(["one, changed"])
    await ada.command("Let all held messages go")
    await expect(ada.log).to_contain_text("You said: one, changed")
    await expect(ada.queue).to_have_count(0)


async def test_message_box_has_room_for_every_choice_on_a_phone(
    palaver: Palaver, visitors: Visitors, provider: ScriptedProvider
) -> None:
    ada = await visitors.owner(palaver.url, palaver.token, size=PHONE, has_touch=True, is_mobile=True)
    await ada.begin("!say Busy.\n!gate narrow")
    await provider.gates.reached("narrow")
    await ada.send("one that waits")
    await expect(ada.queue).to_contain_text("one that waits")
    await ada.box.fill("half written")
    bar = ada.page.get_by_role("main")
    for name in ("Steer now", "Stop and hold the queue", "Stop", "Queue"):
        await expect(bar.get_by_role("button", name=re.compile(f"^{name}( |$)")).first).to_be_visible()
    await fits(ada.page)
    await picture(ada.page, "queue-choices-phone")
    provider.gates.open("narrow")
