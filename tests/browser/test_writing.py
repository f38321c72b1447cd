"""Writing a message: what is typed stays, on every device; markdown by key; pictures from the clipboard and from a folder."""

import re

import pytest
from playwright.async_api import expect

from tests.browser.served import Palaver
from tests.browser.visitor import UNHURRIED_MS, Visitor, Visitors
from tests.provider.server import ScriptedProvider

# Gives the box a picture as the clipboard or a drag does; the browser's own clipboard cannot be filled from outside.
GIVE = """(box, how) => {
  const bytes = Uint8Array.from(
    atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="),
    sign => sign.charCodeAt(0),
  );
  const files = new DataTransfer();
  files.items.add(new File([bytes], "dot.png", { type: "image/png" }));
  const event = how === "paste"
    ? new ClipboardEvent("paste", { clipboardData: files, bubbles: true, cancelable: true })
    : new DragEvent(how, { dataTransfer: files, bubbles: true, cancelable: true });
  box.dispatchEvent(event);
}"""


async def test_draft_follows_from_one_device_to_the_other_and_back(
    ada: Visitor, palaver: Palaver, visitors: Visitors
) -> None:
    conversation = await ada.begin("A conversation with a draft")
    await ada.rests()
    await ada.box.press_sequentially("Begun at the desk")
    phone = await visitors.owner(palaver.url, palaver.token)
    await phone.open(conversation)
    await expect(phone.box).to_have_value("Begun at the desk", timeout=UNHURRIED_MS)

    await phone.box.press("End")
    await phone.box.press_sequentially(", finished on the train")
    await expect(ada.box).to_have_value("Begun at the desk, finished on the train", timeout=UNHURRIED_MS)
    await ada.box.press("Enter")
    await expect(ada.log).to_contain_text("You said: Begun at the desk, finished on the train")
    await expect(ada.box).to_be_empty()
    await expect(phone.box).to_be_empty(timeout=UNHURRIED_MS)


async def test_typing_is_never_overwritten_by_another_device(
    ada: Visitor, palaver: Palaver, visitors: Visitors
) -> None:
    conversation = await ada.begin("A conversation with two writers")
    await ada.rests()
    phone = await visitors.owner(palaver.url, palaver.token)
    await phone.open(conversation)
    await expect(phone.box).to_be_visible()
    # What the desk types is not on the server when the phone's draft comes.
    await ada.page.route("**/commands", lambda route: route.abort())
    await ada.box.press_sequentially("Mine")
    await phone.box.press_sequentially("Theirs")
    third = await visitors.owner(palaver.url, palaver.token)
    await third.open(conversation)
    await expect(third.box).to_have_value("Theirs", timeout=UNHURRIED_MS)
    await expect(ada.box).to_have_value("Mine")
    ada.complaints.expect("Failed to load resource")


async def test_draft_survives_a_reload_and_a_visit_elsewhere(ada: Visitor) -> None:
    first = await ada.begin("One of two")
    await ada.rests()
    await ada.box.press_sequentially("Half a thought")
    await ada.page.reload()
    await expect(ada.box).to_have_value("Half a thought")
    await ada.begin("The other of two")
    await expect(ada.box).to_be_empty()
    await ada.open(first)
    await expect(ada.box).to_have_value("Half a thought")


# The keys that write markdown are loaded after the first picture.
KEYS_ARE_THERE = "() => performance.getEntriesByType('resource').some(({ name }) => name.includes('/format-'))"


@pytest.fixture
async def writer(ada: Visitor) -> Visitor:
    await ada.go()
    await expect(ada.box).to_be_visible()
    await ada.page.wait_for_function(KEYS_ARE_THERE)
    return ada


async def test_keys_mark_words_and_undo_takes_it_back(writer: Visitor) -> None:
    await writer.box.press_sequentially("bold")
    await writer.box.press("Control+a")
    await writer.box.press("Control+b")
    await expect(writer.box).to_have_value("**bold**")
    await writer.box.press("Control+b")
    await expect(writer.box).to_have_value("bold")
    await writer.box.press("Control+i")
    await expect(writer.box).to_have_value("*bold*")
    await writer.box.press("Control+z")
    await expect(writer.box).to_have_value("bold")
    await writer.box.press("Control+a")
    await writer.box.press("Control+e")
    await expect(writer.box).to_have_value("`bold`")


async def test_lists_and_code_go_on_by_themselves(writer: Visitor) -> None:
    await writer.box.press_sequentially("- peas")
    await writer.box.press("Shift+Enter")
    await writer.box.press_sequentially("beans")
    await writer.box.press("Shift+Enter")
    await writer.box.press("Shift+Enter")
    await writer.box.press_sequentially("```py")
    await writer.box.press("Shift+Enter")
    await writer.box.press_sequentially("print()")
    await expect(writer.box).to_have_value("- peas\n- beans\n```py\nprint()\n```")
    await writer.box.press("Enter")
    await expect(writer.row(re.compile("^You,"))).to_contain_text("- beans")


@pytest.mark.parametrize("how", ["paste", "drop"])
async def test_picture_is_shown_small_can_be_taken_out_and_is_sent(
    ada: Visitor, provider: ScriptedProvider, how: str
) -> None:
    await ada.begin("!say Ready.")
    await ada.rests()
    thumbnails = ada.page.locator(".thumbnail")
    for _ in range(2):
        await ada.box.evaluate(GIVE, how)
    await expect(thumbnails).to_have_count(2)
    await expect(ada.page.get_by_text("Uploading")).to_have_count(0)
    await ada.page.get_by_role("button", name="Remove image: dot.png").first.click()
    await expect(thumbnails).to_have_count(1)

    await ada.send("!say A dot.")
    await expect(thumbnails).to_have_count(0)
    await expect(ada.row(re.compile("^You,")).last.get_by_role("img", name="Attached image")).to_be_visible()
    await expect(ada.row(re.compile("^Agent")).last).to_contain_text("A dot.")
    assert "image_url" in str(provider.bodies[-1]["messages"])


async def test_own_message_is_named_you(ada: Visitor) -> None:
    await ada.begin("Who am I?")
    await expect(ada.row(re.compile(r"^You, \d\d:\d\d$"))).to_contain_text("Who am I?")
    await ada.page.reload()
    await expect(ada.row(re.compile(r"^You, \d\d:\d\d$"))).to_contain_text("Who am I?")
