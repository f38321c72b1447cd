"""Another face's words, live: projected once whoever reads, in order, and one word to whoever is too far behind."""

import asyncio
from collections.abc import Sequence

from palaver.clock import ManualClock
from palaver.core.fold.evolve import evolve
from palaver.faces.http.rings import Beat, Behind, Piece
from palaver.faces.projection import RING_BYTES, Following, Projected, Told
from palaver.feed.feed import BACKLOG_BYTES, HEARTBEAT_S, Feed
from palaver.log.base import Append
from palaver.log.memory import MemoryLog
from palaver.schema.events import DraftSet, Event, encode_event
from palaver.schema.view import State

WAIT_S = 10.0


class Twice:
    """Says each draft twice, and counts how often it was asked."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def project(self, event: Event, before: State, after: State) -> Sequence[Told]:
        self._world.projections += 1
        if after.draft == "break":
            raise ValueError("not to be said")
        return [Told(f"{before.draft}>{after.draft}".encode()), Told(after.draft.encode())]

    def renewed(self, state: State) -> Sequence[Told]:
        return [Told(b"renewed")]


class World:
    def __init__(self) -> None:
        self.log = MemoryLog()
        self.clock = ManualClock()
        self.feed = Feed(self.log, self.clock, self.snapshot)
        self.view = State(conversation="c")
        self.projections = 0
        self.projected = Projected(self.feed, self.state, lambda _: Twice(self))

    async def snapshot(self, conversation: str) -> tuple[int, bytes]:
        return self.view.seq, b"{}"

    async def state(self, conversation: str) -> State:
        return self.view

    async def draft(self, text: str) -> None:
        event = DraftSet(seq=self.view.seq + 1, conversation="c", text=text)
        line = encode_event(event)
        await self.log.append(Append("c", self.view.seq, [line]))
        self.view = evolve(self.view, event)
        self.feed.publish("c", event.seq, event.seq, line + b"\n")


async def next_of(reader: Following) -> Piece[Told] | Beat | Behind:
    return await asyncio.wait_for(reader.next(), WAIT_S)


async def until(reader: Following, body: bytes) -> list[bytes]:
    found: list[bytes] = []
    while not found or found[-1] != body:
        item = await next_of(reader)
        assert isinstance(item, Piece)
        found += [told.body for told in item.frames]
    return found


async def test_readers_share_one_projection_and_what_it_said() -> None:
    world = World()
    await world.draft("before")
    async with world.projected.following("c") as first, world.projected.following("c") as second:
        await world.draft("a")
        await world.draft("b")
        assert await until(first, b"b") == await until(second, b"b") == [b"before>a", b"a", b"a>b", b"b"]
    assert world.projections == 2


async def test_later_reader_begins_with_the_view_of_its_moment() -> None:
    world = World()
    await world.draft("a")
    async with world.projected.following("c") as reader:
        await world.draft("b")
        await until(reader, b"b")
        async with world.projected.following("c") as later:
            assert later.state.draft == "b"
            await world.draft("c")
            assert await until(later, b"c") == [b"b>c", b"c"]


async def test_reader_that_stops_is_told_once_and_begins_anew() -> None:
    world = World()
    await world.draft("")
    large = "x" * (RING_BYTES // 4)
    async with world.projected.following("c") as slow, world.projected.following("c") as quick:
        for text in (large, "small") * 3:
            await world.draft(text)
            await until(quick, text.encode())
            assert world.projected.kept_bytes <= RING_BYTES
        assert isinstance(await next_of(slow), Behind)
        slow.begin_anew()
        assert slow.state.draft == "small"
        await world.draft("after")
        assert await until(slow, b"after") == [b"small>after", b"after"]


async def test_server_that_fell_behind_itself_tells_its_readers_and_nothing_twice() -> None:
    world = World()
    await world.draft("")
    async with world.projected.following("c") as reader:
        await world.draft("a")
        await until(reader, b"a")
        # More than the feed keeps for a reader, before the projection had a moment to read any of it.
        for number in range(2 * BACKLOG_BYTES // 50_000):
            await world.draft(f"{number} " + "x" * 50_000)
        assert await until(reader, b"renewed") == [b"renewed"]
        last = world.view.draft
        await world.draft("after")
        assert await until(reader, b"after") == [f"{last}>after".encode(), b"after"]


async def test_event_that_cannot_be_said_silences_nobody() -> None:
    world = World()
    await world.draft("")
    async with world.projected.following("c") as reader:
        await world.draft("break")
        await world.draft("b")
        assert await until(reader, b"b") == [b"break>b", b"b"]


async def test_silence_is_broken_by_beats() -> None:
    world = World()
    await world.draft("")
    beating = asyncio.create_task(world.feed.beat())
    try:
        async with world.projected.following("c") as reader:
            await world.draft("a")
            await until(reader, b"a")
            waiting = asyncio.create_task(next_of(reader))
            while not waiting.done():
                await world.clock.advance(HEARTBEAT_S)
            assert waiting.result() == Beat()
    finally:
        beating.cancel()


async def test_nothing_is_left_when_the_last_reader_leaves() -> None:
    world = World()
    await world.draft("")
    async with world.projected.following("c"):
        await world.draft("a")
    pumps = {task for task in asyncio.all_tasks() if task.get_name().startswith("project ")}
    if pumps:
        await asyncio.wait(pumps, timeout=WAIT_S)
    assert all(task.done() for task in pumps)
    assert world.feed.readers == 0
