"""The golden logs for the terminal: their events, what a transcript says of a state, and a server that serves one badly."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from aiohttp import web

from palaver.core.fold.evolve import fold
from palaver.schema.events import Event, decode_event
from palaver.schema.view import State
from palaver.tui.theme import DARK
from palaver.tui.transcript.renderer import Drawing, gap_before, heads_answer
from palaver.tui.transcript.row_book import RowBook
from palaver.tui.transcript.rows import Row, WorkRow
from palaver.tui.transcript.work import unfold

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.jsonl"))
NOW_MS = 1_760_000_000_000
COLUMNS = 76


def lines_of(name: str) -> list[bytes]:
    return (GOLDEN / f"{name}.jsonl").read_bytes().splitlines()


def start_of(name: str) -> State:
    """Where the log begins: nothing, or the snapshot before its first event."""
    first = decode_event(lines_of(name)[0]).seq
    states = msgspec.json.decode((GOLDEN / f"{name}.states.json").read_bytes(), type=dict[str, State])
    return states.get(str(first - 1), State())


def reloaded(state: State) -> State:
    """As it comes over the wire: equal, and no part of it the same object."""
    return msgspec.json.decode(msgspec.json.encode(state), type=State)


def book() -> RowBook:
    return RowBook(lambda ts: ts // 86_400_000 * 86_400_000)


def drawing() -> Drawing:
    return Drawing(COLUMNS, DARK, NOW_MS)


def text_of(rows: Sequence[Row], drawn: Drawing, opened: frozenset[str] = frozenset()) -> list[str]:
    """All lines of a transcript, whether they are in sight or not."""

    def is_open(row: Row) -> bool:
        return row.key in opened or (isinstance(row, WorkRow) and row.is_live)

    lines: list[str] = []
    rows, _ = unfold(rows, is_open)
    for place, row in enumerate(rows):
        previous = rows[place - 1] if place else None
        lines += [""] * gap_before(previous, row)
        drawn_lines = drawn.draw(row, is_open=is_open(row), heads=heads_answer(previous, row))
        lines += ["".join(segment.text for segment in line).rstrip() for line in drawn_lines]
    return lines


class Dropping:
    """Serves one log and drops the connection after every event, each time with what was sent before sent once more."""

    def __init__(self, name: str, resync_at: int | None = None) -> None:
        """`resync_at`: in the place of this event and the next comes one snapshot."""
        self.resync_at = resync_at
        self.lines = lines_of(name)
        self.events: list[Event] = [decode_event(line) for line in self.lines]
        self.start = start_of(name)
        self.head = self.events[-1].seq
        self.connections = 0

    async def snapshot(self, request: web.Request) -> web.Response:
        return _json(self.start)

    async def listing(self, request: web.Request) -> web.Response:
        fields = {"title": "", "agent": "", "project": None, "status": "idle", "created_at": 0, "updated_at": 0}
        return _json({"id": "golden", "seq": self.head, **fields})

    async def about(self, request: web.Request) -> web.Response:
        return _json({"version": "1"})

    async def stream(self, request: web.Request) -> web.StreamResponse:
        self.connections += 1
        after = int(request.query["after"])
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        at = next((at for at, event in enumerate(self.events) if event.seq > after), len(self.events))
        if at == self.resync_at:
            state = fold(self.start, self.events[: at + 2])
            frame = {"type": "snapshot", "conversation": "golden", "seq": state.seq, "reason": "behind", "state": state}
            await response.write(b"event: snapshot\ndata: " + msgspec.json.encode(frame) + b"\n\n")
            return response
        # The one before it again, then the next one, then the one before it once more: a client takes each once.
        for place in (at - 1, at, at - 1):
            if 0 <= place < len(self.events):
                await response.write(b"data: " + self.lines[place] + b"\n\n")
        return response


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


@asynccontextmanager
async def dropping(name: str, resync_at: int | None = None) -> AsyncIterator[tuple[Dropping, str]]:
    served = Dropping(name, resync_at)
    app = web.Application()
    app.router.add_get("/api/conversations/golden/snapshot", served.snapshot)
    app.router.add_get("/api/conversations/golden/events", served.stream)
    app.router.add_get("/api/conversations/golden", served.listing)
    app.router.add_get("/api/about", served.about)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield served, f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
