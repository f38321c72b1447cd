"""Somebody at the page: signs in, writes, reads, answers. And what the browser complained about meanwhile.

Waits only through Playwright's `expect`, which is bounded. Finds things by what a person or a screen reader would find them
by; a class name only where neither has a word for it.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Route, WebError, expect

WAIT_MS = 20_000
"""The longest a page takes to show what it should: half of it is the machine's other work."""
UNHURRIED_MS = 45_000
"""For what includes a start of the server or a wait of the page's own."""

DESKTOP = (1280, 900)
PHONE = (390, 844)

expect.set_options(timeout=WAIT_MS)


@dataclass
class Complaints:
    """Errors of the console and exceptions of the page. A test says beforehand which it means to cause."""

    found: list[str] = field(default_factory=list[str])
    expected: list[str] = field(default_factory=list[str])

    def expect(self, *patterns: str) -> None:
        self.expected.extend(patterns)

    @property
    def unexpected(self) -> list[str]:
        return [words for words in self.found if not any(re.search(pattern, words) for pattern in self.expected)]

    def listen(self, context: BrowserContext) -> None:
        def on_console(message: ConsoleMessage) -> None:
            if message.type == "error":
                self.found.append(f"{message.text} ({message.location.get('url', '')})")

        def on_error(error: WebError) -> None:
            self.found.append(f"uncaught: {error.error.stack or error.error.message}")

        context.on("console", on_console)
        context.on("weberror", on_error)


@dataclass
class Visitor:
    page: Page
    url: str
    complaints: Complaints

    # -- places

    @property
    def log(self) -> Locator:
        return self.page.get_by_role("log")

    @property
    def box(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message", exact=True)

    @property
    def list(self) -> Locator:
        return self.page.get_by_role("navigation", name="Conversations")

    @property
    def approval(self) -> Locator:
        return self.page.get_by_role("region", name="Approval needed")

    @property
    def queue(self) -> Locator:
        return self.page.get_by_role("region", name="Queued messages")

    @property
    def stop_button(self) -> Locator:
        return self.page.get_by_role("banner").get_by_role("button", name="Stop")

    @property
    def search_field(self) -> Locator:
        return self.page.get_by_role("searchbox", name="Search all conversations")

    @property
    def conversation(self) -> str:
        found = re.search(r"/c/([\w-]+)", self.page.url)
        assert found, f"no conversation is open at {self.page.url}"
        return found.group(1)

    def row(self, name: str | re.Pattern[str]) -> Locator:
        """A row of the transcript by the name a screen reader says."""
        return self.log.get_by_role("article", name=name)

    # -- doing

    async def may_choose_full(self) -> None:
        """From the next page on the server says that it allows full access, as one does that was set up for it."""

        async def allowed(route: Route) -> None:
            answer = await route.fetch()
            await route.fulfill(response=answer, json={**await answer.json(), "full_enabled": True})

        await self.page.route("**/api/session", allowed)

    async def go(self, path: str = "/") -> None:
        await self.page.goto(self.url + path)

    async def open(self, conversation: str) -> None:
        await self.go(f"/c/{conversation}")
        await expect(self.log).to_be_visible()

    async def begin(self, text: str) -> str:
        """A new conversation with a first message; its id."""
        await self.go()
        await self.send(text)
        await expect(self.log).to_be_visible()
        return self.conversation

    async def send(self, text: str) -> None:
        await self.box.fill(text)
        await self.box.press("Enter")

    async def show_list(self) -> None:
        """On a phone the list is a drawer."""
        if not await self.search_field.is_visible():
            await self.page.get_by_role("button", name="Show conversations").click()

    async def rests(self) -> None:
        """Until nothing runs any more."""
        await expect(self.stop_button).to_have_count(0)

    async def read(self) -> str:
        """The transcript as it reads."""
        return await self.log.inner_text()

    async def asked(self) -> None:
        """Until an approval is there and hears: at first it is deaf, for those who did not see it come."""
        await expect(self.approval.get_by_role("button", name="Allow once")).to_be_enabled()

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.page.keyboard.press(key)


@dataclass
class Visitors:
    """Makes visitors, each with cookies and storage of their own, and hears all complaints."""

    browser: Browser
    complaints: Complaints = field(default_factory=Complaints)
    _contexts: list[BrowserContext] = field(default_factory=list[BrowserContext])

    async def stranger(self, url: str, size: tuple[int, int] = DESKTOP, **options: Any) -> Visitor:
        """Not signed in."""
        width, height = size
        # A worker would answer for the server, also after a new build; only tests that are about it want one.
        options.setdefault("service_workers", "block")
        context = await self.browser.new_context(
            viewport={"width": width, "height": height}, locale="en-GB", timezone_id="UTC", **options
        )
        self._contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        self.complaints.listen(context)
        return Visitor(await context.new_page(), url, self.complaints)

    async def owner(self, url: str, token: str, size: tuple[int, int] = DESKTOP, **options: Any) -> Visitor:
        """Signed in with the token, without the page."""
        visitor = await self.stranger(url, size, **options)
        answer = await visitor.page.context.request.post(f"{url}/api/session", data={"token": token})
        assert answer.ok, await answer.text()
        return visitor

    async def close(self) -> None:
        for context in self._contexts:
            await context.close()


@asynccontextmanager
async def visiting(browser: Browser) -> AsyncIterator[Visitors]:
    visitors = Visitors(browser)
    try:
        yield visitors
    finally:
        await visitors.close()
    unexpected = visitors.complaints.unexpected
    assert not unexpected, "the browser complained:\n" + "\n".join(unexpected)
