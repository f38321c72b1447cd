"""Pictures of the terminal: the same harbour, in a real app without a terminal around it, drawn as an SVG and photographed."""

import asyncio
import html
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from textual.pilot import Pilot
from textual.widgets import TextArea

from palaver.client.client import Client
from palaver.tui.app import PalaverApp
from palaver.tui.theme import DARK_NAME, LIGHT_NAME
from tests.browser.gallery.asking import many_wait
from tests.browser.gallery.harbour import WAIT_S, Harbour
from tests.browser.gallery.talking import QUESTION
from tests.browser.looks import picture
from tests.browser.test_pictures import SCRIPT
from tests.provider.script import Gate, Say

LOOK_S = 0.1
SMALL = (80, 24)
USUAL = (110, 34)
WIDE = (140, 40)


@dataclass
class Terminal:
    app: PalaverApp
    pilot: Pilot[None]

    @property
    def svg(self) -> str:
        return self.app.export_screenshot(title="palaver")

    @property
    def text(self) -> str:
        return html.unescape(re.sub(r"<[^>]+>", "", self.svg)).replace("\xa0", " ")

    async def shows(self, words: str, *, pressing: str | None = None) -> None:
        """Until these words are on the screen; a key given is pressed until they are."""
        async with asyncio.timeout(WAIT_S):
            while words not in self.text:
                if pressing is not None:
                    await self.pilot.press(pressing)
                await self.pilot.pause(LOOK_S)

    async def steady(self) -> None:
        """The cursor no longer blinks: two pictures of the same screen are the same."""
        for box in self.app.screen.query(TextArea):
            box.cursor_blink = False
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()


Play = Callable[[Harbour, Terminal], Awaitable[None]]


@dataclass(frozen=True)
class TerminalShot:
    name: str
    caption: str
    play: Play
    size: tuple[int, int]
    theme: str


TERMINAL_SHOTS: dict[str, TerminalShot] = {}


def shot(caption: str, size: tuple[int, int] = USUAL, theme: str = DARK_NAME) -> Callable[[Play], Play]:
    def keep(play: Play) -> Play:
        name = f"terminal-{play.__name__.replace('_', '-')}"
        TERMINAL_SHOTS[name] = TerminalShot(name, caption, play, size, theme)
        return play

    return keep


@asynccontextmanager
async def terminal(harbour: Harbour, shot: TerminalShot) -> AsyncIterator[Terminal]:
    async with Client.connect(harbour.url, harbour.token) as client:
        app = PalaverApp(client, harbour.clock, theme=shot.theme)
        async with app.run_test(size=shot.size) as pilot:
            yield Terminal(app, pilot)


async def photographed(harbour: Harbour, svg: str, name: str) -> None:
    """In a page of its own, with this machine's letters: the drawing names some that would have to be fetched."""
    visitor = await harbour.stranger()
    drawn = re.sub(r"@font-face\s*{[^}]*}", "", svg).replace("Fira Code", "DejaVu Sans Mono")
    await visitor.page.set_content(f"<style>body {{ margin: 0 }} svg {{ display: block }}</style>{drawn}")
    box = await visitor.page.locator("svg").bounding_box()
    assert box is not None
    await visitor.page.set_viewport_size({"width": round(box["width"]), "height": round(box["height"])})
    await picture(visitor.page, name)


async def opened(terminal: Terminal, conversation: str) -> None:
    await terminal.pilot.pause()
    terminal.app.open_conversation(conversation)


# -- the shots


@shot("A conversation in the terminal: the same content and requests as on the page.")
async def conversation(harbour: Harbour, terminal: Terminal) -> None:
    harbour.provider.script.extend(SCRIPT)
    here = await harbour.begin(QUESTION)
    await opened(terminal, here)
    await terminal.shows("no other table changes", pressing="alt+1")


@shot("An approval, with the lines that would change. Alt+1, 2, 3 or F7, F8, F9 answer it.")
async def approval(harbour: Harbour, terminal: Terminal) -> None:
    harbour.provider.script.extend(SCRIPT)
    await opened(terminal, await harbour.begin(QUESTION))
    await terminal.shows("calendar.isleap")


@shot("80 columns and 24 lines, light theme.", SMALL, LIGHT_NAME)
async def small(harbour: Harbour, terminal: Terminal) -> None:
    harbour.provider.script.extend(SCRIPT)
    await opened(terminal, await harbour.begin(QUESTION))
    await terminal.shows("calendar.isleap")


@shot("A question.")
async def question(harbour: Harbour, terminal: Terminal) -> None:
    await opened(terminal, await harbour.begin("Ask me what you need to know", agent="demo"))
    await terminal.shows("What shall I show you next?")


@shot("A plan needs approval.")
async def plan(harbour: Harbour, terminal: Terminal) -> None:
    await opened(terminal, await harbour.begin("Plan a horn for the fog", agent="demo"))
    await terminal.shows("Tell the harbour master")


@shot("Queued messages.")
async def queue(harbour: Harbour, terminal: Terminal) -> None:
    harbour.says("The first four pages are done;", Gate(name="pages"), Say(text=" so is the rest."))
    here = await harbour.begin("Check every link of the website", project="website")
    await harbour.provider.gates.reached("pages")
    await harbour.command(here, type="send_message", content="Then sort the pictures by year")
    await harbour.command(here, type="send_message", content="Leave the archive alone", delivery="boundary")
    await opened(terminal, here)
    await terminal.shows("Leave the archive alone")


@shot("Stopped, and the queue held (Ctrl+G).")
async def queue_paused(harbour: Harbour, terminal: Terminal) -> None:
    await queue(harbour, terminal)
    await terminal.pilot.press("ctrl+g")
    await terminal.shows("Paused: you stopped the agent.")
    await terminal.pilot.press("f6")
    await terminal.shows("let it go")


@shot("Background processes with their running time. F6 moves there, X stops one.")
async def background(harbour: Harbour, terminal: Terminal) -> None:
    here = await harbour.begin("Keep the tide clock running in the background", agent="demo")
    await harbour.rests(here)
    await opened(terminal, here)
    await terminal.shows("tide-clock --port 9180  running")
    await terminal.pilot.press("f6")
    await terminal.shows("X stop it")


@shot("Markdown, code and tables.")
async def markdown(harbour: Harbour, terminal: Terminal) -> None:
    here = await harbour.begin("Show me a table", agent="demo")
    await harbour.rests(here)
    await opened(terminal, here)
    await terminal.shows("That was the demo")


@shot("The list of conversations (Ctrl+L).")
async def list_panel(harbour: Harbour, terminal: Terminal) -> None:
    await many_wait(harbour)
    await opened(terminal, await harbour.begin("Show me a table", agent="demo"))
    await terminal.press("ctrl+l")
    await terminal.shows("Which buoys have no light?")


@shot("The command palette (Ctrl+K).")
async def palette(harbour: Harbour, terminal: Terminal) -> None:
    await opened(terminal, await harbour.begin("Show me a table", agent="demo"))
    await terminal.press("ctrl+k")
    await terminal.shows("New conversation")


@shot("All keyboard shortcuts (F1).")
async def keys(harbour: Harbour, terminal: Terminal) -> None:
    await opened(terminal, await harbour.begin("Show me a table", agent="demo"))
    await terminal.press("f1")
    await terminal.shows("Shift+G")
