"""The terminal UI: a long conversation on the screen, and what an answer that streams into it costs.

The screen is filled in this process, by the real app without a terminal. What streaming costs is the processor time of a real
`palaver tui` in a real pseudo-terminal; the floor beside it is Textual's own Markdown widget, fed the same text ten times
a second in a process of its own.
"""

import asyncio
import fcntl
import os
import pty
import struct
import sys
import tempfile
import termios
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
from aiohttp import web

from bench.logs import Writer, turn_events
from bench.served import Served, palaver_serving
from bench.table import Row
from palaver.client.client import Client
from palaver.clock import SystemClock
from palaver.conversation.recovery.load import snapshot_of
from palaver.log.sqlite.store import open_sqlite_log
from palaver.schema.commands import SendMessage
from palaver.schema.events import ConversationCreated, KnownEvent
from palaver.schema.view import State
from palaver.tui.app import PalaverApp
from palaver.tui.people import People
from palaver.tui.transcript.row_book import RowBook

BLOCKS = 8_522
TOKENS = 1_500
TOKENS_S = 100
TOKEN_CHARS = 4
CONVERSATION = "long"
COLUMNS, LINES = 140, 40
READY_S = 0.2
CPU_PERCENT = 25
TICK = os.sysconf("SC_CLK_TCK")
SETTLE_S = 4.0
"""A started terminal has drawn everything and rests."""

PARAGRAPH = (
    "Most *tides* come twice a day; `high water` is some fifty minutes later each time, and **springs** follow the "
    "moon. Where the coast is shallow the water comes far, and goes far again.\n\n"
)
PART = (
    "## The table\n\n- high water at four\n- low water at ten, *give or take*\n\n"
    "```python\ndef tide(hour: int) -> float:\n    return math.cos(hour / 12.42 * math.tau)\n```\n\n"
)


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    ready_s = await _ready_s()
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "data"
        await _write(data)
        async with _provider() as provider, palaver_serving(provider, data) as server:
            share, start_s = await _share_while_streaming(server)
    floor = await _share_of_textual()
    return [
        Row(
            what=f"terminal: {BLOCKS:,} blocks on the screen, after the data",
            measured=f"{ready_s:.2f} s",
            goal=f"≤ {READY_S} s",
            met=ready_s <= READY_S,
        ),
        Row(
            what=f"terminal: streaming {TOKENS_S} tokens/s",
            measured=f"{share:.0f} % of a core",
            floor=f"{floor:.0f} % by Textual's Markdown",
            ratio=share / floor,
            goal=f"≤ {CPU_PERCENT} %",
            met=share <= CPU_PERCENT,
        ),
        Row(what="terminal: from the command to the first line", measured=f"{start_s:.2f} s"),
    ]


# -- a long conversation


def _long(writer: Writer, turns: int) -> list[KnownEvent]:
    """Each turn is two blocks: a question and an answer of one to five paragraphs."""
    events: list[KnownEvent] = []
    for day in range(turns):
        events += turn_events(f"And on day {day}?", PARAGRAPH * (1 + day % 5), 1)
    return events


