"""The socket example in a browser: live messages and the replay after a reload draw the same page."""

import pytest
from playwright.async_api import Locator, expect

from tests.browser.served import Palaver
from tests.browser.visitor import Visitor
from tests.examples.scripts import WRITTEN, decide, script_approval, script_held
from tests.provider import Answer, Call, ScriptedProvider

pytestmark = pytest.mark.browser
PAGE = "socket_page"


def log(visitor: Visitor) -> Locator:
    return visitor.page.locator("#log")


def bubbles(visitor: Visitor) -> Locator:
    return visitor.page.locator("#log .bubble")


def typing(visitor: Visitor) -> Locator:
    return visitor.page.locator(".typing")


def session_of(visitor: Visitor) -> str:
    return visitor.page.url.partition("#")[2]


async def reload_draws_the_same(visitor: Visitor) -> None:
    live = await log(visitor).inner_html()
    await visitor.page.reload()
    await expect(bubbles(visitor)).not_to_have_count(0)
    assert await log(visitor).inner_html() == live


async def test_tool_block_is_pending_until_its_call_was_allowed_and_a_reload_draws_the_same(
    ada: Visitor, palaver: Palaver, provider: ScriptedProvider
) -> None:
    name = script_approval(provider, "sockettide")
    await ada.send("Note the sockettide")
    tool = ada.page.locator(".tool")
    await expect(tool).to_have_class("tool pending")
    await expect(tool.locator("summary")).to_contain_text(f'write {{"path":"{name}"')
    await expect(ada.page.locator(".thinking")).to_have_text("The tide table is wanted.")
    await expect(bubbles(ada).last.locator(":scope > *").last).to_have_class("typing")
    await decide(palaver, session_of(ada))
    await expect(tool).to_have_class("tool success")
    await expect(tool.locator(".output")).to_contain_text(f"Created {name}")
    await expect(typing(ada)).to_have_count(0)
    await expect(bubbles(ada).last.locator(".text")).to_have_text(["I will write it down.", "Done with that."])
    assert (palaver.project / name).read_text() == WRITTEN
    await reload_draws_the_same(ada)


async def test_refused_call_is_an_error_block(ada: Visitor, palaver: Palaver, provider: ScriptedProvider) -> None:
    script_approval(provider, "socketdenied")
    await ada.send("Note the socketdenied")
    await expect(ada.page.locator(".tool")).to_have_class("tool pending")
    await decide(palaver, session_of(ada), "deny")
    await expect(ada.page.locator(".tool")).to_have_class("tool error")
    await expect(typing(ada)).to_have_count(0)
    await reload_draws_the_same(ada)


async def test_escape_in_an_answer_keeps_its_text_and_the_queued_message_is_answered(
    ada: Visitor, provider: ScriptedProvider
) -> None:
    script_held(provider, "socketheld")
    await ada.send("Tell the socketheld")
    await expect(bubbles(ada).nth(1).locator(".text")).to_have_text("Half of the answer")
    await ada.send("And the next?")
    await ada.press("Escape")
    await expect(bubbles(ada).nth(1).locator(".cancelled")).to_have_text("Interrupted")
    await expect(bubbles(ada).nth(3).locator(".text")).to_have_text("You said: And the next?")
    await expect(bubbles(ada).nth(1).locator(".text")).to_have_text("Half of the answer")
    await expect(typing(ada)).to_have_count(0)
    await reload_draws_the_same(ada)


async def test_escape_in_a_tool_marks_its_block_and_the_session_goes_on(
    ada: Visitor, palaver: Palaver, provider: ScriptedProvider
) -> None:
    command = "touch socketruns.txt; sleep 100"
    provider.script.append(
        Answer.of("It may take long.", Call(name="shell", input={"command": command}), when="socketruns")
    )
    await ada.send("Do the socketruns")
    await expect(ada.page.locator(".tool")).to_have_class("tool pending")
    await decide(palaver, session_of(ada))
    await ada.press("Escape")
    await expect(ada.page.locator(".tool")).to_have_class("tool interrupted")
    await expect(ada.page.locator(".cancelled")).to_have_text("Interrupted")
    await expect(typing(ada)).to_have_count(0)
    await reload_draws_the_same(ada)
    await ada.send("And now?")
    await expect(bubbles(ada).last.locator(".text")).to_have_text("You said: And now?")


async def test_page_goes_on_by_itself_after_the_server_died(
    ada: Visitor, palaver: Palaver, provider: ScriptedProvider
) -> None:
    ada.complaints.expect("WebSocket connection", "Failed to load resource")
    script_held(provider, "socketdies")
    await ada.send("Tell the socketdies")
    await expect(bubbles(ada).last.locator(".text")).to_have_text("Half of the answer")
    await palaver.kill()
    await palaver.start()
    await expect(bubbles(ada).last.locator(".cancelled")).to_have_text("Interrupted")
    await expect(bubbles(ada).last.locator(".text")).to_have_text("Half of the answer")
    await ada.send("And now?")
    await expect(bubbles(ada).last.locator(".text")).to_have_text("You said: And now?")


async def test_page_reloaded_in_the_middle_of_an_answer_goes_on_with_it(
    ada: Visitor, provider: ScriptedProvider
) -> None:
    script_held(provider, "socketmiddle")
    await ada.send("Tell the socketmiddle")
    await expect(bubbles(ada).last.locator(".text")).to_have_text("Half of the answer")
    await ada.page.reload()
    await expect(bubbles(ada).last.locator(".text")).to_have_text("Half of the answer")
    await expect(typing(ada)).to_have_count(1)
    provider.gates.open("socketmiddle")
    await expect(bubbles(ada).last.locator(".text")).to_have_text("Half of the answer and the rest.")
    await expect(typing(ada)).to_have_count(0)
    await reload_draws_the_same(ada)
