"""A message of one's own, changed in its place."""

import re

from playwright.async_api import expect

from tests.browser.visitor import Visitor

LONG = "!say Read.\n" + "wave " * 60_000 + "and the end"
"""Longer than an event may be: the page holds the beginning of it alone."""


async def test_very_long_message_is_changed_as_a_whole(ada: Visitor) -> None:
    answer = await ada.request.post(f"{ada.url}/api/conversations", data={"message": LONG})
    assert answer.ok, await answer.text()
    conversation = str((await answer.json())["conversation"])
    await ada.open(conversation)
    await ada.rests()
    mine = ada.row(re.compile("^You, "))
    await mine.get_by_role("button", name="Message actions").press("Enter")
    await ada.page.get_by_role("menuitem", name="Edit and resend").press("Enter")
    box = ada.page.get_by_role("textbox", name="Edit your message")
    await expect(box).to_have_value(LONG)

    await box.press("Enter")
    await expect(mine).to_contain_text("edited")
    await ada.rests()
    state = await (await ada.request.get(f"{ada.url}/api/conversations/{conversation}/snapshot")).json()
    kept = state["messages"][0]["blocks"][0]["blob"]["id"]
    whole = await ada.request.get(f"{ada.url}/api/blobs/{kept}")
    assert await whole.text() == LONG
