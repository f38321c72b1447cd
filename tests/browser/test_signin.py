"""Coming in: by the printed link, once; by the token; and in words when neither is accepted."""

import re

from playwright.async_api import expect

from tests.browser.served import Palaver
from tests.browser.visitor import Visitors

SIGNED_OUT = "status of 401"


async def test_printed_link_signs_in_once_and_leaves_the_address(palaver: Palaver, visitors: Visitors) -> None:
    visitors.complaints.expect(SIGNED_OUT)
    first = await visitors.stranger(palaver.url)
    await first.page.goto(palaver.link)
    await expect(first.list).to_be_visible()
    await expect(first.page).to_have_url(f"{palaver.url}/")
    await first.page.reload()
    await expect(first.list).to_be_visible()

    second = await visitors.stranger(palaver.url)
    await second.page.goto(palaver.link)
    await expect(second.page.get_by_role("alert")).to_contain_text("used before")
    await expect(second.page).to_have_url(f"{palaver.url}/")
    await expect(second.list).to_have_count(0)


async def test_pasted_token_signs_in_and_a_wrong_one_is_refused_in_words(palaver: Palaver, visitors: Visitors) -> None:
    visitors.complaints.expect(SIGNED_OUT)
    stranger = await visitors.stranger(palaver.url)
    await stranger.go()
    field = stranger.page.get_by_label("Access token")
    await field.fill("not the token")
    await field.press("Enter")
    await expect(stranger.page.get_by_role("alert")).to_contain_text("the file “token” of the data directory")
    await expect(stranger.list).to_have_count(0)

    await field.fill(f" {palaver.token}\n")
    await field.press("Enter")
    await expect(stranger.list).to_be_visible()


async def test_signing_out_forgets_the_cookie(palaver: Palaver, visitors: Visitors) -> None:
    visitors.complaints.expect(SIGNED_OUT)
    ada = await visitors.owner(palaver.url, palaver.token)
    await ada.go()
    await expect(ada.list).to_be_visible()
    await ada.command("sign out")
    await expect(ada.page.get_by_role("button", name="Sign in")).to_be_visible()
    await ada.page.reload()
    await expect(ada.page.get_by_role("button", name="Sign in")).to_be_visible()


async def test_cleared_storage_leads_to_a_sign_in_that_works(palaver: Palaver, visitors: Visitors) -> None:
    """As after an update from a release that had no page keys: the cookie is there, its key is not."""
    visitors.complaints.expect(SIGNED_OUT)
    ada = await visitors.owner(palaver.url, palaver.token)
    await ada.go()
    await expect(ada.list).to_be_visible()
    await ada.page.evaluate("localStorage.clear()")
    await ada.page.reload()
    field = ada.page.get_by_label("Access token")
    await field.fill(palaver.token)
    await field.press("Enter")
    await expect(ada.list).to_be_visible()


async def test_long_text_opens_whole_in_a_tab_of_its_own(palaver: Palaver, visitors: Visitors) -> None:
    ada = await visitors.owner(palaver.url, palaver.token)
    long = "Tides ö " * 40_000
    answer = await ada.request.post(f"{ada.url}/api/conversations", data={"message": long})
    await ada.open((await answer.json())["conversation"])
    async with ada.page.expect_popup() as opened:
        await ada.log.locator(".open-full").first.click()
    tab = await opened.value
    await tab.wait_for_url(re.compile("^blob:"))
    assert await tab.evaluate("document.body.innerText.length") > 300_000
    assert "ö" in await tab.evaluate("document.body.innerText.slice(0, 20)")
