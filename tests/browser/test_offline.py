"""On a phone in a tunnel: the page opens without its server and shows what was last seen, to be read; nobody else's, and
nothing old once the server answers again."""

import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web
from playwright.async_api import Page, expect

from tests.browser.looks import SCHEMES, axe_findings, fits, picture
from tests.browser.player import PAGE, Player, page_files
from tests.browser.served import Palaver, palaver_serving
from tests.browser.visitor import PHONE, UNHURRIED_MS, WAIT_MS, Visitor, Visitors
from tests.provider.server import ScriptedProvider

POLL_MS = 100
UNREACHABLE = ("ERR_CONNECTION_REFUSED", "ERR_FAILED", "WebSocket connection", "status of 401")


@pytest.fixture
async def palaver(tmp_path_factory: pytest.TempPathFactory, provider: ScriptedProvider) -> AsyncIterator[Palaver]:
    """One for each test: it is stopped and started."""
    async with palaver_serving(tmp_path_factory.mktemp("palaver"), provider.url) as palaver:
        yield palaver


async def installed(page: Page) -> None:
    """Until the worker has kept the page and answers for it."""
    await page.evaluate(
        """async () => {
          await navigator.serviceWorker.ready;
          if (navigator.serviceWorker.controller) return;
          await new Promise((done) => navigator.serviceWorker.addEventListener("controllerchange", done, {once: true}));
        }"""
    )


_COPIED = """async () => {
  // Opening what is not there would make it.
  if (!(await indexedDB.databases()).some(({name}) => name === "palaver")) return {};
  const asked = indexedDB.open("palaver");
  const database = await new Promise((done) => { asked.onsuccess = () => done(asked.result); });
  const got = database.transaction("states").objectStore("states").getAll();
  const found = await new Promise((done) => { got.onsuccess = () => done(got.result); });
  database.close();
  return Object.fromEntries(found.map(({id, state}) => [id, JSON.stringify(state)]));
}"""


