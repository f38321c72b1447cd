"""Another face's words, live: projected once whoever reads, in order, and one word to whoever is too far behind."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from palaver.clock import ManualClock
from palaver.core.evolve import evolve
from palaver.faces.projected import RING_BYTES, Beat, Behind, Projected, Said, Told
from palaver.feed.feed import HEARTBEAT_S, Feed
from palaver.log.base import Append
from palaver.log.memory import MemoryLog
from palaver.schema.events import DraftSet, Event, encode_event
from palaver.schema.view import State

WAIT_S = 10.0
FRAMES_AN_EVENT = 2


class Twice:
    """Says each draft twice, and counts how often it was asked."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def project(self, event: Event, before: State, after: State, number: int) -> Sequence[Told]:
        self._world.projections += 1
        if after.draft == "break":
            raise ValueError("not to be said")
        return [Told(f"{before.draft}>{after.draft}".encode()), Told(after.draft.encode())]

    def renewed(self, state: State, number: int) -> Sequence[Told]:
        return [Told(b"renewed")]


class World:
    def __init__(self) -> None:
        self.log = MemoryLog()
        self.clock = ManualClock()
        self.feed = Feed(self.log, self.clock, self.snapshot)
        self.view = State(conversation="c")
        self.projections = 0
        self.projected = Projected(
            self.feed, self.state, lambda _: Twice(self), lambda state: FRAMES_AN_EVENT * state.seq
        )

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


async def next_of(items: AsyncIterator[Sequence[Said] | Beat | Behind]) -> Sequence[Said] | Beat | Behind:
    return await asyncio.wait_for(anext(items), WAIT_S)


async def until(items: AsyncIterator[Sequence[Said] | Beat | Behind], body: bytes) -> list[Said]:
    found: list[Said] = []
    while not found or found[-1].body != body:
        item = await next_of(items)
        assert isinstance(item, Sequence)
        found += item
    return found


async def test_readers_share_one_projection_and_its_numbers() -> None:
    world = World()
    await world.draft("before")
    async with (
        world.projected.following("c") as first,
        world.projected.following("c") as second,
        aclosing(first.items()) as ones,
        aclosing(second.items()) as others,
    ):
        await world.draft("a")
        await world.draft("b")
        one, other = await until(ones, b"b"), await until(others, b"b")
    assert one == other
    assert [(said.number, said.body) for said in one] == [
        (3, b"before>a"),
        (4, b"a"),
        (5, b"a>b"),
        (6, b"b"),
    ]
    assert world.projections == 2


async def test_numbers_never_go_back_for_a_later_reader() -> None:
    world = World()
    await world.draft("a")
    async with world.projected.following("c") as reader, aclosing(reader.items()) as items:
        await world.draft("b")
        last = (await until(items, b"b"))[-1].number
    async with world.projected.following("c") as later:
        assert later.number >= last
        assert later.state.draft == "b"


async def test_reader_that_stops_is_told_once_and_begins_anew() -> None:
    world = World()
    await world.draft("")
    large = "x" * (RING_BYTES // 4)
    async with (
        world.projected.following("c") as slow,
        world.projected.following("c") as quick,
        aclosing(slow.items()) as slow_items,
        aclosing(quick.items()) as quick_items,
    ):
        for text in (large, "small") * 3:
            await world.draft(text)
            await until(quick_items, text.encode())
        assert await next_of(slow_items) == Behind()
        assert slow.state.draft == "small"
        await world.draft("after")
        assert [said.body for said in await until(slow_items, b"after")] == [b"small>after", b"after"]


async def test_event_that_cannot_be_said_silences_nobody() -> None:
    world = World()
    await world.draft("")
    async with world.projected.following("c") as reader, aclosing(reader.items()) as items:
        await world.draft("break")
        await world.draft("b")
        assert [said.body for said in await until(items, b"b")] == [b"break>b", b"b"]


async def test_silence_is_broken_by_beats() -> None:
    world = World()
    await world.draft("")
    beating = asyncio.create_task(world.feed.beat())
    try:
        async with world.projected.following("c") as reader, aclosing(reader.items()) as items:
            await world.draft("a")
            await until(items, b"a")
            waiting = asyncio.create_task(next_of(items))
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