async def _ready_s() -> float:
    """From a view with everything in it to the first frame that shows its end."""
    writer = Writer.fresh(CONVERSATION)
    writer.number([ConversationCreated(title="Tides"), *_long(writer, BLOCKS // 2)])
    async with Client.connect("http://127.0.0.1:9", "") as nowhere:
        app = PalaverApp(nowhere, SystemClock())
        async with app.run_test(size=(COLUMNS, LINES)) as pilot:
            await pilot.pause()
            return min([await _shown_s(app, writer.state) for _ in range(5)])


async def _shown_s(app: PalaverApp, state: State) -> float:
    transcript = app.main.transcript
    transcript.open_another()
    painted = asyncio.Event()
    begun = time.perf_counter()
    rows = RowBook(lambda ts: 0).rows(state)
    transcript.show(rows, now_ms=state.updated_at, people=People())
    transcript.call_after_refresh(painted.set)
    async with asyncio.timeout(60):
        await painted.wait()
    taken = time.perf_counter() - begun
    assert len(rows) >= BLOCKS
    assert transcript.render_line(LINES // 2).text.strip()
    return taken


async def _write(data: Path) -> None:
    data.mkdir()  # noqa: ASYNC240 - nothing else runs yet
    async with open_sqlite_log(data) as log:
        writer = Writer.fresh(CONVERSATION)
        await writer.append(log, [ConversationCreated(title="Tides")])
        for _ in range(10):
            await writer.append(log, _long(writer, 50))
        await log.save_snapshot(CONVERSATION, snapshot_of(writer.state, 0))


# -- a real terminal


async def _share_while_streaming(server: Served) -> tuple[float, float]:
    command = [sys.executable, "-m", "palaver", "tui", CONVERSATION, "--data", str(server.data), "--url", server.url]
    begun = time.monotonic()
    async with _terminal(command) as terminal:
        await terminal.shows(b"Message")
        start_s = time.monotonic() - begun
        await asyncio.sleep(SETTLE_S)
        async with Client.connect(server.url, server.token) as client:
            await client.command(CONVERSATION, SendMessage(content="And then?"))
            before, begun = _cpu_s(terminal.pid), time.monotonic()
            await _rest(client)
        return 100 * (_cpu_s(terminal.pid) - before) / (time.monotonic() - begun), start_s


async def _rest(client: Client) -> None:
    async with asyncio.timeout(120):
        async for followed in client.follow(CONVERSATION):
            if followed.state.turn is None and followed.state.last_turn and followed.events:
                return


async def _share_of_textual() -> float:
    async with _terminal([sys.executable, "-m", "bench.terminal"]) as terminal:
        await terminal.shows(b"tides")
        before, begun = _cpu_s(terminal.pid), time.monotonic()
        await asyncio.sleep(TOKENS / TOKENS_S * 0.8)
        return 100 * (_cpu_s(terminal.pid) - before) / (time.monotonic() - begun)


class _Terminal:
    def __init__(self, pid: int, master: int) -> None:
        self.pid = pid
        self._master = master
        self._seen = b""
        self._news = asyncio.Event()

    def read(self) -> None:
        with suppress(OSError):
            self._seen = (self._seen + os.read(self._master, 65_536))[-200_000:]
            self._news.set()

    async def shows(self, words: bytes) -> None:
        async with asyncio.timeout(60):
            while words not in self._seen:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def _terminal(command: Sequence[str]) -> AsyncIterator[_Terminal]:
    """A program in a pseudo-terminal whose output is taken as fast as it comes."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.execvp(command[0], list(command))
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    terminal = _Terminal(pid, master)
    loop = asyncio.get_running_loop()
    loop.add_reader(master, terminal.read)
    try:
        yield terminal
    finally:
        loop.remove_reader(master)
        os.kill(pid, 9)
        os.waitpid(pid, 0)  # noqa: ASYNC222 - killed a line above
        os.close(master)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def _text() -> str:
    part = PARAGRAPH * 2 + PART
    return part * (TOKENS * TOKEN_CHARS // len(part) + 1)


@asynccontextmanager
async def _provider() -> AsyncIterator[str]:
    text = _text()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        begun = asyncio.get_running_loop().time()
        for number in range(TOKENS):
            await asyncio.sleep(max(0.0, begun + number / TOKENS_S - asyncio.get_running_loop().time()))
            await response.write(_chunk(delta={"content": text[number * TOKEN_CHARS : (number + 1) * TOKEN_CHARS]}))
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


def _chunk(**choice: object) -> bytes:
    return b"data: " + msgspec.json.encode({"choices": [{"index": 0, **choice}]}) + b"\n\n"


def _textual_alone() -> None:
    """The floor: nothing but Textual's Markdown in a scroll, fed ten times a second."""
    from textual.app import App, ComposeResult
    from textual.containers import VerticalScroll
    from textual.widgets import Markdown

    class Floor(App[None]):
        def compose(self) -> ComposeResult:
            with VerticalScroll():
                yield Markdown()

        def on_mount(self) -> None:
            self.query_one(VerticalScroll).anchor()
            self.run_worker(self._feed())

        async def _feed(self) -> None:
            text, stream = _text(), Markdown.get_stream(self.query_one(Markdown))
            size = TOKENS_S * TOKEN_CHARS // 10
            for at in range(0, len(text), size):
                await stream.write(text[at : at + size])
                await asyncio.sleep(0.1)

    Floor().run()


if __name__ == "__main__":
    _textual_alone()