async def copied(page: Page, fits: Callable[[dict[str, str]], bool]) -> None:
    """Until the copy on this device is as wanted: conversations by id, each as text."""
    found: dict[str, str] = {}
    for _ in range(WAIT_MS // POLL_MS):
        found = await page.evaluate(_COPIED)
        if fits(found):
            return
        await page.wait_for_timeout(POLL_MS)
    raise AssertionError(f"the copy holds {found}")


async def reader(visitors: Visitors, palaver: Palaver, size: tuple[int, int] = PHONE) -> tuple[Visitor, str]:
    """Somebody who read a conversation on this device, which keeps it."""
    visitors.complaints.expect(*UNREACHABLE)
    ada = await visitors.owner(palaver.url, palaver.token, size, service_workers="allow")
    conversation = await ada.begin("Which moss grows on stone?")
    await expect(ada.log).to_contain_text("You said: Which moss")
    await ada.rests()
    await installed(ada.page)
    await copied(ada.page, lambda found: "You said: Which moss" in found.get(conversation, ""))
    return ada, conversation


async def test_without_a_server_the_page_opens_and_shows_what_was_last_seen_to_be_read(
    palaver: Palaver, visitors: Visitors
) -> None:
    ada, conversation = await reader(visitors, palaver)
    await palaver.stop()
    await ada.page.reload()
    await expect(ada.log).to_contain_text("You said: Which moss")
    banner = ada.page.get_by_role("status").filter(has_text="The server does not answer")
    await expect(banner).to_contain_text("nothing can be changed")
    await expect(ada.box).to_have_count(0)
    await expect(ada.page.get_by_role("button", name="Conversation actions")).to_have_count(0)
    for scheme in SCHEMES:
        await picture(ada.page, f"offline-conversation-{scheme}", scheme)
        assert not await axe_findings(ada.page, scheme)
    await fits(ada.page)

    await ada.go()
    await expect(ada.page.get_by_text("This is the copy on this device")).to_be_visible()
    row = ada.page.get_by_role("main").get_by_role("link", name=re.compile("Which moss"))
    await expect(row).to_be_visible()
    await picture(ada.page, "offline-list")
    assert not await axe_findings(ada.page, "dark")
    await row.click()
    await expect(ada.page.get_by_role("region", name=re.compile("^Preview"))).to_contain_text("You said: Which moss")

    await palaver.start()
    # By itself, at its next try.
    await expect(banner).to_have_count(0, timeout=UNHURRIED_MS)
    await ada.open(conversation)
    await ada.send("And on wood?")
    await expect(ada.log).to_contain_text("You said: And on wood?")


async def test_conversation_that_was_not_seen_here_is_said_to_be_missing_from_the_copy(
    palaver: Palaver, visitors: Visitors
) -> None:
    ada, _ = await reader(visitors, palaver)
    await palaver.stop()
    await ada.go("/c/elsewhere")
    await expect(ada.page.get_by_role("alert")).to_contain_text("not in the copy on this device")
    await picture(ada.page, "offline-missing")


async def test_signing_out_takes_the_copy_away(palaver: Palaver, visitors: Visitors) -> None:
    ada, conversation = await reader(visitors, palaver, (1280, 900))
    await ada.command("sign out")
    await expect(ada.page.get_by_role("button", name="Sign in")).to_be_visible()
    await copied(ada.page, lambda found: not found)
    await palaver.stop()
    await ada.go(f"/c/{conversation}")
    await expect(ada.page.get_by_role("heading", name="The server does not answer")).to_be_visible()
    await expect(ada.page.get_by_text("Which moss")).to_have_count(0)
    await picture(ada.page, "offline-door")


async def test_token_that_was_changed_takes_the_copy_away(palaver: Palaver, visitors: Visitors) -> None:
    ada, conversation = await reader(visitors, palaver)
    await palaver.stop()
    (palaver.data / "token").write_text("x" * 43 + "\n")
    await palaver.start()
    await ada.go(f"/c/{conversation}")
    await expect(ada.page.get_by_role("button", name="Sign in")).to_be_visible()
    await copied(ada.page, lambda found: not found)


async def test_answers_of_the_server_are_never_kept_by_the_worker(palaver: Palaver, visitors: Visitors) -> None:
    ada, _ = await reader(visitors, palaver)
    names: list[str] = await ada.page.evaluate(
        """async () => {
          const found = [];
          for (const name of await caches.keys()) {
            for (const request of await (await caches.open(name)).keys()) found.push(new URL(request.url).pathname);
          }
          return found;
        }"""
    )
    assert "/" in names
    assert any(name.startswith("/assets/") for name in names)
    assert not [name for name in names if name.startswith("/api")]
    assert {name for name in names if not name.startswith("/assets/")} == {
        "/",
        *(f"/{path.name}" for path in PAGE.iterdir() if path.is_file() and path.name not in ("index.html", "sw.js")),
    }


class Upgraded(Player):
    """Serves the page as it is built, or a newer one with another index, and with another version of the server."""

    newer = False

    async def page(self, request: web.Request) -> web.Response:
        answer = await super().page(request)
        assert isinstance(answer.body, bytes)
        if self.newer and answer.content_type == "text/html":
            answer.body = answer.body.replace(b"</title>", b" </title><meta name=newer>")
        return answer


async def test_page_is_the_servers_newest_although_the_worker_keeps_an_older_one(visitors: Visitors) -> None:
    page_files.cache_clear()
    player = Upgraded(Player.of("work").lines)
    player.head = len(player.lines)
    async with player.serving():
        visitor = await visitors.stranger(player.url, service_workers="allow")
        await visitor.open(player.conversation)
        await installed(visitor.page)
        await visitor.page.reload()
        await expect(visitor.log).to_be_visible()
        await expect(visitor.page.locator("meta[name=newer]")).to_have_count(0)
        player.newer = True
        await visitor.page.reload()
        await expect(visitor.log).to_be_visible()
        await expect(visitor.page.locator("meta[name=newer]")).to_have_count(1)
        await visitor.page.close()


async def test_manifest_has_all_that_a_phone_asks_for(palaver: Palaver, visitors: Visitors) -> None:
    ada = await visitors.owner(palaver.url, palaver.token)
    await ada.go()
    manifest: dict[str, Any] = json.loads(await (await ada.request.get(f"{palaver.url}/manifest.webmanifest")).text())
    assert {"name", "short_name", "start_url", "scope", "display", "background_color", "theme_color"} <= manifest.keys()
    purposes = {(icon["purpose"], icon["sizes"]) for icon in manifest["icons"]}
    assert {("any", "192x192"), ("any", "512x512"), ("maskable", "512x512")} <= purposes
    for icon in manifest["icons"]:
        answer = await ada.request.get(f"{palaver.url}{icon['src']}")
        assert answer.ok
        assert answer.headers["content-type"] == icon["type"]
        if icon["type"] == "image/png":
            width = int.from_bytes((await answer.body())[16:20], "big")
            assert f"{width}x{width}" == icon["sizes"]
    session = await ada.page.context.new_cdp_session(ada.page)
    found = await session.send("Page.getAppManifest")
    assert found["errors"] == []
    problems = await session.send("Page.getInstallabilityErrors")
    assert [one["errorId"] for one in problems["installabilityErrors"] if one["errorId"] != "in-incognito"] == []
