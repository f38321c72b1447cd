"""Draws the page's PNG icons from web/public/icon.svg: for home screens that want no SVG, round ones that are cut out of a
full square among them. Run it when the drawing changes; the pictures are kept beside it.

    .venv/bin/python scripts/icons.py
"""

import asyncio
import os
import re
import shutil
from pathlib import Path

from playwright.async_api import Browser, async_playwright

PUBLIC = Path(__file__).parents[1] / "web/public"

SIZES_PX = {"icon-192.png": 192, "icon-512.png": 512, "icon-180.png": 180}
MASKABLE_PX = {"icon-maskable-192.png": 192, "icon-maskable-512.png": 512}

SQUARE = frozenset({"icon-180.png", *MASKABLE_PX})
"""Their corners are cut by the system, so there must be something to cut."""

SAFE_SHARE = 0.8
"""A mask may take everything outside a circle of this share of the width."""


async def main() -> None:
    svg = (PUBLIC / "icon.svg").read_text()
    path = next(
        (found for name in (os.environ.get("PALAVER_CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
         if name and (found := shutil.which(name))),
        None,
    )  # fmt: skip
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name, size_px in {**SIZES_PX, **MASKABLE_PX}.items():
            await draw(
                browser,
                _square(svg, SAFE_SHARE if name in MASKABLE_PX else 1.0) if name in SQUARE else svg,
                name,
                size_px,
            )
        await browser.close()


def _square(svg: str, share: float) -> str:
    """The ground to the edges, the drawing on it as large as is safe."""
    filled = re.sub(r' rx="\d+"', "", svg)
    inset = 32 * (1 - share)
    return re.sub(r"<g ", f'<g transform="translate({inset} {inset}) scale({share})" ', filled, count=1)


async def draw(browser: Browser, svg: str, name: str, size_px: int) -> None:
    page = await browser.new_page(viewport={"width": size_px, "height": size_px})
    await page.set_content(f"<style>body{{margin:0}}svg{{display:block;width:{size_px}px}}</style>{svg}")
    await page.screenshot(path=PUBLIC / name, omit_background=True)
    await page.close()


if __name__ == "__main__":
    asyncio.run(main())
