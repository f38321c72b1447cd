"""A reader whose connection breaks, at every place of every golden log: it holds what one reader without a break would hold.

The real client follows over real HTTP. The server is a few lines that play a log and break off on purpose: after an event,
or in the middle of the next one's bytes.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from palaver.client import Client, follow
from palaver.core.fold.evolve import fold
from palaver.schema.events import Event, LogCompacted, decode_event
from palaver.schema.view import State

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.jsonl"))
WAIT_S = 60.0

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Log:
    lines: list[bytes]
    events: list[Event]
    start: State
    """What a reader held before the first line: nothing, or the snapshot that the log begins after."""

    @classmethod
    def read(cls, name: str) -> "Log":
        lines = (GOLDEN / f"{name}.jsonl").read_bytes().splitlines()
        events = [decode_event(line) for line in lines]
        first = events[0].seq if not isinstance(events[0], LogCompacted) else 1
        known = msgspec.json.decode((GOLDEN / f"{name}.states.json").read_bytes()).get(str(first - 1))
        return cls(lines, events, State() if known is None else msgspec.convert(known, State))

    @property
    def frames(self) -> list[bytes]:
        return [b"id: %d\ndata: %s\n\n" % pair for pair in zip((e.seq for e in self.events), self.lines, strict=True)]

    @property
    def last(self) -> State:
        return fold(self.start, self.events)


@dataclass
class Breaking:
    """Plays a log, and breaks off on purpose."""

    log: Log
    breaks: Iterator[int | None]
    """For each connection: after so many events, or never."""
    spills: bool = False
    """The first half of the next event gets through before the break."""
    repeats: int = 0
    """How many events before the cursor are sent once more."""
    url: str = ""
    cursors: list[int] = field(default_factory=list[int])

    async def events(self, request: web.Request) -> web.StreamResponse:
        after = int(request.query["after"])
        limit = next(self.breaks)
        self.cursors.append(after)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        known = sum(event.seq <= after for event in self.log.events)
        frames = self.log.frames
        repeated, frames = frames[max(0, known - self.repeats) : known], frames[known:]
        await response.write(b": open\n\n" + b"".join([*repeated, *frames[:limit]]))
        if limit is not None and request.transport is not None:
            if self.spills and limit < len(frames):
                await response.write(frames[limit][: len(frames[limit]) // 2])
            request.transport.close()
            return response
        await asyncio.Event().wait()
        return response

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Breaking"]:
        app = web.Application()
        app.router.add_get("/api/conversations/{conversation}/events", self.events)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield self
        finally:
            await runner.cleanup()


async def followed(server: Breaking, client: Client) -> State:
    """What a reader holds at the end of the log."""
    last_seq = server.log.events[-1].seq
    async with asyncio.timeout(WAIT_S), aclosing(client.follow("golden", server.log.start)) as views:
        async for view in views:
            if view.state.seq >= last_seq:
                return view.state
    raise AssertionError("following ended by itself")


@pytest.fixture(autouse=True)
def _comes_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of breaks, each with the pause that spares a real server, would take minutes."""
    monkeypatch.setattr(follow, "FIRST_PAUSE_S", 0.0)


@pytest.mark.parametrize(
    ("spills", "repeats"),
    [(False, 0), (True, 0), (False, 3)],
    ids=["between events", "within an event", "with repeats"],
)
@pytest.mark.parametrize("name", NAMES)
async def test_reader_that_is_cut_off_after_every_event_holds_the_same_view(
    name: str, spills: bool, repeats: int
) -> None:
    log = Log.read(name)
    breaking = Breaking(log, repeat(1), spills, repeats)
    async with breaking.serving() as server, Client.connect(server.url, "") as client:
        assert await followed(server, client) == log.last
    assert server.cursors == [log.start.seq, *(event.seq for event in log.events[:-1])]


@pytest.mark.parametrize("name", NAMES)
async def test_reader_that_is_cut_off_once_anywhere_holds_the_same_view(name: str) -> None:
    log = Log.read(name)
    last = log.last
    async with Breaking(log, repeat(None)).serving() as server, Client.connect(server.url, "") as client:
        for place in range(len(log.events)):
            server.cursors.clear()
            server.breaks = chain([place], repeat(None))
            assert await followed(server, client) == last, f"{name} cut off after {place} events"
            assert len(server.cursors) == 2
