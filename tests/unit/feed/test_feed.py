"""Replay, then live: no hole, no double, whatever the reader's speed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import msgspec
import pytest

from palaver.clock import ManualClock
from palaver.errors import NotFound
from palaver.feed.feed import BACKLOG_BYTES, HEARTBEAT_S, CaughtUp, Feed, Heartbeat, Item, Snapshot
from palaver.feed.frames import Frame
from palaver.log.base import Append
from palaver.log.memory import MemoryLog
from palaver.schema.events import TextDelta, TextFinished, encode_event

WAIT_S = 10.0


class Writer:
    """An owner reduced to its last step: append, then publish."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.clock = ManualClock()
        self.feed = Feed(self.log, self.clock, self.snapshot)
        self.seq = 0
        self.snapshots = 0

    async def snapshot(self, conversation: str) -> tuple[int, bytes]:
        self.snapshots += 1
        return self.seq, b"{}"

    async def write(self, *texts: str) -> None:
        lines = [
            encode_event(TextDelta(seq=self.seq + n, conversation="c", message="m", block=0, text=text))
            for n, text in enumerate(texts, 1)
        ]
        await self.log.append(Append("c", self.seq, lines))
        self.feed.publish("c", self.seq + 1, self.seq + len(lines), b"\n".join(lines) + b"\n")
        self.seq += len(lines)


async def take(items: AsyncIterator[Item], last: int) -> list[Item]:
    """What a subscriber gets until it has seen a seq."""
    seen: list[Item] = []

    async def read() -> None:
        async for item in items:
            seen.append(item)
            if isinstance(item, Frame | Snapshot) and (item.last if isinstance(item, Frame) else item.seq) >= last:
                return

    await asyncio.wait_for(read(), WAIT_S)
    return seen


def seqs(items: list[Item]) -> list[int]:
    lines = [line for item in items if isinstance(item, Frame) for line in item.body.splitlines()]
    return [msgspec.json.decode(line)["seq"] for line in lines]


async def test_replay_then_live_has_no_hole_and_no_double() -> None:
    writer = Writer()
    await writer.write("a", "b", "c")
    async with aclosing(writer.feed.subscribe("c", 0)) as items:
        replayed = await take(items, 3)
        await writer.write("d")
        await writer.write("e", "f")
        live = await take(items, 6)
    assert seqs(replayed) + seqs(live) == [1, 2, 3, 4, 5, 6]


async def test_events_written_while_joining_arrive_once() -> None:
    writer = Writer()
    await writer.write("a")
    async with aclosing(writer.feed.subscribe("c", 0)) as items:
        first = asyncio.ensure_future(anext(items))
        await asyncio.sleep(0)
        await writer.write("b")
        frame = await asyncio.wait_for(first, WAIT_S)
        rest = await take(items, 2) if not (isinstance(frame, Frame) and frame.last >= 2) else []
    assert seqs([frame, *rest]) == [1, 2]


async def test_what_waits_goes_out_as_one_write_shared_by_all_in_step() -> None:
    writer = Writer()
    await writer.write("a")
    async with aclosing(writer.feed.subscribe("c", 1)) as one, aclosing(writer.feed.subscribe("c", 1)) as two:
        assert isinstance(await anext(one), CaughtUp)
        assert isinstance(await anext(two), CaughtUp)
        for text in "bcdef":
            await writer.write(text)
        first, second = await anext(one), await anext(two)
    assert isinstance(first, Frame)
    assert (first.first, first.last) == (2, 6)
    assert first is second
    assert first.sse().count(b"id: ") == 5


async def test_cursor_from_the_future_gets_a_snapshot_at_once() -> None:
    writer = Writer()
    await writer.write("a")
    async with aclosing(writer.feed.subscribe("c", 99)) as items:
        first = await anext(items)
        assert isinstance(first, Snapshot)
        assert (first.seq, first.reason) == (1, "future")
        await writer.write("b")
        assert seqs(await take(items, 2)) == [2]


async def test_cursor_inside_compacted_deltas_gets_a_snapshot_and_one_before_them_a_tombstone() -> None:
    writer = Writer()
    await writer.write("a", "b", "c")
    done = encode_event(TextFinished(seq=4, conversation="c", message="m", block=0, text="abc"))
    await writer.log.append(Append("c", 3, [done]))
    writer.seq = 4
    assert await writer.log.compact("c", 4) == 3
    async with aclosing(writer.feed.subscribe("c", 2)) as items:
        first = await anext(items)
        assert isinstance(first, Snapshot)
        assert first.reason == "compacted"
    async with aclosing(writer.feed.subscribe("c", 0)) as items:
        assert seqs(await take(items, 4)) == [3, 4]


async def test_reader_that_stalls_gets_one_snapshot_and_the_others_notice_nothing() -> None:
    writer = Writer()
    await writer.write("a")
    big = "x" * 50_000
    async with aclosing(writer.feed.subscribe("c", 1)) as stalled, aclosing(writer.feed.subscribe("c", 1)) as brisk:
        assert isinstance(await anext(stalled), CaughtUp)
        got: list[Item] = []
        for _ in range(2 * BACKLOG_BYTES // len(big)):
            await writer.write(big)
            got += await take(brisk, writer.seq)
        assert seqs(got) == list(range(2, writer.seq + 1))
        after = await anext(stalled)
        assert isinstance(after, Snapshot)
        assert (after.seq, after.reason) == (writer.seq, "behind")
        await writer.write("end")
        assert seqs(await take(stalled, writer.seq)) == [writer.seq]
    assert writer.snapshots == 1


async def test_slow_reader_within_bounds_reads_on_from_the_log() -> None:
    writer = Writer()
    await writer.write("a")
    async with aclosing(writer.feed.subscribe("c", 1)) as slow:
        assert isinstance(await anext(slow), CaughtUp)
        for _ in range(10):
            await writer.write("x" * 50_000)
        assert seqs(await take(slow, writer.seq)) == list(range(2, 12))
    assert writer.snapshots == 0


async def test_silence_is_filled_with_heartbeats() -> None:
    writer = Writer()
    await writer.write("a")
    beating = asyncio.ensure_future(writer.feed.beat())
    async with aclosing(writer.feed.subscribe("c", 1)) as items:
        assert isinstance(await anext(items), CaughtUp)
        waiting = asyncio.ensure_future(anext(items))
        await asyncio.sleep(0)
        await writer.clock.advance(HEARTBEAT_S)
        assert isinstance(await asyncio.wait_for(waiting, WAIT_S), Heartbeat)
    beating.cancel()


async def test_reader_who_leaves_leaves_nothing_behind() -> None:
    writer = Writer()
    await writer.write("a")
    async with aclosing(writer.feed.subscribe("c", 0)) as items:
        await take(items, 1)
        assert writer.feed.readers == 1
    assert writer.feed.readers == 0


async def test_unknown_conversation_is_said() -> None:
    async with aclosing(Writer().feed.subscribe("nobody", None)) as items:
        with pytest.raises(NotFound):
            await anext(items)
