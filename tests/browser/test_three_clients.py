"""Two browsers and a terminal on one conversation of a real server: they agree, whoever speaks or answers.

One browser is a desktop's, one a telephone's; both are the owner's, and so is the terminal.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from playwright.async_api import Locator, expect

from palaver.tui.docks.requests import RequestDock
from tests.browser.served import Palaver
from tests.browser.visitor import PHONE, WAIT_MS, Visitor, Visitors
from tests.tui.opened import Opened, opened

WRITE = "!write {0}.txt tide\n---\n!say {0} is written."
TIME = re.compile(r"\b\d\d:\d\d\b")
SIGNS = re.compile(r"[✓✗●○◆◇◈⊘▸▾·±│]")
START = "Start of the conversation"


@dataclass
class Three:
    ada: Visitor
    phone: Visitor
    terminal: Opened

    @property
    def pages(self) -> tuple[Visitor, Visitor]:
        return self.ada, self.phone

    async def rest(self) -> None:
        for page in self.pages:
            await page.rests()
        await self.terminal.until(lambda: self.terminal.state.turn is None and not self.terminal.state.queue)

    async def show(self, words: str) -> None:
        """Until all of them read so."""
        for page in self.pages:
            await expect(page.log).to_contain_text(words)
        await self.terminal.until_shown(words)

    async def are_asked(self) -> None:
        """Until all of them show an approval that hears."""
        for page in self.pages:
            await page.asked()
        await self.terminal.until(self._hears)

    def _hears(self) -> bool:
        card = self.terminal.app.main.query_one(RequestDock).card
        return card is not None and card.is_heard

    async def agree(self) -> str:
        """What all of them read, once they rest: the same, and it does not change any more."""
        await self.rest()
        texts: list[str] = []
        try:
            async with asyncio.timeout(WAIT_MS / 1000):
                while not texts or texts.count(texts[0]) < len(texts):
                    texts = [in_terminal(self.terminal), *[plain(await page.read()) for page in self.pages]]
                    await self.terminal.pilot.pause(0.05)
        except TimeoutError:
            raise AssertionError("they do not agree:\n" + "\n".join(texts)) from None
        return texts[0]


def plain(page: str) -> str:
    """Without the times, which a terminal has in another place, and without signs: words alone."""
    return " ".join(SIGNS.sub(" ", TIME.sub(" ", page.removeprefix(START))).split())


def in_terminal(terminal: Opened) -> str:
    """All rows of the transcript; without the lines that say who speaks and when, and without rules."""
    drawn = terminal.transcript._drawn
    lines = [strip.text.rstrip() for place in range(len(drawn.rows)) for strip in drawn.strips(place)]
    return plain("\n".join(line for line in lines if not TIME.search(line[-6:]) and "──" not in line))


@asynccontextmanager
async def together(ada: Visitor, visitors: Visitors, palaver: Palaver, first: str) -> AsyncIterator[Three]:
    conversation = await ada.begin(first)
    phone = await visitors.owner(palaver.url, palaver.token, PHONE)
    await phone.open(conversation)
    async with opened(palaver, conversation, size=(100, 60)) as terminal:
        yield Three(ada, phone, terminal)


def footer(page: Visitor, name: str) -> Locator:
    """Below an opened call: how long it took, and who allowed it."""
    return page.row(re.compile(re.escape(name))).locator(".tool-footer")


async def open_row(page: Visitor, name: str) -> None:
    """By key: a line may move."""
    await page.unfold()
    await page.row(re.compile(re.escape(name))).locator(".tool-line").first.press("Enter")


async def test_message_sent_in_each_is_once_in_all(ada: Visitor, visitors: Visitors, palaver: Palaver) -> None:
    async with together(ada, visitors, palaver, "!say Ebb.") as three:
        await three.show("Ebb.")
        await three.rest()
        await three.terminal.write("!say Flood.")
        await three.terminal.press("enter")
        await three.show("Flood.")
        await three.rest()
        await three.phone.send("!say Slack water.")
        await three.show("Slack water.")
        assert await three.agree() == (
            "!say Ebb. Ebb. !say Flood. Flood. !say Slack water. Slack water."  # Every message, then its answer.
        )


async def test_approval_given_in_the_terminal_is_over_in_both_browsers(
    ada: Visitor, visitors: Visitors, palaver: Palaver
) -> None:
    async with together(ada, visitors, palaver, WRITE.format("First")) as three:
        await three.are_asked()
        await three.terminal.press("alt+1")
        await three.terminal.until_shown("Allowed once · by you")
        for page in three.pages:
            await expect(page.approval).to_have_count(0)
        await three.show("First is written.")
        await three.agree()
        for page in three.pages:
            await open_row(page, "First.txt")
            await expect(footer(page, "First.txt")).to_contain_text("Allowed once · answered elsewhere")


async def test_approval_given_in_a_browser_is_over_in_the_other_and_in_the_terminal(
    ada: Visitor, visitors: Visitors, palaver: Palaver
) -> None:
    async with together(ada, visitors, palaver, WRITE.format("Second")) as three:
        await three.are_asked()
        await three.phone.press("Alt+1")
        await three.terminal.until_shown("Allowed once · answered elsewhere")
        await three.terminal.until(lambda: three.terminal.app.main.query_one(RequestDock).card is None)
        for page in three.pages:
            await expect(page.approval).to_have_count(0)
        await three.show("Second is written.")
        await three.agree()
        await open_row(three.phone, "Second.txt")
        await expect(footer(three.phone, "Second.txt")).to_contain_text("Allowed once · by you")
        await open_row(three.ada, "Second.txt")
        await expect(footer(three.ada, "Second.txt")).to_contain_text("Allowed once · answered elsewhere")
        # The change report, the text, the work of the turn; within it the call.
        await three.terminal.press("f6", "k", "k", "k", "o", "j", "o")
        await three.terminal.until_shown("│ Allowed once · answered elsewhere")


async def test_terminal_that_comes_back_reads_what_was_said_meanwhile(
    ada: Visitor, visitors: Visitors, palaver: Palaver
) -> None:
    async with together(ada, visitors, palaver, "!say One.") as three:
        await three.show("One.")
        before = await three.agree()
    await ada.send("!say Two.")
    await expect(ada.log).to_contain_text("Two.")
    async with opened(palaver, ada.conversation, size=(100, 60)) as again:
        three = Three(ada, three.phone, again)
        await three.show("Two.")
        assert await three.agree() == f"{before} !say Two. Two."
