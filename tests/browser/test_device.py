"""This device: its notices and what they tell, the way to a phone, the copy; and the door with why it is closed."""

import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Locator, expect
from playwright.async_api import TimeoutError as PlaywrightTimeout

from tests.browser.looks import SCHEMES, axe_findings, fits, picture, shown_in_passing
from tests.browser.served import Palaver, palaver_serving
from tests.browser.visitor import PHONE, Visitor, Visitors
from tests.provider.server import ScriptedProvider

SIGNED_OUT = "status of 401"

WATCHED = """
window.notices = [];
window.Notification = class {
  static permission = "default";
  static async requestPermission() { this.permission = "granted"; return "granted"; }
  constructor(title, options) { Object.assign(this, { title, ...options }); window.notices.push(this); }
  close() {}
};
Object.defineProperty(document, "hidden", { get: () => window.away === true });
window.leave = (away) => { window.away = away; document.dispatchEvent(new Event("visibilitychange")); };
"""
"""A browser whose system notices can be looked at: a real one shows them outside of the page."""


def section(visitor: Visitor, name: str) -> Locator:
    return visitor.page.get_by_role("region", name=name, exact=True)


async def told(visitor: Visitor) -> list[list[str]]:
    found: list[list[str]] = await visitor.page.evaluate("window.notices.map(({ title, body }) => [title, body])")
    return found


async def until_told(visitor: Visitor, title: str) -> str:
    """What the notice with this title says, once it is there."""
    try:
        await visitor.page.wait_for_function("title => window.notices.some(known => known.title === title)", arg=title)
    except PlaywrightTimeout:
        raise AssertionError(f"“{title}” is not among {await told(visitor)}") from None
    return next(body for known, body in await told(visitor) if known == title)


async def at_gate(ada: Visitor, provider: ScriptedProvider, name: str) -> str:
    """A conversation at work, until the gate is opened; its page knows that it works."""
    conversation = await ada.begin(f"!say Soon.\n!gate {name}")
    await provider.gates.reached(name)
    await expect(ada.stop_button).to_be_visible()
    return conversation


async def test_ends_of_turns_are_told_while_nobody_looks_and_muted_kinds_are_not(
    ada: Visitor, provider: ScriptedProvider
) -> None:
    await ada.page.add_init_script(WATCHED)
    await ada.go("/device")
    notices = section(ada, "Notices")
    await expect(notices).to_contain_text("Muted: nothing is shown")
    await expect(notices.get_by_role("checkbox", name="A turn failed")).to_be_disabled()
    await notices.get_by_role("checkbox", name="Notify me on this device").check()
    await expect(notices.get_by_role("checkbox", name="A turn failed")).to_be_enabled()
    await notices.get_by_role("button", name="Show one now").click()
    await until_told(ada, "Palaver")
    assert await told(ada) == [["Palaver", "This is how a notice looks."]]

    await at_gate(ada, provider, "dusk")
    await ada.page.evaluate("Notification.permission = 'granted'; leave(true)")
    provider.gates.open("dusk")
    assert "Soon." in await until_told(ada, "Assistant is done")
    assert len(await told(ada)) == 1
    await expect(ada.page).to_have_title(re.compile("^• "))
    await ada.page.evaluate("leave(false)")
    await expect(ada.page).not_to_have_title(re.compile("^• "))

    await ada.go("/device")
    await ada.page.evaluate("Notification.permission = 'granted'")
    await notices.get_by_role("checkbox", name="Notify me on this device").uncheck()
    await notices.get_by_role("checkbox", name="Notify me on this device").check()
    await notices.get_by_role("checkbox", name="A turn is done").uncheck()
    await at_gate(ada, provider, "dawn")
    await ada.page.evaluate("Notification.permission = 'granted'; leave(true)")
    provider.gates.open("dawn")
    # Unseen, though nothing was shown.
    await expect(ada.page).to_have_title(re.compile("^• "))
    assert await told(ada) == []


async def test_failed_turn_is_told_as_such(ada: Visitor, provider: ScriptedProvider) -> None:
    await ada.page.add_init_script(WATCHED + "localStorage.setItem('palaver.notices', 'on');")
    await at_gate(ada, provider, "noon")
    await ada.page.evaluate("Notification.permission = 'granted'; leave(true)")
    command = {"type": "send_message", "content": "!status 403"}
    await ada.request.post(f"{ada.url}/api/conversations/{ada.conversation}/commands", data=command)
    provider.gates.open("noon")
    await until_told(ada, "Assistant failed")


@pytest.fixture
async def alone(tmp_path_factory: pytest.TempPathFactory, provider: ScriptedProvider) -> AsyncIterator[Palaver]:
    """One whose token may be changed."""
    async with palaver_serving(tmp_path_factory.mktemp("alone"), provider.url) as palaver:
        yield palaver


