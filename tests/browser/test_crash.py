"""The server is killed in the middle of an answer and started again: the page finds back by itself, and nothing is lost."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.looks import shown_in_passing
from tests.browser.served import Palaver, palaver_serving
from tests.browser.visitor import UNHURRIED_MS, Visitor
from tests.provider.server import ScriptedProvider


@pytest.fixture
async def palaver(tmp_path: Path, provider: ScriptedProvider) -> AsyncIterator[Palaver]:
    """One of its own: it will be killed."""
    async with palaver_serving(tmp_path, provider.url) as palaver:
        yield palaver


async def test_killed_server_comes_back_and_the_page_with_it(
    ada: Visitor, palaver: Palaver, provider: ScriptedProvider
) -> None:
    # Whatever was on its way when the server died, parts that the page loads when it is idle among it.
    ada.complaints.expect("ERR_", "WebSocket connection")
    await ada.begin("!long 40\n!gate crash\n!say never said")
    await provider.gates.reached("crash")
    await expect(ada.log).to_contain_text("word40")
    await ada.send("!say Queued before the crash.")
    # What can be edited the server has; before that it is only on its way.
    accepted = ada.queue.get_by_role("listitem").filter(has=ada.page.get_by_role("button"))
    await expect(accepted).to_contain_text("Queued before the crash.")

    await palaver.kill()
    banner = ada.page.get_by_role("status").filter(has_text="No connection")
    await expect(banner).to_be_visible()
    await ada.send("!say Written in the dark.")
    await expect(ada.page.get_by_text("Will send when connected")).to_be_visible()
    await expect(ada.box).to_be_empty()

    async with shown_in_passing(ada.page, "[role=status]", "Caught up", UNHURRIED_MS):
        await palaver.start()
    await expect(banner).to_have_count(0)
    agent = ada.row(re.compile("^Agent"))
    await expect(agent.filter(has_text="word40")).to_contain_text("cut off here")
    await expect(ada.row("Interrupted by a restart of the server")).to_be_visible()
    for said in ("Queued before the crash.", "Written in the dark."):
        await expect(agent.filter(has_text=said)).to_have_count(1, timeout=UNHURRIED_MS)
    await ada.rests()
    await expect(ada.page.locator(".banner")).to_have_count(0)

    whole = await ada.read()
    assert whole.count("word17 ") == 1
    assert "never said" not in whole.partition("cut off here")[2]
    # Each twice: the order, and the agent's words.
    assert [whole.count(said) for said in ("Queued before the crash.", "Written in the dark.")] == [2, 2]
    await ada.page.reload()
    await ada.reads(whole)
