"""The page in a real Chromium: a long conversation, an answer that streams into it, and what it costs.

Every block of the conversation is loaded first, which no reader does: an opened conversation holds its last hundred messages.
"""

import asyncio
import gzip
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from msgspec.structs import replace
from playwright.async_api import CDPSession, Page, expect

import palaver
from bench.logs import Writer, turn_events
from bench.served import Served, palaver_serving
from bench.table import Row
from palaver.client import Client
from palaver.conversation.loading import snapshot_of
from palaver.log.sqlite import open_sqlite_log
from palaver.schema.commands import SendMessage
from palaver.schema.events import ConversationCreated, KnownEvent
from tests.browser.chromium import chromium_running

BLOCKS = 8_000
TOKENS = 1_000
TOKENS_S = 100
CONVERSATION = "long"
WAIT_MS = 120_000
"""Loading all of it takes eighty pages."""

TOKEN_CHARS = 4
FURTHER_UP_PX = 6_000

LONGEST_TASK_MS = 50
MAIN_THREAD_PERCENT = 15
INITIAL_KB = 130

WORDS = "Most *tides* come twice a day; `high water` is some fifty minutes later each time, and **springs** follow the moon. "

# Counts frames and long tasks and, for a reader further up, how far the first row in sight moves.
WATCH = """
window.watch = {
  begin(reading) {
    Object.assign(this, { tasks: [], frames: 0, movedPx: 0, begun: performance.now(), on: true });
    this.observer = new PerformanceObserver((list) => this.tasks.push(...list.getEntries().map((task) => task.duration)));
    this.observer.observe({ type: "longtask" });
    const rows = [...document.querySelectorAll("[role=log] article")];
    const row = reading ? rows.find((one) => one.getBoundingClientRect().top > 100) : null;
    const top = row?.getBoundingClientRect().top;
    const frame = () => {
      if (!this.on) return;
      this.frames += 1;
      if (row) this.movedPx = Math.max(this.movedPx, Math.abs(row.getBoundingClientRect().top - top));
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  },
  end() {
    this.on = false;
    this.observer.disconnect();
    const seconds = (performance.now() - this.begun) / 1000;
    return { tasks: this.tasks, fps: this.frames / seconds, moved_px: this.movedPx, seconds };
  },
};
"""


class Watched(msgspec.Struct, frozen=True):
    tasks: list[float]
    """Those over 50 ms; shorter ones are not told."""
    fps: float
    moved_px: float
    seconds: float
    main_thread_s: float = 0.0


def measure() -> list[Row]:
    return [*asyncio.run(_measure()), _initial_js()]


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "data"
        await _write(data)
        async with _ticking_provider() as provider, palaver_serving(provider, data) as server:
            return await _in_chromium(server)


