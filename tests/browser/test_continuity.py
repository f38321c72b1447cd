"""What one has in hand stays in hand: the focus while rows change, the scroll of what one scrolls, and every part of the page by
keyboard alone."""

import re

from playwright.async_api import expect

from palaver.schema.events import AnswerStarted, ToolCalled, ToolFinished, ToolOutputDelta, ToolStarted, TurnFinished
from tests.browser.looks import stands_still
from tests.browser.player import Player
from tests.browser.visitor import Visitor, Visitors
from tests.golden.record import Record
from tests.provider.server import ScriptedProvider

LINES = "".join(f"line {number}\n" for number in range(200))


def at_work() -> Record:
    """A command that prints, in a turn that goes on."""
    log = Record("at-work")
    log.created()
    log.asked("m1", "Build it", "t1")
    log.add(
        AnswerStarted(message="m2"),
        ToolCalled(message="m2", block=0, call="c1", name="shell", input={"command": "make"}),
        ToolStarted(call="c1", grant="rule"),
        ToolOutputDelta(call="c1", text=LINES),
    )
    return log


async def test_focus_and_disclosure_survive_changes_of_their_row(visitors: Visitors) -> None:
    log = at_work()
    first = log.seq
    log.add(
        ToolOutputDelta(call="c1", text="more\n"),
        ToolFinished(call="c1", ok=True, output=LINES + "more\n", exit_code=0),
        TurnFinished(outcome="completed"),
    )
    async with Player(log.lines).serving() as player:
        player.head = first
        visitor = await visitors.stranger(player.url)
        await visitor.open(player.conversation)
        await player.followed()
        row = visitor.row(re.compile("^Tool: R"))
        line = row.get_by_role("button", name=re.compile("make")).first
        await line.press("Enter")
        terminal = row.get_by_label("Terminal")
        await expect(terminal).to_contain_text("line 199")
        await expect(line).to_be_focused()
        await line.evaluate("line => (window.held = line)")
        for seq in range(first + 1, len(log.lines) + 1):
            await player.play(seq)
            await expect(visitor.page).to_have_title(re.compile(re.escape(player.mark(seq))))
            await expect(line).to_be_focused()
            assert await line.evaluate("line => line === window.held && line.getAttribute('aria-expanded') === 'true'")
        await expect(row.get_by_label("Terminal")).to_contain_text("more")
        await visitor.page.close()


# How far what scrolls inside the transcript and the transcript itself are from their tops.
TOPS = "terminal => [terminal.scrollTop, document.querySelector('[role=log]').scrollTop]"


async def test_what_scrolls_inside_a_row_keeps_its_place_and_the_transcript_keeps_its_own(visitors: Visitors) -> None:
    log = at_work()
    first = log.seq
    for number in range(6):
        log.add(ToolOutputDelta(call="c1", text=f"and {number}\n"))
    async with Player(log.lines).serving() as player:
        player.head = first
        visitor = await visitors.stranger(player.url)
        await visitor.open(player.conversation)
        await player.followed()
        row = visitor.row(re.compile("^Tool: R"))
        await row.get_by_role("button", name=re.compile("make")).first.press("Enter")
        terminal = row.get_by_label("Terminal")
        await expect(terminal).to_contain_text("line 199")
        await terminal.hover()
        await stands_still(visitor.page)
        _, outer = await terminal.evaluate(TOPS)
        await visitor.page.mouse.wheel(0, -400)
        await visitor.page.wait_for_function(
            "() => { const box = document.querySelector('.terminal');"
            " return box.scrollHeight - box.scrollTop - box.clientHeight > 300 }"
        )
        await stands_still(visitor.page)
        inner, after = await terminal.evaluate(TOPS)
        assert after == outer
        for seq in range(first + 1, len(log.lines) + 1):
            await player.play(seq)
            await expect(visitor.page).to_have_title(re.compile(re.escape(player.mark(seq))))
        await expect(terminal).to_contain_text("and 5")
        await stands_still(visitor.page)
        assert await terminal.evaluate(TOPS) == [inner, outer]
        # By keys as well: they move what has the focus.
        await terminal.focus()
        await visitor.press("Home")
        await visitor.page.wait_for_function("() => document.querySelector('.terminal').scrollTop === 0")
        await stands_still(visitor.page)
        assert (await terminal.evaluate(TOPS))[1] == outer
        await visitor.page.close()


# Who has the focus, as a screen reader names them.
FOCUSED = """() => {
  const one = document.activeElement;
  if (one === document.body) return null;
  const label = one.getAttribute("aria-label") ?? one.labels?.[0]?.innerText ?? one.placeholder ?? one.innerText ?? "";
  const box = one.getBoundingClientRect();
  return { name: label.trim().split("\\n")[0], seen: box.width > 0 && box.height > 0 };
}"""


async def walked(visitor: Visitor, key: str = "Tab", limit: int = 140) -> list[str]:
    """The names of everything the key leads to, once around."""
    names: list[str] = []
    for _ in range(limit):
        await visitor.press(key)
        found = await visitor.page.evaluate(FOCUSED)
        if found is None:
            return names
        assert found["seen"], f"{found['name']} has the focus and cannot be seen"
        names.append(found["name"])
    raise AssertionError(f"the focus never leaves: {names[-12:]}")


async def test_every_part_of_a_busy_conversation_is_reached_by_keys_alone(
    ada: Visitor, provider: ScriptedProvider
) -> None:
    await ada.begin("!think Hm.\n!say An answer with `code`.\n\n```py\nx = 1\n```\n!shell touch by-keys.txt")
    await ada.asked()
    await ada.send("Later, please")
    # While it is on its way it is shown, and cannot be edited yet.
    await expect(ada.queue.get_by_role("button", name="Edit queued message")).to_be_visible()
    names = await walked(ada)
    await ada.box.focus()
    names += await walked(ada, "Shift+Tab")
    await ada.box.focus()
    names.append("Message")
    for part in (
        "Hide conversations",
        "Search all conversations",
        "Context and cost",
        "Stop",
        "Conversation actions",
        "Conversation",
        "Thought",
        "Message actions",
        "Exactly what will run",
        "Allow once",
        "Deny",
        "More choices",
        "Edit queued message",
        "Remove from queue",
        "Message",
        "Attach an image",
        "Mode",
        "Agent",
    ):
        assert any(name.startswith(part) for name in names), f"{part} is not among {names}"
    await ada.press("Alt+3")
    await ada.rests()


async def test_screens_are_opened_and_left_by_keys_alone(ada: Visitor) -> None:
    await ada.begin("!say Ready.")
    await ada.rests()
    for name, heading in (
        ("Settings", "Settings"),
        ("Backends", "Backends"),
        ("Waiting for you", "Waiting for you"),
        ("Agents", "Agents"),
    ):
        await ada.command(name)
        await expect(ada.page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        # The way by keys ends at once where nothing has been loaded yet.
        await expect(ada.page.get_by_role("main").locator("a[href], button, input, select").first).to_be_visible()
        assert await walked(ada)
    await ada.press("?")
    await expect(ada.page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    await ada.press("Escape")
    await expect(ada.page.get_by_role("dialog")).to_have_count(0)
