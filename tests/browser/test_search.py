"""Searching all conversations, and jumping to what was found, however far back it is."""

import asyncio
import re

from playwright.async_api import Route, expect

from palaver.client import Client
from palaver.schema.commands import SendMessage
from tests.browser.served import Palaver
from tests.browser.visitor import WAIT_MS, Visitor

TURNS = 56
"""Two messages each: more than a page of the history holds."""


async def fill(palaver: Palaver, conversation: str) -> None:
    """So many turns that the first message is neither drawn nor loaded."""
    async with Client.connect(palaver.url, palaver.token) as client:
        for number in range(TURNS):
            await client.command(conversation, SendMessage(content=f"!say Filling {number}."))
            async for followed in client.follow(conversation):
                if followed.state.turn is None and not followed.state.queue:
                    break


async def test_search_finds_text_in_another_conversation_and_jumps_to_it(ada: Visitor, palaver: Palaver) -> None:
    far = await ada.begin("The orchid stands behind the greenhouse")
    await ada.rests()
    await fill(palaver, far)
    await ada.begin("Something else entirely")
    await ada.rests()
    await ada.page.reload()

    await ada.search_field.fill("orchid")
    for who, words in (("You", "The orchid stands behind"), ("Agent", "You said: The orchid stands behind")):
        await ada.list.get_by_role("link", name=re.compile(f"{who} {words}")).click()
        await expect(ada.page).to_have_url(re.compile(rf"/c/{far}\?at=\d+"))
        row = ada.row(re.compile("^You, " if who == "You" else "^Agent")).filter(has_text=words)
        await expect(row).to_be_in_viewport()
    await expect(ada.log.get_by_text(f"Filling {TURNS - 1}.", exact=True)).not_to_be_in_viewport()

    await ada.page.get_by_role("button", name="To the end").click()
    await expect(ada.log.get_by_text(f"Filling {TURNS - 1}.", exact=True)).to_be_in_viewport()

    await older_are_found(ada)


async def older_are_found(ada: Visitor) -> None:
    """In a conversation of which only the end is loaded: the server looks, fails, looks again and finds."""
    asked: asyncio.Queue[Route] = asyncio.Queue()
    ada.complaints.expect("503")
    await ada.page.route("**/api/search?*", asked.put)
    await ada.open(ada.conversation)
    await ada.press("Control+F")
    find = ada.page.get_by_role("search", name="Find", exact=True)
    await find.get_by_label("Find in conversation").fill("orchid")
    await find.get_by_role("button", name="Search all of it").click()
    await expect(find).to_contain_text("Searching …")
    refusal = {"code": "unavailable", "message": "The index rests.", "retryable": True}
    await (await asyncio.wait_for(asked.get(), WAIT_MS / 1000)).fulfill(status=503, json=refusal)
    await expect(find.get_by_role("alert")).to_contain_text("The index rests.")
    await find.get_by_role("button", name="Try again").click()
    await (await asyncio.wait_for(asked.get(), WAIT_MS / 1000)).continue_()
    await find.get_by_role("button", name=re.compile("^The orchid stands behind")).click()
    await expect(ada.row(re.compile("^You, ")).filter(has_text="The orchid")).to_be_in_viewport()


async def test_search_without_a_hit_says_so(ada: Visitor) -> None:
    await ada.begin("Nothing to see here")
    await ada.rests()
    await ada.search_field.fill("xylophone quartet")
    await expect(ada.list).to_contain_text("Nothing matches “xylophone quartet”.")
    await ada.search_field.press("Escape")
    await expect(ada.list.get_by_role("link", name="Nothing to see here")).to_be_visible()


async def test_search_keeps_the_focus_while_a_conversation_still_loads(ada: Visitor) -> None:
    conversation = await ada.begin("Slow to open")
    await ada.rests()
    held: asyncio.Future[Route] = asyncio.get_running_loop().create_future()
    # The part of the page that draws an agent's text: the conversation opens when it has come.
    await ada.page.route("**/assets/markdown-*.js", lambda route: held.set_result(route))  # noqa: PLW0108 - a bare method is refused
    await ada.go(f"/c/{conversation}")
    await ada.search_field.fill("green")
    await (await asyncio.wait_for(held, WAIT_MS / 1000)).continue_()
    await expect(ada.log).to_contain_text("You said: Slow to open")
    await expect(ada.search_field).to_be_focused()
    await ada.page.keyboard.type("house")
    await expect(ada.search_field).to_have_value("greenhouse")
