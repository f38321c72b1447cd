"""The Chromium that is on this machine, driven by Playwright. It brings no browser of its own."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

LIGHT = "chromium-headless-shell"
"""The same engine without the window around it: a page of a test takes a third less time. What measures or takes pictures
wants the browser that people have."""
NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
"""Where scripts/chromium.sh looks too."""

PLAYWRIGHTS = (
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "TcpPortRandomizationWin",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
)
"""What Playwright 1.65 switches off, named again: of two such switches the last one counts."""
OF_THE_WINDOW = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup")
"""Pages of the window's own, which Chromium 156 loads for every window though nobody sees them: a second of a core each."""

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
BARE_WINDOW = "--disable-features=" + ",".join((*PLAYWRIGHTS, *OF_THE_WINDOW))
"""For the tests alone: in such a window 800 tokens a second on a slowed CPU are drawn at half the frames, so that figures
taken in it would be of a browser that nobody uses."""


def chromium_path(*first: str) -> str | None:
    wanted = (os.environ.get("PALAVER_CHROMIUM"), *first, *NAMES)
    return next((path for name in wanted if name and (path := shutil.which(name))), None)


@asynccontextmanager
async def chromium_running(*more_flags: str, path: str | None = None) -> AsyncIterator[Browser]:
    path = path or chromium_path()
    assert path is not None, "No Chromium here: run scripts/chromium.sh, or set PALAVER_CHROMIUM to its path."
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=[*FLAGS, *more_flags])
        try:
            yield browser
        finally:
            await browser.close()
