"""Menus: they stay inside a window that becomes smaller, and say to a person what one chooses between."""

import asyncio
import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.looks import FRAME, SCHEMES, fits, picture
from tests.browser.visitor import DESKTOP, PHONE, Visitor

WAIT_S = 20.0
LOW = (DESKTOP[0], 600)

# In a window of that width every open menu is whole.
INSIDE = """width => innerWidth === width && [...document.querySelectorAll('.menu:popover-open')]
  .map(menu => menu.getBoundingClientRect())
  .every(({left, right, top, bottom}) => left >= 0 && right <= innerWidth && top >= 0 && bottom <= innerHeight)"""


async def stays_inside(page: Page, size: tuple[int, int]) -> None:
    width, height = size
    await page.set_viewport_size({"width": width, "height": height})
    async with asyncio.timeout(WAIT_S):
        while not await page.evaluate(INSIDE, width):
            await page.evaluate(FRAME)


@pytest.mark.parametrize("name", ["Conversation actions", "Mode: Ask first", "Context and cost"])
async def test_open_menu_stays_inside_a_window_that_becomes_narrow_and_wide_again(ada: Visitor, name: str) -> None:
    await ada.begin("Good morning")
    await ada.rests()
    await ada.page.get_by_role("button", name=name).click()
    await expect(ada.page.locator(".menu:popover-open")).to_be_visible()
    await stays_inside(ada.page, PHONE)
    await fits(ada.page)
    await stays_inside(ada.page, DESKTOP)
    await ada.page.get_by_role("button", name=name).click()
    await expect(ada.page.locator(".menu:popover-open")).to_be_visible()
    # As the keyboard of a phone takes and gives room.
    await stays_inside(ada.page, LOW)
    await expect(ada.page.locator(".menu:popover-open")).to_be_visible()


async def test_meter_that_was_pointed_at_is_kept_by_a_click_and_closed_by_the_next(ada: Visitor) -> None:
    await ada.begin("Good morning")
    await ada.rests()
    meter, box = ada.page.get_by_role("button", name="Context and cost"), ada.page.locator(".menu:popover-open")
    await meter.hover()
    await expect(box).to_be_visible()
    await meter.click()
    assert await box.count() == 1
    await meter.click()
    await expect(box).to_have_count(0)


async def test_agents_to_choose_from_say_what_they_answer_with(ada: Visitor) -> None:
    await ada.go()
    await ada.page.get_by_role("button", name=re.compile("^Agent: ")).click()
    agent = ada.page.get_by_role("menuitemradio", name=re.compile("^Assistant"))
    await expect(agent).to_contain_text("Answers with the server's model")
    menu = ada.page.get_by_role("menu")
    await expect(menu).not_to_contain_text(re.compile(r"\bapi\b"))
    # What another program needs is said without the long way to it.
    await expect(menu).not_to_contain_text("site-packages")
    for scheme in SCHEMES:
        await picture(ada.page, f"agent-menu-{scheme}", scheme)
