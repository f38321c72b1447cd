"""Appends: numbered without a gap, byte for byte, once per client request id, never after a head that moved."""

import asyncio

import pytest

from palaver.errors import HeadMoved
from palaver.log.base import GENESIS, Append, Claim, EventLog, Used, chained
from tests.contract.log.lines import all_lines, deltas, row, write


async def test_lines_come_back_byte_for_byte_in_their_order(log: EventLog) -> None:
    lines = [*deltas(1, 3), b'{"type":"from.the.future","seq":4,"x":"\xe2\x80\xa8"}']
    appended = await log.append(Append("c", 0, lines))
    assert (appended.first, appended.last) == (1, 4)
    assert await all_lines(log, "c") == lines


async def test_unknown_conversation_has_no_head_and_no_lines(log: EventLog) -> None:
    assert await log.head("nobody") is None
    assert not await log.read("nobody", 0)


async def test_head_carries_the_chain_over_every_line(log: EventLog) -> None:
    lines = deltas(1, 5)
    await log.append(Append("c", 0, lines[:2]))
    await log.append(Append("c", 2, lines[2:]))
    chain = GENESIS
    for line in lines:
        chain = chained(chain, line)
    head = await log.head("c")
    assert head is not None
    assert (head.seq, head.chain) == (5, chain)


@pytest.mark.parametrize("after", [0, 1, 3, 99])
async def test_append_after_another_head_is_refused_and_writes_nothing(log: EventLog, after: int) -> None:
    await write(log, "c", 0, 2)
    with pytest.raises(HeadMoved):
        await log.append(Append("c", after, deltas(after + 1, 1)))
    assert len(await all_lines(log, "c")) == 2
    await write(log, "c", 2, 1)


async def test_of_two_racing_appends_one_wins(log: EventLog) -> None:
    results = await asyncio.gather(write(log, "c"), write(log, "c"), return_exceptions=True)
    assert sum(isinstance(result, HeadMoved) for result in results) == 1
    assert len(await all_lines(log, "c")) == 1


async def test_positions_are_store_wide_and_without_a_gap(log: EventLog) -> None:
    assert await log.position() == 0
    first = await log.append(Append("a", 0, deltas(1, 3, "a")))
    second = await log.append(Append("b", 0, deltas(1, 2, "b")))
    third = await log.append(Append("a", 3, deltas(4, 1, "a")))
    assert [first.pos, second.pos, third.pos] == [1, 4, 6]
    assert await log.position() == 6
    everything = await log.read_all(0)
    assert [(name, segment.first, segment.last, segment.pos) for name, segment in everything] == [
        ("a", 1, 3, 1),
        ("b", 1, 2, 4),
        ("a", 4, 4, 6),
    ]
    assert [name for name, _ in await log.read_all(3)] == ["b", "a"]


async def test_claim_is_found_for_ever_with_the_events_it_made(log: EventLog) -> None:
    await write(log, "c", 0, 2, claims=[Claim("request", "hash")])
    await write(log, "other")
    assert await log.used("c", "request") == Used("hash", 1, 2)
    assert await log.used("c", "unknown") is None
    assert await log.used("other", "request") is None


async def test_claim_of_a_refused_append_stays_free(log: EventLog) -> None:
    await write(log, "c")
    with pytest.raises(HeadMoved):
        await write(log, "c", 0, 1, claims=[Claim("request", "hash")])
    assert await log.used("c", "request") is None


async def test_claim_used_twice_is_refused(log: EventLog) -> None:
    await write(log, "c", 0, 1, claims=[Claim("request", "hash")])
    with pytest.raises(HeadMoved):
        await write(log, "c", 1, 1, claims=[Claim("request", "hash")])


async def test_reading_pages_by_bytes_and_misses_nothing(log: EventLog) -> None:
    for start in range(0, 60, 3):
        await write(log, "c", start, 3)
    segments = await log.read("c", 0, 1)
    assert len(segments) == 1
    assert len(await all_lines(log, "c", limit_bytes=500)) == 60
    later = await log.read("c", 57, 1 << 20)
    assert later[-1].last == 60
    assert not await log.read("c", 60)


async def test_one_bad_append_of_a_moment_does_not_harm_the_others(log: EventLog) -> None:
    await write(log, "bad")
    results = await asyncio.gather(
        write(log, "one"), write(log, "bad", 7), write(log, "two", listing=row("two")), return_exceptions=True
    )
    assert [type(result) for result in results] == [type(None), HeadMoved, type(None)]
    assert len(await all_lines(log, "one")) == len(await all_lines(log, "two")) == 1
