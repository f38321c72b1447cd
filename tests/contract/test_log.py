"""What every log promises about events: numbered, in order, once, and as they were given. Run over each store."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.errors import HeadMoved
from palaver.log.base import GENESIS, Append, Appended, Claim, Head, Used, chain_hash_through, lines_after
from tests.unit.log.stores import KINDS, WAIT_S, Kind, Store, append, line, lines, open_store, read_lines

pytestmark = pytest.mark.anyio


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(request.param, tmp_path / "data") as opened:
        yield opened


# -- append


async def test_append_numbers_events_from_one_without_a_gap(store: Store) -> None:
    assert await append(store.log, "a", 0, 3) == Appended(1, 3, 1)
    assert await append(store.log, "a", 3) == Appended(4, 4, 4)
    assert await append(store.log, "b", 0, 2) == Appended(1, 2, 5)
    assert await store.log.position() == 6


async def test_append_keeps_lines_byte_for_byte(store: Store) -> None:
    odd = [b'{"seq": 1,  "text":"\xc3\xbc\\n"}', b"not json at all \xff\xfe\r", b""]
    await store.log.append(Append("a", 0, odd))
    assert await read_lines(store.log, "a") == odd
    assert await read_lines(await store.reopen(), "a") == odd


async def test_append_after_another_head_is_refused_and_leaves_nothing(store: Store) -> None:
    await append(store.log, "a", 0, 2)
    for after in (0, 1, 3):
        with pytest.raises(HeadMoved):
            await store.log.append(
                Append("a", after, [line("a", 9)], claims=[Claim("late", "hash")]),
            )
    with pytest.raises(HeadMoved):
        await append(store.log, "new", 1)
    assert await store.log.head("new") is None
    assert await store.log.used("a", "late") is None
    assert await read_lines(store.log, "a") == lines("a", 0, 2)
    assert await append(store.log, "a", 2) == Appended(3, 3, 3)


async def test_appends_racing_for_one_head_have_one_winner(store: Store) -> None:
    racing = [store.log.append(Append("a", 0, [line("a", 1, f"racer {number}")])) for number in range(8)]
    outcomes = await asyncio.wait_for(asyncio.gather(*racing, return_exceptions=True), WAIT_S)
    assert [type(outcome) for outcome in outcomes].count(Appended) == 1
    assert sum(isinstance(outcome, HeadMoved) for outcome in outcomes) == 7
    assert len(await read_lines(store.log, "a")) == 1


async def test_appends_of_one_moment_may_follow_each_other_in_one_conversation(store: Store) -> None:
    outcomes = await asyncio.wait_for(asyncio.gather(*(append(store.log, "a", after) for after in range(5))), WAIT_S)
    assert [outcome.first for outcome in outcomes] == [1, 2, 3, 4, 5]


async def test_a_refused_append_takes_none_of_its_moment_down(store: Store) -> None:
    await append(store.log, "a", 0)
    good = [append(store.log, f"good{number}", 0) for number in range(10)]
    bad = [
        append(store.log, "a", 0),
        store.log.append(Append("b", 0, [b"two\nlines"])),
        store.log.append(Append("c", 0, [])),
    ]
    outcomes = await asyncio.wait_for(asyncio.gather(*good[:5], *bad, *good[5:], return_exceptions=True), WAIT_S)
    assert sum(isinstance(outcome, Appended) for outcome in outcomes) == 10
    assert [type(outcome) for outcome in outcomes[5:8]] == [HeadMoved, ValueError, ValueError]
    assert await store.log.head("b") is None
    assert await store.log.head("c") is None
    positions = sorted(outcome.pos for outcome in outcomes if isinstance(outcome, Appended))
    assert positions == list(range(2, 12))


async def test_head_carries_the_chain_of_every_event(store: Store) -> None:
    await append(store.log, "a", 0, 2)
    await append(store.log, "a", 2, 3)
    expected = Head(5, chain_hash_through(GENESIS, lines("a", 0, 5)))
    assert await store.log.head("a") == expected
    assert await (await store.reopen()).head("a") == expected
    assert await store.log.head("nobody") is None


async def test_a_restart_keeps_events_numbers_and_epoch(store: Store) -> None:
    await append(store.log, "a", 0, 2)
    await append(store.log, "b", 0)
    epoch = store.log.epoch
    log = await store.reopen()
    assert log.epoch == epoch
    assert await log.position() == 3
    assert await append(log, "a", 2) == Appended(3, 3, 4)
    assert await append(log, "c", 0) == Appended(1, 1, 5)
    assert await read_lines(log, "a") == lines("a", 0, 3)


async def test_two_stores_have_two_epochs(store: Store, tmp_path: Path) -> None:
    async with open_store(store.kind, tmp_path / "other") as other:
        assert other.log.epoch != store.log.epoch


# -- claims


async def test_a_claim_says_what_its_id_was_used_for(store: Store) -> None:
    await append(store.log, "a", 0)
    await store.log.append(Append("a", 1, lines("a", 1, 2), claims=[Claim("one", "h1"), Claim("two", "h2")]))
    await append(store.log, "a", 3)
    log = await store.reopen()
    assert await log.used("a", "one") == Used("h1", 2, 3)
    assert await log.used("a", "two") == Used("h2", 2, 3)
    assert await log.used("a", "three") is None
    assert await log.used("b", "one") is None


async def test_an_id_is_used_up_for_ever_and_only_in_its_conversation(store: Store) -> None:
    await store.log.append(Append("a", 0, [line("a", 1)], claims=[Claim("one", "h1")]))
    again = [
        store.log.append(Append("a", 1, [line("a", 2)], claims=[Claim("one", "h1")])),
        store.log.append(Append("b", 0, [line("b", 1)], claims=[Claim("one", "h2")])),
    ]
    refused, accepted = await asyncio.wait_for(asyncio.gather(*again, return_exceptions=True), WAIT_S)
    assert isinstance(refused, HeadMoved)
    assert isinstance(accepted, Appended)
    assert await store.log.head("a") == Head(1, chain_hash_through(GENESIS, [line("a", 1)]))
    assert await store.log.used("b", "one") == Used("h2", 1, 1)


async def test_two_claims_of_one_id_in_one_moment_have_one_winner(store: Store) -> None:
    racing = [
        store.log.append(Append("a", after, [line("a", after + 1)], claims=[Claim("one", "h")])) for after in (0, 1)
    ]
    first, second = await asyncio.wait_for(asyncio.gather(*racing, return_exceptions=True), WAIT_S)
    assert isinstance(first, Appended)
    assert isinstance(second, HeadMoved)


# -- read


async def test_read_returns_what_is_behind_the_cursor_in_order(store: Store) -> None:
    for after in range(0, 30, 3):
        await append(store.log, "a", after, 3)
        await append(store.log, "b", after, 3)
    for cursor in range(31):
        segments = await store.log.read("a", cursor)
        found = [found for segment in segments for found in lines_after(segment, cursor)]
        assert found == lines("a", cursor, 30 - cursor)
    assert await store.log.read("a", 30) in ([], ())
    assert await store.log.read("a", 99) in ([], ())
    assert await store.log.read("nobody", 0) in ([], ())


async def test_read_returns_at_least_one_segment_and_then_keeps_to_the_limit(store: Store) -> None:
    for after in range(10):
        await append(store.log, "a", after)
    size = len(line("a", 1)) + 1
    assert len(await store.log.read("a", 0, 1)) == 1
    assert len(await store.log.read("a", 0, 3 * size)) == 3
    assert len(await store.log.read("a", 0, 4 * size - 1)) == 3
    assert len(await store.log.read("a", 0)) == 10


async def test_a_segment_is_newline_ended_lines(store: Store) -> None:
    await append(store.log, "a", 0, 2)
    (segment,) = await store.log.read("a", 0)
    assert (segment.first, segment.last, segment.pos, segment.compacted) == (1, 2, 1, False)
    assert segment.body == line("a", 1) + b"\n" + line("a", 2) + b"\n"


async def test_read_all_returns_every_conversation_in_the_order_of_commits(store: Store) -> None:
    expected: list[tuple[str, int]] = []
    for after in range(4):
        for name in ("a", "b", "c"):
            await append(store.log, name, 2 * after, 2)
            expected += [(name, 2 * after + 1), (name, 2 * after + 2)]
    for cursor in range(len(expected) + 1):
        found: list[tuple[str, int]] = []
        position = cursor
        while pieces := await store.log.read_all(position, 1):
            for name, piece in pieces:
                assert piece.pos == position + 1
                assert piece.body == b"".join(line(name, seq) + b"\n" for seq in range(piece.first, piece.last + 1))
                found += [(name, seq) for seq in range(piece.first, piece.last + 1)]
                position = piece.pos + piece.last - piece.first
        assert found == expected[cursor:]


async def test_read_all_finds_its_place_inside_a_very_long_append(store: Store) -> None:
    await append(store.log, "a", 0, 9_000)
    await append(store.log, "b", 0)
    ((name, piece), (other, _)) = await store.log.read_all(8_998, 1 << 30)
    assert (name, piece.first, piece.last, piece.pos, other) == ("a", 8_999, 9_000, 8_999, "b")


async def test_a_reader_sees_its_own_writes_at_once(store: Store) -> None:
    for after in range(20):
        await append(store.log, "a", after)
        head = await store.log.head("a")
        assert head
        assert head.seq == after + 1
        assert len(await store.log.read("a", after)) == 1


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    given_lines=st.lists(
        st.lists(st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")), min_size=1, max_size=4),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_read_is_what_was_appended(
    tmp_path_factory: pytest.TempPathFactory, kind: Kind, given_lines: list[list[bytes]]
) -> None:
    async def check() -> None:
        async with open_store(kind, tmp_path_factory.mktemp("log")) as store:
            after = 0
            for batch in given_lines:
                await store.log.append(Append("a", after, batch))
                after += len(batch)
            assert await read_lines(await store.reopen(), "a") == [each for batch in given_lines for each in batch]
            assert (await store.log.verify()).damages in ([], ())

    asyncio.run(check())
