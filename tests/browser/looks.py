"""What can be said about a page's looks without eyes: what axe finds, and whether it is wider than its window. And pictures for
those who have eyes: in the folder that PALAVER_SCREENSHOTS names, when it names one."""

import os
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Page
from playwright.async_api import TimeoutError as PlaywrightTimeout

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"

PICTURES = Path(os.environ["PALAVER_SCREENSHOTS"]) if os.environ.get("PALAVER_SCREENSHOTS") else None

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


async def fits(page: Page) -> None:
    """Waits until nothing can be pushed sideways: after a change of size the page needs a moment to arrange itself anew."""
    try:
        await page.wait_for_function(f"({STICKS_OUT})().length === 0")
    except PlaywrightTimeout:
        found = await page.evaluate(STICKS_OUT)
        raise AssertionError("The page is wider than its window:\n" + "\n".join(found)) from None


async def picture(page: Page, name: str, scheme: Scheme = "light") -> None:
    if PICTURES is None:
        return
    await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    await page.screenshot(path=PICTURES / f"{name}.png", animations="disabled", caret="hide")
