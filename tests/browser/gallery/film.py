"""The short film of the README: one conversation, begun on the page, answered in the terminal, finished on both."""

from dataclasses import dataclass

from playwright.async_api import Page, expect

from palaver.tui.theme import DARK_NAME
from tests.browser.gallery.harbour import Harbour
from tests.browser.gallery.talking import QUESTION, allow_edits, at_the_end
from tests.browser.gallery.terminal import TerminalShot, opened, photographed, terminal
from tests.browser.looks import picture
from tests.browser.test_pictures import SCRIPT
from tests.browser.visitor import Visitor

WINDOW = (1100, 700)
COLUMNS_AND_LINES = (89, 27)
"""A terminal that is about as large, drawn, as the page's window."""

DEAF_S = 1.0
"""Keys that would do nothing yet are shown faint."""


@dataclass(frozen=True)
class Frame:
    name: str
    caption: str
    shown_ms: int


FRAMES = (
    Frame("film-1", "Ask. The agent works in the folder you choose.", 2200),
    Frame("film-2", "It looks around by itself, and asks before it changes a file.", 3600),
    Frame("film-3", "Always, for edits in this conversation: Alt+2. The command asks again.", 3000),
    Frame("film-4", "The same conversation, the same request, in the terminal: Alt+1.", 3200),
    Frame("film-5", "Done, in the terminal …", 2800),
    Frame("film-6", "… and on the page. Whatever you reload, stop or kill: it is all there.", 3800),
)


async def played(harbour: Harbour) -> None:
    harbour.provider.script.extend(SCRIPT)
    ada = await harbour.ada()
    await ada.page.set_viewport_size({"width": WINDOW[0], "height": WINDOW[1]})
    await ada.go()
    await ada.page.get_by_role("combobox", name="Folder").fill(harbour.project("tides"))
    await ada.box.fill(QUESTION)
    await taken(ada.page, 1)
    await ada.box.press("Enter")
    await ada.asked()
    await expect(ada.approval).to_contain_text("calendar.isleap")
    await taken(ada.page, 2)
    await allow_edits(ada)
    await expect(ada.approval.get_by_label("Exactly what will run")).to_contain_text("unittest")
    await ada.asked()
    await taken(ada.page, 3)
    await answered_in_the_terminal(harbour, ada)
    await at_the_end(ada, "no other table changes")
    await taken(ada.page, 6)


async def answered_in_the_terminal(harbour: Harbour, ada: Visitor) -> None:
    shot = TerminalShot("film", "", _nothing, COLUMNS_AND_LINES, DARK_NAME)
    async with terminal(harbour, shot) as screen:
        await opened(screen, ada.conversation)
        await screen.shows("never sees the year")
        await screen.shows("Allow once")
        await screen.pilot.pause(DEAF_S)
        await screen.steady()
        await photographed(harbour, screen.svg, FRAMES[3].name)
        await screen.shows("no other table changes", pressing="alt+1")
        await screen.pilot.pause()
        await photographed(harbour, screen.svg, FRAMES[4].name)


async def taken(page: Page, number: int) -> None:
    await picture(page, FRAMES[number - 1].name)


async def _nothing(harbour: Harbour, terminal: object) -> None:
    """The film has its own story."""
