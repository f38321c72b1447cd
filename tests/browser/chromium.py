"""The Chromium that is on this machine, driven by Playwright. It brings no browser of its own."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
"""Where scripts/chromium.sh looks too."""

# Only the pages of a test: no sandbox of its own (root has none to give), nothing fetched or synchronised behind our back.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium_path() -> str | None:
    wanted = (os.environ.get("PALAVER_CHROMIUM"), *NAMES)
    return next((path for name in wanted if name and (path := shutil.which(name))), None)


@asynccontextmanager
async def chromium_running() -> AsyncIterator[Browser]:
    path = chromium_path()
    assert path is not None, "No Chromium here: run scripts/chromium.sh, or set PALAVER_CHROMIUM to its path."
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()
