"""What can be said about a page's looks without eyes: what axe finds, whether it is wider than its window, whether it still
moves, what it showed in passing. And pictures for those who have eyes: in the folder that PALAVER_SCREENSHOTS names, when it
names one."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Page

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"

PICTURES = Path(os.environ["PALAVER_SCREENSHOTS"]) if os.environ.get("PALAVER_SCREENSHOTS") else None

ARRANGED_S = 20.0
"""A frame is enough; machines that run tests are busy."""

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


async def axe_findings(page: Page, scheme: Scheme) -> list[str]:
    """Every violation with the places it was found at. Once nothing moves any more: half faded in, a text has no contrast."""
    await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    await page.evaluate("Promise.all(document.getAnimations().map(one => one.finished.catch(() => {})))")
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text())
    found: dict[str, Any] = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{violation['id']}: {violation['help']}\n    {node['html']}\n    {node['failureSummary']}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


# What scrolls by itself must not do so sideways either; a finding names what sticks out.
STICKS_OUT = """() => [document.scrollingElement, ...document.querySelectorAll('main, .sheet-body')]
  .filter(box => box.scrollWidth > box.clientWidth)
  .map(box => {
    const edge = box.getBoundingClientRect().left + box.clientWidth;
    const wide = [...box.querySelectorAll('*')].filter(one => one.getBoundingClientRect().right > edge + 1);
    return `${box.tagName} by ${box.scrollWidth - box.clientWidth} px: `
      + wide.slice(0, 5).map(one => one.outerHTML.slice(0, 200)).join('\\n    ');
  })"""


FRAME = "() => new Promise(done => requestAnimationFrame(() => done()))"


async def fits(page: Page) -> None:
    """Waits until nothing can be pushed sideways: after a change of size the page needs a moment to arrange itself anew.

    Asks anew each time: a function that the page itself polls is a string that its policy forbids to evaluate.
    """
    found: list[str] = []
    try:
        async with asyncio.timeout(ARRANGED_S):
            while found := await page.evaluate(STICKS_OUT):
                await page.evaluate(FRAME)
    except TimeoutError:
        raise AssertionError("The page is wider than its window:\n" + "\n".join(found)) from None


# Where everything that scrolls stands, and how large it is.
PLACES = """() => [document.scrollingElement, ...document.querySelectorAll('*')]
  .filter(box => box.scrollHeight > box.clientHeight)
  .map(box => [box.scrollTop, box.scrollHeight, box.clientHeight].join()).join(';')"""

STILL_FRAMES = 10
"""What is still measured, or follows its end, moves within fewer."""


async def stands_still(page: Page) -> None:
    """Waits until nothing has scrolled or grown for a few frames: what is read or pressed next is where it will be."""
    async with asyncio.timeout(ARRANGED_S):
        before, still = "", 0
        while still < STILL_FRAMES:
            await page.evaluate(FRAME)
            places = await page.evaluate(PLACES)
            still = still + 1 if places == before else 0
            before = places


# Whether a thing was there with these words, at any moment since: what shows for a second is easily missed by who asks.
WATCHED = """([selector, words]) => {
  window.passed = false;
  const look = () => {
    window.passed ||= [...document.querySelectorAll(selector)]
      .some(one => `${one.textContent} ${one.getAttribute('aria-label') ?? ''}`.includes(words));
  };
  new MutationObserver(look).observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
  look();
}"""


@asynccontextmanager
async def shown_in_passing(
    page: Page, selector: str, words: str, wait_ms: float = ARRANGED_S * 1000
) -> AsyncIterator[None]:
    """What is done within makes the page show these words, for however short a while."""
    await page.evaluate(WATCHED, [selector, words])
    yield
    try:
        async with asyncio.timeout(wait_ms / 1000):
            while not await page.evaluate("window.passed"):
                await page.evaluate(FRAME)
    except TimeoutError:
        raise AssertionError(f"No {selector} has shown “{words}”.") from None


async def picture(page: Page, name: str, scheme: Scheme = "light") -> None:
    if PICTURES is None:
        return
    await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    await page.screenshot(path=PICTURES / f"{name}.png", animations="disabled", caret="hide")
