"""What every log promises about compaction: fewer bytes, the same conversation, and no reader who notices."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palaver.core.evolve import fold
from palaver.log.base import GENESIS, Append, EventLog, chained_through, lines_after
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


async def write(log: EventLog, conversation: str, lines: list[bytes], among: str | None = None) -> None:
    """An event a commit, as a stream is written; `among` is a conversation that writes in between."""
    for seq, line in enumerate(lines, 1):
        await log.append(Append(conversation, seq - 1, [line]))
        if among:
            await append(log, among, seq - 1)


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
        assert stone.chain == chained_through(GENESIS, lines[: stone.seq]).hex()


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
    await write(store.log, "a", lines, among="b")
    position = await store.log.position()
    await store.log.compact("a", len(lines))
    await store.log.compact("b", len(lines))
    assert len(await store.log.read("b", 0)) == 1
    for cursor in range(position + 1):
        places: list[int] = []
        after = cursor
        while pieces := await store.log.read_all(after, 1):
            for name, piece in pieces:
                found = events(piece.body.splitlines())
                places += [piece.pos + event.seq - piece.first for event in found]
                # In this log the two took turns: `a` on the odd places, `b` on the even ones.
                assert all((piece.pos + event.seq - piece.first) % 2 == (name == "a") for event in found)
                after = piece.pos + piece.last - piece.first
        assert places == sorted(set(places))
        kept = {2 * event.seq - 1 for event in events(lines) if not isinstance(event, Delta)}
        kept |= {2 * seq for seq in range(1, len(lines) + 1)}
        assert {place for place in places if place in kept} == {place for place in kept if place > cursor}


async def test_an_unfinished_block_keeps_its_fragments_until_it_is_finished(store: Store) -> None:
    begun: list[KnownEvent] = [AnswerStarted(message="m"), TextDelta(message="m", block=0, text="half")]
    lines = numbered_lines([*begun, TextFinished(message="m", block=0, text="half")], "a")
    await write(store.log, "a", lines[:2])
    assert await store.log.compact("a", 2) == 0
    await store.log.append(Append("a", 2, lines[2:]))
    assert await store.log.compact("a", 3) == 1