async def _write(data: Path) -> None:
    data.mkdir()  # noqa: ASYNC240 - nothing else runs yet
    async with open_sqlite_log(data) as log:
        writer = Writer.fresh(CONVERSATION)
        await writer.append(log, [ConversationCreated(title="Tides")])
        for start in range(0, BLOCKS // 2, 100):
            events: list[KnownEvent] = []
            for day in range(start, start + 100):
                events += turn_events(f"And on day {day}?", WORDS * (1 + day % 5), 1)
            await writer.append(log, events)
        await log.save_snapshot(CONVERSATION, snapshot_of(writer.state, 0))


async def _in_chromium(server: Served) -> list[Row]:
    expect.set_options(timeout=WAIT_MS)
    async with chromium_running() as browser:
        context = await browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(WAIT_MS)
        await context.request.post(f"{server.url}/api/session", data={"token": server.token})
        page = await context.new_page()
        await page.add_init_script(WATCH)
        opened_ms = await _opened_ms(page, server)
        await _load_everything(page, server)
        metrics = await context.new_cdp_session(page)
        await metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
        following = await _stream(page, metrics, server, reading=False)
        await page.get_by_role("log").hover()
        await page.mouse.wheel(0, -FURTHER_UP_PX)
        await expect(page.get_by_role("button", name="To the end")).to_be_visible()
        reading = await _stream(page, metrics, server, reading=True)
        await context.close()
    return _rows(opened_ms, following, reading)


async def _opened_ms(page: Page, server: Served) -> float:
    """From the request for the page to the last message on the screen."""
    await page.goto(f"{server.url}/c/{CONVERSATION}")
    shown = "() => document.querySelector('[role=log] article') && performance.now()"
    return float(await (await page.wait_for_function(shown)).json_value())


async def _load_everything(page: Page, server: Served) -> None:
    """By going to the first message, and back to the end."""
    await page.goto(f"{server.url}/c/{CONVERSATION}?at=2")
    await expect(page.get_by_text("And on day 0?", exact=True)).to_be_in_viewport()
    await page.get_by_role("button", name="To the end").click()
    await expect(page.get_by_text(f"And on day {BLOCKS // 2 - 1}?", exact=True)).to_be_in_viewport()


async def _stream(page: Page, metrics: CDPSession, server: Served, *, reading: bool) -> Watched:
    stop = page.get_by_role("banner").get_by_role("button", name="Stop")
    await page.evaluate("reading => watch.begin(reading)", reading)
    before_s = await _main_thread_s(metrics)
    async with Client.connect(server.url, server.token) as client:
        await client.command(CONVERSATION, SendMessage(content="And then?"))
    await expect(stop).to_be_visible()
    await expect(stop).to_have_count(0)
    spent_s = await _main_thread_s(metrics) - before_s
    return replace(msgspec.convert(await page.evaluate("watch.end()"), Watched), main_thread_s=spent_s)


async def _main_thread_s(metrics: CDPSession) -> float:
    found: dict[str, Any] = await metrics.send("Performance.getMetrics")
    return next(float(metric["value"]) for metric in found["metrics"] if metric["name"] == "TaskDuration")


def _rows(opened_ms: float, following: Watched, reading: Watched) -> list[Row]:
    streaming = f"streaming {TOKENS_S} tokens/s into {BLOCKS:,} blocks"
    tasks = sorted([*following.tasks, *reading.tasks])
    share = 100 * following.main_thread_s / following.seconds
    return [
        Row(what=f"opening a conversation of {BLOCKS:,} blocks", measured=f"{opened_ms:.0f} ms"),
        Row(
            what=f"longest task, {streaming}",
            measured=f"{tasks[-1]:.0f} ms, {len(tasks)} over {LONGEST_TASK_MS} ms"
            if tasks
            else f"< {LONGEST_TASK_MS} ms",
            goal=f"≤ {LONGEST_TASK_MS} ms",
            met=not tasks,
        ),
        Row(what=f"frames, {streaming}", measured=f"{following.fps:.0f}/s, {reading.fps:.0f}/s read further up"),
        Row(
            what=f"main thread, {streaming}",
            measured=f"{share:.0f} % of a core",
            goal=f"≤ {MAIN_THREAD_PERCENT} %",
            met=share <= MAIN_THREAD_PERCENT,
        ),
        Row(
            what="movement of what is read further up meanwhile",
            measured=f"{reading.moved_px:.0f} px",
            goal="0 px",
            met=reading.moved_px < 1,
        ),
    ]


def _initial_js() -> Row:
    """What index.html itself asks for; the rest comes when it is needed."""
    page = Path(palaver.__file__).parent / "web_dist"
    names = re.findall(r'(?:src|modulepreload" crossorigin href)="/([^"]+\.js)"', (page / "index.html").read_text())
    assert names, "the page is not built: run `make web`"
    kb = sum(len(gzip.compress((page / name).read_bytes(), 9)) for name in names) / 1024
    return Row(
        what="initial JavaScript, gzip", measured=f"{kb:.0f} KB", goal=f"≤ {INITIAL_KB} KB", met=kb <= INITIAL_KB
    )


@asynccontextmanager
async def _ticking_provider() -> AsyncIterator[str]:
    text = WORDS * (TOKENS * TOKEN_CHARS // len(WORDS) + 1)

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        begun = asyncio.get_running_loop().time()
        for number in range(TOKENS):
            await asyncio.sleep(max(0.0, begun + number / TOKENS_S - asyncio.get_running_loop().time()))
            token = text[number * TOKEN_CHARS : (number + 1) * TOKEN_CHARS]
            await response.write(_chunk(delta={"content": token}))
        await response.write(_chunk(delta={}, finish_reason="stop") + b"data: [DONE]\n\n")
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _chunk(**choice: Any) -> bytes:
    return b"data: " + msgspec.json.encode({"choices": [{"index": 0, **choice}]}) + b"\n\n"
