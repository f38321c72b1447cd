"""Somebody at the page: signs in, writes, reads, answers. And what the browser complained about meanwhile.

Every wait is bounded and is for exactly what is meant: a page is read once it rests, never a moment after an action. Finds
things by what a person or a screen reader would find them by; a class name only where neither has a word for it.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
from playwright.async_api import (
    APIResponse,
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Route,
    StorageState,
    WebError,
    expect,
)
from playwright.async_api import TimeoutError as PlaywrightTimeout

from tests.flows.served import PageKey

WAIT_MS = 30_000
"""The longest a page takes to show what it should: most of it is the machine's other work."""
UNHURRIED_MS = 60_000
"""For what includes a start of the server or a wait of the page's own."""
LOOK_EVERY_S = 0.05
"""How often a server is asked for what it tells nobody."""

KEY_UNDER = "palaver.key"
"""In the storage of the page's origin."""

DESKTOP = (1280, 900)
PHONE = (390, 844)

expect.set_options(timeout=WAIT_MS)

# What still stands between the page and rest. A message that is on its way has not begun its turn yet, so that there is
# nothing to stop; and before the transcript is there, the page knows of neither.
_AT_WORK = """() => {
  if (document.querySelector("[role=log]") === null) return ["the transcript is not there"];
  const kept = JSON.parse(sessionStorage.getItem("palaver.outbox") ?? "[]").filter(({ status }) => status !== "failed");
  const sending = [...document.querySelectorAll(".user-byline")].filter(one => /^(Sending|Will send)/.test(one.textContent));
  const stop = document.querySelectorAll(".bar-stop");
  return [...kept.map(({ command }) => command.type), ...[...sending, ...stop].map(one => one.textContent)];
}"""

# The list hides a new row until it was measured, and draws none before it knows its own height. So the text is taken when
# there are rows, none is hidden, and two frames agree.
_READ = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const log = document.querySelector("[role=log]");
  const drawn = () => log.querySelector("article") !== null && log.querySelector("[style*='visibility: hidden']") === null;
  let [before, now] = [null, undefined];
  while (!drawn() || before !== now) {
    await frame();
    [before, now] = [now, log.innerText];
  }
  return now;
}"""


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


async def signed_in(url: str, token: str) -> StorageState:
    """What a browser holds after a sign-in: the cookie, and the page key in the storage of the page's origin."""
    async with httpx.AsyncClient(verify=False, timeout=WAIT_MS / 1000) as http:
        answer = await http.post(f"{url}/api/session", json={"token": token})
    assert answer.is_success, answer.text
    (cookie,) = answer.cookies.jar
    return {
        "cookies": [
            {
                "name": cookie.name,
                "value": cookie.value or "",
                "domain": urlsplit(url).hostname or "",
                "path": "/",
                "httpOnly": True,
                "sameSite": "Strict",
            }
        ],
        # The page puts it where no script can read it.
        "origins": [{"origin": url, "localStorage": [{"name": KEY_UNDER, "value": answer.json()["key"]}]}],
    }


@dataclass
class Requests:
    """Calls of the API beside the page, in its browser's name."""

    page: Page
    key: str
    """Of the sign-in: the page itself cannot tell it."""

    async def get(self, url: str, **options: Any) -> APIResponse:
        return await self._call("get", url, options)

    async def post(self, url: str, **options: Any) -> APIResponse:
        return await self._call("post", url, options)

    async def put(self, url: str, **options: Any) -> APIResponse:
        return await self._call("put", url, options)

    async def delete(self, url: str, **options: Any) -> APIResponse:
        return await self._call("delete", url, options)

    async def _call(self, method: str, url: str, options: dict[str, Any]) -> APIResponse:
        request, address = self.page.context.request, httpx.URL(url)
        if query := options.pop("params", None):
            address = address.copy_merge_params(query)
        health = str(address.copy_with(raw_path=b"/api/health"))
        challenge = (await request.get(health, headers={"Palaver-Proof": "none"})).headers["palaver-challenge"]
        proof = PageKey(self.key).prove(challenge, method.upper(), address.netloc.decode(), address.raw_path)
        headers = {**options.pop("headers", {}), "Palaver-Proof": proof}
        return await request.fetch(str(address), method=method, headers=headers, **options)


@dataclass
class Visitor:
    page: Page
    url: str
    complaints: Complaints
    key: str = ""

    # -- places

    @property
    def request(self) -> Requests:
        return Requests(self.page, self.key)

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

    async def unfold(self) -> None:
        """Opens the work of every turn in sight that is over."""
        summaries = self.row("Work of this turn").get_by_role("button")
        await expect(summaries.first).to_be_visible()
        closed = self.row("Work of this turn").get_by_role("button", expanded=False)
        while await closed.count():
            await closed.first.press("Enter")

    async def rests(self) -> None:
        """Until everything that was sent has arrived, and nothing runs any more."""
        try:
            await self.page.wait_for_function(f"() => ({_AT_WORK})().length === 0", timeout=UNHURRIED_MS)
        except PlaywrightTimeout:
            raise AssertionError(f"it does not rest: {await self.page.evaluate(_AT_WORK)}") from None

    async def has_rested(self, conversation: str) -> None:
        """Until nothing runs in a conversation that need not be on the page."""
        address = f"{self.url}/api/conversations/{conversation}/snapshot"
        async with asyncio.timeout(UNHURRIED_MS / 1000):
            while True:
                view = await (await self.request.get(address)).json()
                if view.get("messages") and not view.get("turn") and not view.get("queue"):
                    return
                await asyncio.sleep(LOOK_EVERY_S)

    async def read(self) -> str:
        """The transcript as it reads, once it is drawn."""
        async with asyncio.timeout(WAIT_MS / 1000):
            return str(await self.page.evaluate(_READ))

    async def reads(self, words: str) -> None:
        """Until the transcript reads exactly so."""
        try:
            await self.page.wait_for_function(
                "words => document.querySelector('[role=log]')?.innerText === words", arg=words
            )
        except PlaywrightTimeout:
            assert await self.read() == words

    async def asked(self) -> None:
        """Until an approval is there, was read to its end, and hears: at first it is deaf, for those who did not see it come."""
        await expect(self.approval.get_by_role("button", name="Deny").first).to_be_visible()
        for shown in await self.approval.locator(".request-exact").all():
            await shown.evaluate("node => node.scrollTo(0, node.scrollHeight)")
        await expect(self.approval.get_by_role("button", name="Allow once")).to_be_enabled()

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.page.keyboard.press(key)

    async def command(self, words: str) -> None:
        """The command of the palette that fits these words, by keys; typed once the field hears."""
        await self.press("Control+k")
        field = self.page.get_by_role("combobox", name="Commands")
        await expect(field).to_be_focused()
        await field.press_sequentially(words)
        chosen = self.page.get_by_role("option", selected=True)
        await expect(chosen).to_contain_text(re.compile(re.escape(words), re.IGNORECASE))
        await self.press("Enter")
        await expect(field).to_have_count(0)


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
        state = await signed_in(url, token)
        visitor = await self.stranger(url, size, storage_state=state, **options)
        visitor.key = state["origins"][0]["localStorage"][0]["value"]
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