async def test_code_of_the_picture_signs_a_phone_in_once_with_the_rights_that_were_chosen(
    ada: Visitor, visitors: Visitors
) -> None:
    visitors.complaints.expect(SIGNED_OUT)
    await ada.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await ada.go("/device")
    phone = section(ada, "Open on your phone")
    await expect(phone).to_contain_text("This address works on this machine only.")
    await phone.get_by_label("The phone may").select_option("observer")
    await phone.get_by_role("button", name="Show the code").click()
    await expect(phone.get_by_role("img", name="QR code of a link that signs in once")).to_be_visible()
    await expect(phone).to_contain_text(re.compile(r"Valid for \d+ s"))
    await picture(ada.page, "device-phone")
    async with shown_in_passing(ada.page, "button", "Copied"):
        await phone.get_by_role("button", name="Copy the link instead").click()
    link = str(await ada.page.evaluate("navigator.clipboard.readText()"))

    bob = await visitors.stranger(ada.url, PHONE)
    await bob.page.goto(link)
    await expect(bob.page.get_by_role("button", name="Show conversations")).to_be_visible()
    await expect(bob.page).to_have_url(f"{ada.url}/")
    await bob.go("/device")
    await expect(section(bob, "Signed in")).to_contain_text("As owner, role observer")
    await expect(section(bob, "Open on your phone")).to_contain_text(
        "Only the server's owner can let another device in"
    )
    again = await visitors.stranger(ada.url, PHONE)
    await again.page.goto(link)
    await expect(again.page.get_by_role("alert")).to_contain_text("used before")


async def test_address_for_the_phone_is_checked(ada: Visitor) -> None:
    await ada.go("/device")
    phone = section(ada, "Open on your phone")
    await phone.get_by_label("Address of this server").fill("box")
    await expect(phone.get_by_role("alert")).to_contain_text("This is no address")
    await expect(phone.get_by_role("button", name="Show the code")).to_be_disabled()
    await phone.get_by_label("Address of this server").fill("https://box.example")
    await expect(phone).not_to_contain_text("works on this machine only")
    await expect(phone.get_by_role("button", name="Show the code")).to_be_enabled()


async def test_door_says_why_one_stands_before_it(alone: Palaver, visitors: Visitors) -> None:
    visitors.complaints.expect(SIGNED_OUT, "ERR_CONNECTION_REFUSED", "WebSocket connection")
    ada = await visitors.owner(alone.url, alone.token)
    await ada.go("/device")
    await section(ada, "Signed in").get_by_role("button", name="Sign out").click()
    door = ada.page.get_by_role("main")
    await expect(door).to_contain_text("You signed out.")
    await expect(door).to_contain_text("Palaver 0.")
    await picture(ada.page, "door-left")
    await ada.page.reload()
    await expect(door).to_contain_text("Open the link the server printed")
    await picture(ada.page, "door-idle")
    field = ada.page.get_by_label("Access token")
    await field.fill(alone.token)
    await field.press("Enter")
    await expect(ada.list).to_be_visible()

    await alone.stop()
    (alone.data / "token").write_text("y" * 43 + "\n")
    await alone.start()
    await ada.page.reload()
    await expect(door).to_contain_text("Your sign-in has ended")
    for scheme in SCHEMES:
        await picture(ada.page, f"door-expired-{scheme}", scheme)
        assert not await axe_findings(ada.page, scheme)


async def test_address_with_nothing_at_it_is_said_in_words(ada: Visitor) -> None:
    ada.complaints.expect("status of 404")
    for path in ("/nowhere/at%20all", "/c/no id"):
        await ada.go(path)
        await expect(ada.page.get_by_role("heading", name="There is nothing at this address")).to_be_visible()
    await ada.go("/nowhere/at%20all")
    await expect(ada.page.get_by_role("main")).to_contain_text("/nowhere/at all")
    for scheme in SCHEMES:
        await picture(ada.page, f"not-found-{scheme}", scheme)
        assert not await axe_findings(ada.page, scheme)
    await ada.page.get_by_role("link", name="To the start").click()
    await expect(ada.page.get_by_role("heading", name="What shall we work on?")).to_be_visible()


@pytest.mark.parametrize("size", [(1280, 1400), PHONE], ids=["desktop", "phone"])
async def test_device_is_clean_for_axe_and_fits(palaver: Palaver, visitors: Visitors, size: tuple[int, int]) -> None:
    ada = await visitors.owner(palaver.url, palaver.token, size)
    await ada.go("/device")
    await expect(section(ada, "Signed in")).to_be_visible()
    await section(ada, "Open on your phone").get_by_role("button", name="Show the code").click()
    await expect(ada.page.get_by_role("img", name=re.compile("QR"))).to_be_visible()
    for scheme in SCHEMES:
        findings = await axe_findings(ada.page, scheme)
        await picture(ada.page, f"device-{size[0]}-{scheme}", scheme)
        assert not findings, f"{scheme}:\n" + "\n".join(findings)
    await fits(ada.page)
