"""What every log promises about compaction: fewer bytes, the same conversation, and no reader who notices."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palaver.core.fold.evolve import fold
from palaver.log.base import GENESIS, Append, EventLog, Segment, chain_hash_through, lines_after
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ConversationCreated,
    Delta,
    Event,
    KnownEvent,
    LogCompacted,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    TurnFinished,
    TurnStarted,
    decode_event,
)
from palaver.schema.view import State, Trigger
from tests.unit.log.logs import numbered_lines
from tests.unit.log.stores import KINDS, Store, append, open_store, read_lines

pytestmark = pytest.mark.anyio


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(request.param, tmp_path / "data") as opened:
        yield opened


def turn(name: str) -> list[KnownEvent]:
    """A turn that thinks, writes, calls a tool and writes again: sixteen fragments among its events."""
    first, second, call = f"{name}-1", f"{name}-2", f"{name}-call"
    return [
        TurnStarted(turn=name, agent="default", backend="scripted", trigger=Trigger()),
        AnswerStarted(turn=name, message=first),
        *(ThinkingDelta(message=first, block=0, text="hm ") for _ in range(4)),
        ThinkingFinished(message=first, block=0, text="hm hm hm hm "),
        *(ToolInputDelta(message=first, block=1, call=call, name="read", text="{") for _ in range(4)),
        ToolCalled(message=first, block=1, call=call, name="read", input={"path": "x"}),
        AnswerFinished(message=first, finish_reason="tool_calls"),
        *(ToolOutputDelta(call=call, text="line\n") for _ in range(4)),
        ToolFinished(call=call, ok=True, output="line\n" * 4),
        AnswerStarted(turn=name, message=second),
        *(TextDelta(message=second, block=0, text="so ") for _ in range(4)),
        TextFinished(message=second, block=0, text="so so so so "),
        AnswerFinished(message=second, finish_reason="stop"),
        TurnFinished(turn=name, outcome="completed"),
    ]


async def write(log: EventLog, conversation: str, lines: list[bytes]) -> None:
    """An event a commit, as a stream is written."""
    for seq, line in enumerate(lines, 1):
        await log.append(Append(conversation, seq - 1, [line]))


def events(lines: list[bytes]) -> list[Event]:
    return [decode_event(line) for line in lines]


async def test_compaction_drops_fragments_and_keeps_the_conversation(store: Store) -> None:
    lines = numbered_lines([ConversationCreated(), *turn("t"), *turn("u")], "a")
    await write(store.log, "a", lines)
    assert await store.log.compact("a", len(lines)) == 32
    log = await store.reopen()
    short = await read_lines(log, "a")
    assert not any(isinstance(event, Delta) for event in events(short))
    assert fold(State(), events(short)) == fold(State(), events(lines))
    kept = [line for line in short if not isinstance(decode_event(line), LogCompacted)]
    assert kept == [line for line in lines if not isinstance(decode_event(line), Delta)]


async def test_compaction_merges_segments_and_keeps_head_and_chain(store: Store) -> None:
    lines = numbered_lines(turn("t"), "a")
    await write(store.log, "a", lines)
    before = await store.log.head("a")
    await store.log.compact("a", len(lines))
    (segment,) = await store.log.read("a", 0)
    assert (segment.first, segment.last, segment.compacted) == (1, len(lines), True)
    assert await store.log.head("a") == before
    assert (await store.log.verify()).damages in ([], ())
    stones = [event for event in events(await read_lines(store.log, "a")) if isinstance(event, LogCompacted)]
    for stone in stones:
        assert stone.chain == chain_hash_through(GENESIS, lines[: stone.seq]).hex()


async def test_compacting_again_changes_nothing(store: Store) -> None:
    lines = numbered_lines(turn("t"), "a")
    await write(store.log, "a", lines)
    await store.log.compact("a", len(lines))
    once = list(await store.log.read("a", 0))
    assert await store.log.compact("a", len(lines)) == 0
    assert await store.log.compact("a", len(lines) + 5) == 0
    assert list(await (await store.reopen()).read("a", 0)) == once


async def test_compaction_of_what_is_not_there_does_nothing(store: Store) -> None:
    assert await store.log.compact("nobody", 10) == 0
    await append(store.log, "a", 0, 3)
    assert await store.log.compact("a", 0) == 0
    assert await store.log.compact("a", 3) == 0


async def test_a_conversation_goes_on_after_compaction_and_is_compacted_as_it_grows(store: Store) -> None:
    lines = numbered_lines([*turn("t"), *turn("u"), *turn("v")], "a")
    length = len(turn("t"))
    for seq, line in enumerate(lines, 1):
        await store.log.append(Append("a", seq - 1, [line]))
        if seq % 7 == 0:
            await store.log.compact("a", seq)
    await store.log.compact("a", 3 * length)
    short = events(await read_lines(store.log, "a"))
    assert not any(isinstance(event, Delta) for event in short)
    assert fold(State(), short) == fold(State(), events(lines))
    assert len(await store.log.read("a", 0)) == 1
    assert (await store.log.verify()).damages in ([], ())


async def test_a_cursor_reads_on_behind_itself_after_compaction(store: Store) -> None:
    lines = numbered_lines(turn("t"), "a")
    await write(store.log, "a", lines)
    await store.log.compact("a", len(lines))
    for cursor in range(len(lines)):
        behind = [line for segment in await store.log.read("a", cursor) for line in lines_after(segment, cursor)]
        found = events(behind)
        assert all(event.seq > cursor for event in found)
        begin = found[0].first if isinstance(found[0], LogCompacted) else found[0].seq
        assert begin <= cursor + 1
        before = fold(State(), events(lines[:cursor]))
        assert fold(before, found) == fold(State(), events(lines))


async def test_read_all_keeps_the_order_of_commits_after_compaction(store: Store) -> None:
    lines = numbered_lines(turn("t"), "a")
    places: dict[tuple[str, int], int] = {}
    heads = {"b": 0, "c": 0}
    for seq, line in enumerate(lines, 1):
        places["a", seq] = (await store.log.append(Append("a", seq - 1, [line]))).pos
        for other in ("b", "c") if seq % 5 == 0 else ("b",):
            heads[other] += 1
            places[other, heads[other]] = (await append(store.log, other, heads[other] - 1)).pos
    for name in ("a", "b"):  # `c` stays in as many segments as it had commits.
        await store.log.compact(name, len(lines))
        assert len(await store.log.read(name, 0)) == 1
    gone = {("a", event.seq) for event in events(lines) if isinstance(event, Delta)}
    for cursor in range(len(places) + 1):
        for limit_bytes in (1, 1 << 30):
            found = await read_everything(store.log, cursor, limit_bytes)
            assert found == sorted(found)
            assert {(name, seq): pos for pos, name, seq in found}.items() <= places.items()
            expected = {key for key, pos in places.items() if pos > cursor}
            assert expected - gone <= {(name, seq) for _, name, seq in found} <= expected


async def read_everything(log: EventLog, after: int, limit_bytes: int) -> list[tuple[int, str, int]]:
    """Position, conversation and seq of every line behind a position, as a bus reads them."""
    found: list[tuple[int, str, int]] = []
    while pieces := await log.read_all(after, limit_bytes):
        for name, piece in pieces:
            seqs = [event.seq for event in events(piece.body.splitlines())]
            found += [(piece.pos + seq - piece.first, name, seq) for seq in seqs]
            after = piece.pos + piece.last - piece.first
    return found


async def test_a_long_conversation_is_compacted_piece_by_piece(store: Store) -> None:
    """Each time behind the segments that are large enough already, which stay as they are."""
    text = "long " * 3_000
    long_turn: list[KnownEvent] = [
        AnswerStarted(message="m"),
        *(TextDelta(message="m", block=0, text=text) for _ in range(3)),
        TextFinished(message="m", block=0, text=text * 3),
    ]
    lines: list[bytes] = []
    kept: list[Segment] = []
    for number in range(4):
        lines = numbered_lines([event for _ in range(number + 1) for event in long_turn], "a")
        for seq, line in enumerate(lines[5 * number :], 5 * number):
            await store.log.append(Append("a", seq, [line]))
        assert await store.log.compact("a", len(lines)) == 3
        segments = list(await store.log.read("a", 0, 1 << 30))
        assert segments[: len(kept)] == kept
        kept = segments
        assert (await store.log.verify()).damages in ([], ())
    assert len(kept) == 4
    assert fold(State(), events(await read_lines(store.log, "a"))) == fold(State(), events(lines))


async def test_an_unfinished_block_keeps_its_fragments_until_it_is_finished(store: Store) -> None:
    begun: list[KnownEvent] = [AnswerStarted(message="m"), TextDelta(message="m", block=0, text="half")]
    lines = numbered_lines([*begun, TextFinished(message="m", block=0, text="half")], "a")
    await write(store.log, "a", lines[:2])
    assert await store.log.compact("a", 2) == 0
    await store.log.append(Append("a", 2, lines[2:]))
    assert await store.log.compact("a", 3) == 1
