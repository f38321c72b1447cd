"""Writing a message: files after an @, commands after a slash, by keyboard, by touch, and out of the way of plain text."""

import re

import pytest
from playwright.async_api import Locator, expect

from tests.browser.looks import SCHEMES, axe_findings, fits, picture
from tests.browser.served import Palaver
from tests.browser.visitor import PHONE, Visitor, Visitors

FILES = ("README.md", "src/tide/moon.py", "src/tide/table.py", "src/app.py", "tests/test_table.py", "my notes.md")


@pytest.fixture(autouse=True)
def files(palaver: Palaver) -> None:
    for name in FILES:
        path = palaver.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("water\n")


def offered(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("listbox", name="Files of the project").get_by_role("option")


def commands(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("listbox", name="Commands").get_by_role("option")


async def chosen_is(visitor: Visitor, words: str) -> None:
    """What a screen reader says is chosen is what looks chosen."""
    option = visitor.page.locator("[role=option][aria-selected=true]")
    await expect(option).to_contain_text(words)
    await expect(visitor.box).to_have_attribute("aria-activedescendant", await option.get_attribute("id") or "none")


@pytest.mark.parametrize("keys", ["Enter", "Control+Enter", "Meta+Enter"])
async def test_first_message_is_sent_by_enter_with_and_without_the_command_key(ada: Visitor, keys: str) -> None:
    await ada.go()
    await ada.box.fill("!say Good morning.")
    await ada.box.press(keys)
    await expect(ada.row(re.compile("^Agent"))).to_contain_text("Good morning.")


async def test_file_is_found_by_a_part_of_its_path_and_put_into_the_message(ada: Visitor) -> None:
    await ada.begin("Good morning")
    await ada.rests()
    await ada.box.press_sequentially("look at @")
    await expect(offered(ada).filter(has_text="README.md")).to_be_visible()
    await ada.box.press_sequentially("tabl")
    await expect(offered(ada)).to_have_text([re.compile(r"^table\.py"), re.compile(r"^test_table\.py")])
    await chosen_is(ada, "src/tide/")
    await ada.box.press("ArrowDown")
    await chosen_is(ada, "tests/")
    await ada.box.press("Enter")
    await expect(ada.box).to_have_value("look at @tests/test_table.py ")
    await expect(offered(ada)).to_have_count(0)
    await expect(ada.box).not_to_have_attribute("aria-activedescendant", re.compile("."))

    await ada.box.press_sequentially("and @my")
    await expect(offered(ada)).to_have_text([re.compile(r"^my notes\.md")])
    await ada.box.press("Tab")
    await expect(ada.box).to_have_value('look at @tests/test_table.py and @"my notes.md" ')
    await expect(ada.box).to_be_focused()
    await ada.box.press("Enter")
    await expect(ada.log).to_contain_text('You said: look at @tests/test_table.py and @"my notes.md"')


async def test_folder_is_walked_into(ada: Visitor) -> None:
    await ada.begin("Good morning")
    await ada.rests()
    await ada.box.press_sequentially("@sr")
    await chosen_is(ada, "src/")
    await ada.box.press("Enter")
    await expect(ada.box).to_have_value("@src/")
    await chosen_is(ada, "tide/")
    await ada.box.press("ArrowDown")
    await ada.box.press("Enter")
    await expect(ada.box).to_have_value("@src/app.py ")


async def test_escape_closes_the_list_and_leaves_the_words(ada: Visitor) -> None:
    await ada.begin("Good morning")
    await ada.rests()
    await ada.box.press_sequentially("@tabl")
    await expect(offered(ada)).to_have_count(2)
    await ada.box.press("Escape")
    await expect(offered(ada)).to_have_count(0)
    await ada.box.press_sequentially("e")
    await expect(offered(ada)).to_have_count(0)
    await ada.box.press("Enter")
    await expect(ada.log).to_contain_text("You said: @table")


@pytest.mark.parametrize("words", ["@nobody thanks", "@nobody-at-all", "/usr/lib is full", "/compact please", "half @"])
async def test_what_matches_nothing_is_sent_as_it_is(ada: Visitor, words: str) -> None:
    await ada.begin("Good morning")
    await ada.rests()
    await ada.box.press_sequentially(words)
    if words.endswith("@"):
        await expect(offered(ada).first).to_be_visible()
        await ada.box.press("Escape")
    await expect(ada.page.get_by_role("option")).to_have_count(0)
    await ada.box.press("Enter")
    await expect(ada.log).to_contain_text(f"You said: {words}")


async def test_slash_offers_the_commands_of_the_palette(ada: Visitor) -> None:
    await ada.begin("Good morning")
    await ada.rests()
    await ada.box.press_sequentially("/")
    await expect(commands(ada).filter(has_text="Answer again")).to_be_visible()
    await expect(commands(ada).filter(has_text="Theme: dark")).to_have_count(1)
    await ada.box.press_sequentially("ren")
    await expect(commands(ada)).to_have_text(["Rename conversation"])
    await chosen_is(ada, "Rename conversation")
    await ada.box.press("Enter")
    await expect(ada.page.get_by_role("textbox", name="Title")).to_be_focused()
    await expect(ada.box).to_have_value("")
    assert "/ren" not in await ada.read()


async def test_completion_works_before_the_first_message(ada: Visitor) -> None:
    await ada.go()
    await ada.box.press_sequentially("@moon")
    await expect(offered(ada)).to_have_text([re.compile(r"^moon\.py")])
    await ada.box.press("Enter")
    await expect(ada.box).to_have_value("@src/tide/moon.py ")
    await ada.box.fill("")
    await ada.box.press_sequentially("/show keys")
    await chosen_is(ada, "Show keys")
    await ada.box.press("Enter")
    await expect(ada.page.get_by_role("dialog", name="Keyboard")).to_be_visible()


@pytest.mark.parametrize("sign", ["@", "/"])
async def test_completion_is_clean_for_axe_and_fits_a_phone(
    visitors: Visitors, palaver: Palaver, ada: Visitor, sign: str
) -> None:
    name = "files" if sign == "@" else "commands"
    await ada.begin("Good morning")
    await ada.rests()
    await ada.box.press_sequentially(sign)
    await expect(ada.page.get_by_role("option").first).to_be_visible()
    for scheme in SCHEMES:
        assert not await axe_findings(ada.page, scheme)
        await picture(ada.page, f"complete-{name}-{scheme}", scheme)

    phone = await visitors.owner(palaver.url, palaver.token, PHONE, has_touch=True)
    await phone.begin("Good evening")
    await phone.rests()
    await phone.box.tap()
    await phone.box.press_sequentially(f"{sign}a")
    option = phone.page.get_by_role("option").first
    await expect(option).to_be_visible()
    await fits(phone.page)
    assert not await axe_findings(phone.page, "light")
    await picture(phone.page, f"complete-{name}-phone")
    box = await option.bounding_box()
    assert box is not None
    assert box["height"] >= 43
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE[0]
    await phone.page.get_by_role("option").filter(has_text="app.py" if sign == "@" else "Answer again").tap()
    if sign == "@":
        await expect(phone.box).to_have_value("@src/app.py ")
    else:
        await expect(phone.box).to_have_value("")
    await phone.rests()
