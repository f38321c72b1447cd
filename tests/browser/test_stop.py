"""Stopping: the button ends everything the turn started, and what was there stays, marked."""

import re
import sys

import pytest
from playwright.async_api import expect

from tests.browser.processes import settle_at
from tests.browser.served import Palaver
from tests.browser.visitor import Visitor, Visitors
from tests.provider.server import ScriptedProvider

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

# A duration nobody else sleeps for, so that the processes can be told from all others.
FAMILY = "sh -c 'sleep 41417 & setsid sleep 41417 & (trap \"\" TERM; sleep 41417) & sleep 41417; wait'"
MEMBERS = 5
"""The four that sleep and the shell above them; a sandbox adds its own."""


async def test_stop_button_ends_a_command_with_all_its_children(ada: Visitor) -> None:
    await ada.begin(f"!shell {FAMILY}")
    await ada.asked()
    await ada.press("Alt+1")
    started = await settle_at("41417", least=MEMBERS, most=100)
    assert len(started) >= MEMBERS, started

    await ada.stop_button.click()
    assert await settle_at("41417", most=0) == []
    await expect(ada.row(re.compile("^Tool: .*sleep 41417.*, interrupted"))).to_be_visible()
    await expect(ada.row(re.compile("^Interrupted by you"))).to_be_visible()
    await ada.rests()


async def test_stopped_answer_stays_and_can_be_continued(
    ada: Visitor, palaver: Palaver, visitors: Visitors, provider: ScriptedProvider
) -> None:
    await ada.begin("!long 40\n!gate stopped\n!say never said")
    await provider.gates.reached("stopped")
    await expect(ada.log).to_contain_text("word40")
    await ada.page.get_by_role("main").get_by_role("button", name="Stop").click()
    await expect(ada.log).to_contain_text("cut off here")
    await expect(ada.row(re.compile("^Interrupted by you"))).to_be_visible()
    await ada.rests()
    phone = await visitors.owner(palaver.url, palaver.token)
    await phone.open(ada.conversation)
    await expect(phone.row(re.compile("^Interrupted from another client"))).to_be_visible()
    before = await ada.read()
    assert before.count("word17 ") == 1

    await ada.page.reload()
    await ada.reads(before)
    provider.gates.open("stopped")
    await ada.log.get_by_role("button", name="Continue").click()
    await expect(ada.log).to_contain_text("You said: Continue.")
    await expect(ada.row(re.compile("^Agent")).filter(has_text="never said")).to_have_count(0)
