"""A server nobody has talked to: what the page offers there, and that all of it can be reached on a phone."""

import pytest
from playwright.async_api import expect

from tests.browser.looks import SCHEMES, axe_findings, fits
from tests.browser.served import Palaver
from tests.browser.visitor import PHONE, Visitor, Visitors

pytestmark = pytest.mark.anyio

CHANGE = "A change that waits for your approval"


async def test_first_steps_fit_a_phone_from_the_heading_on(visitors: Visitors, palaver: Palaver) -> None:
    visitor = await visitors.owner(palaver.url, palaver.token, PHONE)
    await visitor.go()
    await expect(visitor.page.get_by_role("button", name=CHANGE)).to_be_visible()
    await fits(visitor.page)
    heading = visitor.page.get_by_role("heading", name="What shall we work on?")
    await heading.scroll_into_view_if_needed()
    await expect(heading).to_be_in_viewport(ratio=1)
    for scheme in SCHEMES:
        findings = await axe_findings(visitor.page, scheme)
        assert not findings, "\n".join(findings)


async def test_first_step_plays_the_demo_and_leaves_the_choice_of_agent_alone(ada: Visitor) -> None:
    await ada.go()
    await ada.box.fill("for later")
    await ada.page.get_by_role("button", name=CHANGE).click()
    await ada.page.get_by_role("button", name="Allow once").click()
    await expect(ada.log).to_contain_text("That was the demo.")
    await ada.go()
    await expect(ada.page.get_by_role("button", name="Agent: Assistant")).to_be_visible()
    await expect(ada.box).to_have_value("for later")
    await expect(ada.page.get_by_role("button", name=CHANGE)).to_have_count(0)
