"""Attacks without an end: answers, thoughts, arguments and calls that go on and on are cut off in words, hold little memory,
and never keep another conversation from its turn."""

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from palaver.backends.api.collect import ANSWER_BLOCKS, ANSWER_BYTES, Collector
from palaver.backends.api.provider import ModelEvent, ServerPiece, TextPiece, ThinkingPiece, ToolPiece
from palaver.backends.api.sse import SseParser
from palaver.backends.base import Turn
from palaver.backends.script.script import Prompt, Say, Step, Think, Tool, Tools
from palaver.clock import ManualClock
from palaver.conversation import turn, turn_limits
from palaver.conversation.turn_limits import TurnLimits
from palaver.core.fold.evolve import evolve, fold
from palaver.errors import LimitReached, ProtocolBroken
from palaver.schema.events import (
    AnswerStarted,
    Event,
    KnownEvent,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ToolCalled,
    ToolInputDelta,
    ToolOutputDelta,
)
from palaver.schema.view import State
from tests.flows.served import WAIT_S, Served, serving

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# -- a turn, over a real server


def script(prompt: Prompt) -> Sequence[Step]:
    match prompt.text:
        case "text":
            return [Say("x" * (turn_limits.BLOCK_BYTES + 100_000), chunk=16_000), Say("after")]
        case "thought":
            return [Think("x" * (turn_limits.BLOCK_BYTES + 100_000), chunk=16_000), Say("after")]
        case "wide":
            return [Say("\N{PILE OF POO}" * (turn_limits.BLOCK_BYTES // 4 + 10_000), chunk=8_000), Say("after")]
        case "calls":
            return [Tools(tuple(Tool("read", {"path": str(at)}, output="ok") for at in range(1_500))), Say("after")]
        case "fragments":
            return [Say("word " * 10_000, chunk=5), Say("after")]
        case _:
            return [Say("Hello")]


async def attack(server: Served, words: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """How the attacked turn ended, and the view of its conversation; another conversation's turn ends meanwhile."""
    hostile, other = await server.create(), await server.create()
    await server.send(hostile, words)
    await server.send(other, "Hello")
    async with asyncio.timeout(WAIT_S):
        assert (await server.settled(other))[-1]["outcome"] == "completed"
        ended = (await server.settled(hostile))[-1]
    return ended, await server.state(hostile)


@pytest.mark.parametrize("words", ["text", "thought", "wide"])
async def test_endless_block_ends_its_turn_in_words_and_keeps_what_was_said(tmp_path: Path, words: str) -> None:
    async with serving(tmp_path / "data", script) as server:
        ended, state = await attack(server, words)
        assert (ended["type"], ended["outcome"]) == ("turn.finished", "limited")
        assert ended["error"]["code"] == "limit_reached"
        assert "in one piece" in ended["error"]["message"]
        assert "Send again" in ended["error"]["message"]
        assert state["turn"] is None
        assert "after" not in str(state["messages"])
        # The conversation goes on as if nothing had been.
        conversation = state["conversation"]
        await server.send(conversation, "Hello")
        assert (await server.settled(conversation, after=state["seq"]))[-1]["outcome"] == "completed"


@pytest.mark.parametrize("words", ["calls", "fragments"])
async def test_flood_within_the_limits_is_kept_whole_while_another_turn_runs(tmp_path: Path, words: str) -> None:
    async with serving(tmp_path / "data", script) as server:
        ended, state = await attack(server, words)
        assert ended["outcome"] == "completed"
        blocks = [block for message in state["messages"] for block in message["blocks"]]
        if words == "calls":
            assert sum(block["type"] == "tool" and block["status"] == "ok" for block in blocks) == 1_500
        else:
            assert any(block.get("text") == "word " * 10_000 for block in blocks)


class Flood:
    """An agent that yields one event for ever."""

    def __init__(self, event: KnownEvent) -> None:
        self.event = event
        self.yielded = 0

    async def run(self, _: Turn) -> AsyncIterator[KnownEvent]:
        yield AnswerStarted(message="m1")
        while True:
            self.yielded += 1
            yield self.event


@pytest.mark.parametrize(
    "event",
    [
        TextDelta(message="m1", block=0, text="x" * 10_000),
        ThinkingDelta(message="m1", block=0, text="x" * 10_000),
        ToolInputDelta(message="m1", block=0, call="c1", name="write", text="x" * 10_000),
        ToolOutputDelta(call="c1", text="x" * 100_000, stream="stdout"),
        TextFinished(message="m1", block=0, text="x" * 60_000),
    ],
    ids=lambda event: type(event).__name__,
)
async def test_backend_that_never_ends_is_ended_by_a_limit(
    tmp_path: Path, event: KnownEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = functools.partial(
        TurnLimits, block_bytes=200_000, turn_bytes=2_000_000, minute_bytes=1_000_000, turn_blocks=100
    )
    monkeypatch.setattr(turn, "TurnLimits", small)
    async with serving(tmp_path / "data") as server:
        flood = Flood(event)
        monkeypatch.setattr(server.agent, "run", flood.run)
        conversation = await server.create()
        await server.send(conversation, "Go")
        ended = (await server.settled(conversation))[-1]
        assert (ended["outcome"], ended["error"]["code"]) == ("limited", "limit_reached")
        assert flood.yielded < 1_000


# -- the limits themselves


def limits(**bounds: int) -> TurnLimits:
    return TurnLimits(ManualClock(), **bounds)


def taken_of(bounds: TurnLimits, event: KnownEvent) -> int:
    """How often an event is taken before a limit is reached."""
    for taken in range(5_000):
        try:
            bounds.take(event)
        except LimitReached:
            return taken
    raise AssertionError("There is no limit.")


def delta(text: str, block: int = 0) -> TextDelta:
    return TextDelta(message="m1", block=block, text=text)


def test_block_is_bounded_by_its_bytes_however_it_is_sliced() -> None:
    for size in (1, 10, 999):
        assert taken_of(limits(block_bytes=1_000), delta("ü" * size)) * 2 * size <= 1_000


def test_finished_block_is_bounded_too_and_does_not_count_twice() -> None:
    bounds = limits(block_bytes=1_000)
    for block in range(50):
        bounds.take(delta("x" * 500, block))
        bounds.take(TextFinished(message="m1", block=block, text="x" * 500))
    with pytest.raises(LimitReached):
        bounds.take(ToolCalled(message="m1", block=99, call="c", name="write", input={"a": "x" * 2_000}))


def test_turn_is_bounded_in_bytes_and_blocks() -> None:
    bounds = limits(turn_bytes=100_000)
    output = ToolOutputDelta(call="c1", text="x" * 1_000, stream="stdout")
    assert taken_of(bounds, output) < 100
    with pytest.raises(LimitReached, match="turn wrote more"):
        bounds.take(output)
    bounds = limits(turn_blocks=100)
    for block in range(100):
        bounds.take(delta("x", block))
    with pytest.raises(LimitReached, match="100 texts"):
        bounds.take(delta("x", 100))


async def test_minute_is_bounded_and_passes() -> None:
    clock = ManualClock()
    bounds = TurnLimits(clock, minute_bytes=10_000)
    for _ in range(100):
        for _ in range(4):
            bounds.take(delta("x" * 2_000))
        await clock.advance(61)
    assert taken_of(bounds, delta("x" * 2_000)) == 4
    with pytest.raises(LimitReached, match="within a minute"):
        bounds.take(delta("x" * 2_000))


# -- an answer of a model service


def collector() -> Collector:
    ids = (f"id-{at}" for at in range(1 << 30))
    return Collector(message="m", model="x", provider="p", new_id=lambda: next(ids), now_ms=lambda: 0)


def pieces(kind: str) -> Iterator[ModelEvent]:
    filler = "x" * 100_000
    for at in range(1 << 30):
        match kind:
            case "text":
                yield TextPiece(0, filler)
            case "thoughts that come back":
                yield ThinkingPiece(at % 2, filler)
            case "signatures":
                yield ThinkingPiece(0, "", signature=filler)
            case "sealed thoughts":
                yield ThinkingPiece(0, "", data=filler)
            case "arguments":
                yield ToolPiece(0, "c1", "write", filler)
            case "calls without arguments":
                yield ToolPiece(at, f"c{at}")
            case "calls of one index":
                yield ToolPiece(0, f"c{at}", "read", "{}")
            case "texts":
                yield TextPiece(at, "x")
            case "thoughts":
                yield ThinkingPiece(at, "x")
            case _:
                yield ServerPiece({"type": "search", "found": filler})


@pytest.mark.parametrize(
    "kind",
    [
        *("text", "thoughts that come back", "signatures", "sealed thoughts", "arguments", "calls without arguments"),
        *("calls of one index", "texts", "thoughts", "a service's own blocks"),
    ],
)
def test_answer_without_an_end_is_cut_off_in_words(kind: str) -> None:
    answer, source = collector(), pieces(kind)

    def take_all() -> None:
        for _ in range(max(ANSWER_BLOCKS, ANSWER_BYTES // 100_000) + 1):
            answer.take(next(source))

    with pytest.raises(LimitReached, match="cut off"):
        take_all()
    assert answer.cut(), "What was said stays."


@pytest.mark.parametrize("chunk", [b"data:\n", b"data: x\n", b"data\n", b"x", b"data: " + b"x" * 1_000])
def test_event_without_an_end_is_refused(chunk: bytes) -> None:
    parser = SseParser(limit_bytes=1 << 20)

    def feed_all() -> None:
        for _ in range((1 << 20) + 1):
            assert parser.feed(chunk) == []

    with pytest.raises(ProtocolBroken):
        feed_all()


def test_events_that_end_are_not_counted_together() -> None:
    parser = SseParser(limit_bytes=10_000)
    for _ in range(100):
        assert parser.feed(b"data: " + b"x" * 5_000 + b"\n\n") == [b"x" * 5_000]


# -- folding a flood


def test_burst_folds_to_the_same_view_as_its_fragments_one_by_one() -> None:
    made: list[Event] = [AnswerStarted(message="m1", seq=1, ts=1)]
    for at in range(200):
        block = at // 40
        seq = ts = at + 2
        if block % 3 == 0:
            made.append(TextDelta(message="m1", seq=seq, ts=ts, block=block, text=f"{at} "))
        elif block % 3 == 1:
            made.append(ThinkingDelta(message="m1", seq=seq, ts=ts, block=block, text=f"{at} "))
        else:
            call = "c1" if at % 40 < 20 else "c2"
            made.append(
                ToolInputDelta(message="m1", seq=seq, ts=ts, block=block, call=call, name="write", text=f"{at} ")
            )
        if at % 50 == 49:
            made.append(ToolOutputDelta(call="c1", seq=at + 2, ts=at + 2, text="out", stream="stdout"))
    one_by_one = State()
    for event in made:
        one_by_one = evolve(one_by_one, event)
    assert fold(State(), made) == one_by_one
    for cut in range(0, len(made), 17):
        assert fold(fold(State(), made[:cut]), made[cut:]) == one_by_one
