"""One reading of the log for all who listen: nothing twice, nothing missed, or one word that something was."""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence

import msgspec
import pytest

from palaver.clock import ManualClock
from palaver.conversation.recovery.load import snapshot_of
from palaver.core.fold.evolve import fold
from palaver.faces.bus import pump
from palaver.faces.bus.frames import number_of, position_of
from palaver.faces.bus.projection import project
from palaver.faces.bus.pump import Bus, Choice
from palaver.faces.bus.views import TAIL, view_at
from palaver.faces.http.sse import BEHIND_COMMENT
from palaver.feed.feed import Feed
from palaver.log.base import Append
from palaver.log.memory import MemoryLog
from palaver.schema.content import as_content
from palaver.schema.events import (
    ConversationCreated,
    ConversationUpdated,
    Event,
    MessageAdded,
    MessageTruncated,
    decode_event,
)
from palaver.schema.view import State
from tests.unit.faces.bus.told import GOLDEN

pytestmark = pytest.mark.anyio

WAIT_S = 5.0
LINES = (GOLDEN / "engine.jsonl").read_bytes().splitlines()


class Store:
    """A log, its feed and the bus over them, without anything that decides."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.feed = Feed(self.log, ManualClock(), self._never)
        self.bus = Bus(self.log, self.feed, ManualClock())
        self.heads: dict[str, int] = {}

    async def _never(self, _: str) -> tuple[int, bytes]:
        raise AssertionError

    async def happen(self, conversation: str, title: str) -> None:
        """One event, in its own commit."""
        made = ConversationUpdated(title=title) if conversation in self.heads else ConversationCreated(title=title)
        await self.tell(conversation, msgspec.structs.replace(made, id=f"{conversation}-{title}"))

    async def tell(self, conversation: str, made: Event) -> None:
        seq = self.heads.get(conversation, 0)
        event = msgspec.structs.replace(made, seq=seq + 1, conversation=conversation, id=made.id or f"e-{seq + 1}")
        line = msgspec.json.encode(event)
        await self.log.append(Append(conversation, seq, [line]))
        self.heads[conversation] = seq + 1
        self.feed.publish(conversation, seq + 1, seq + 1, line + b"\n")


Items = AsyncGenerator[bytes, None]


async def heard(items: Items, count: int) -> list[str]:
    """The ids of so many frames."""
    ids: list[str] = []
    while len(ids) < count:
        async with asyncio.timeout(WAIT_S):
            item = await anext(items)
        ids += re.findall(r'"id":"([^"]+)"', item.decode())
    return ids


async def joined(store: Store, after: int | None = None, choice: Choice = pump.EVERYTHING) -> Items:
    items = store.bus.follow(after, choice)
    assert await anext(items) == b": listening\n\n"
    return items


async def test_readers_that_come_and_go_hear_everything_once_and_in_order() -> None:
    store = Store()
    steady = await joined(store)
    expected: list[str] = []
    for number in range(30):
        passing = await joined(store) if number % 3 == 0 else None
        await store.happen("ab"[number % 2], str(number))
        expected.append(f"{'ab'[number % 2]}-{number}")
        if passing is not None:
            assert await heard(passing, 1) == expected[-1:]
            await passing.aclose()
    assert await heard(steady, 30) == expected
    await steady.aclose()
    assert store.bus.readers == 0


async def test_reader_alone_that_left_is_given_what_it_missed() -> None:
    store = Store()
    items = await joined(store)
    await store.happen("a", "1")
    assert await heard(items, 1) == ["a-1"]
    await items.aclose()
    for number in (2, 3, 4):
        await store.happen("a", str(number))
    again = await joined(store, after=number_of(2) - 1)
    assert await heard(again, 3) == ["a-2", "a-3", "a-4"]
    await again.aclose()


async def test_reader_that_lags_is_told_once_and_goes_on_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "RING_BYTES", 2_000)
    store = Store()
    slow, quick = await joined(store), await joined(store)
    await store.happen("a", "0")
    assert await heard(slow, 1) == await heard(quick, 1) == ["a-0"]
    for number in range(1, 50):
        await store.happen("a", str(number))
        assert await heard(quick, 1) == [f"a-{number}"]
    assert await anext(slow) == BEHIND_COMMENT
    # More of it while that is being written changes nothing: it is told once, of the moment there is room.
    await store.happen("a", "50")
    assert await heard(quick, 1) == ["a-50"]
    told = await anext(slow)
    assert told.count(b"\n\n") == 1
    assert b'"phase":"resync"' in told
    assert b'"reason":"lagged","lagged_count":50' in told
    await store.happen("a", "51")
    assert await heard(slow, 1) == ["a-51"]
    await slow.aclose()
    await quick.aclose()


async def test_reader_without_a_cursor_hears_nothing_from_before_it_came() -> None:
    store = Store()
    await store.happen("a", "old")
    first = await joined(store)
    await store.happen("a", "older")
    # The first has not read yet: what it is behind is no news to the second.
    second = await joined(store)
    await store.happen("a", "new")
    assert await heard(second, 1) == ["a-new"]
    assert await heard(first, 2) == ["a-older", "a-new"]
    await first.aclose()
    await second.aclose()


async def test_choice_of_a_session_only_selects() -> None:
    store = Store()
    everything, mine = await joined(store), await joined(store, choice=Choice(session="b"))
    for number in range(6):
        await store.happen("ab"[number % 2], str(number))
    assert await heard(mine, 3) == ["b-1", "b-3", "b-5"]
    assert len(await heard(everything, 6)) == 6
    await everything.aclose()
    await mine.aclose()


async def test_words_of_a_long_conversation_that_was_cut_are_gone_and_its_readers_begin_anew() -> None:
    """Which of the earlier messages a cut takes is not at hand where only the last ones are."""
    store = Store()
    items = await joined(store)
    await store.happen("a", "1")
    for number in range(3 * TAIL):
        await store.tell("a", MessageAdded(message=f"m-{number}", content=as_content(f"word {number}")))
    assert len(await heard(items, 3 * TAIL + 1)) == 3 * TAIL + 1
    await store.tell("a", MessageTruncated(index=5))
    # Whoever has heard everything goes on.
    assert len(await heard(items, 1)) == 1
    again = await joined(store, after=number_of(10) - 1)
    told = await anext(again)
    assert b'"phase":"resync"' in told
    assert b"word" not in told
    await store.happen("b", "1")
    assert await heard(again, 1) == await heard(items, 1) == ["b-1"]
    await items.aclose()
    await again.aclose()


async def test_event_that_cannot_be_told_does_not_silence_the_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    told = project

    def fragile(event: Event, *rest: object) -> object:
        if event.id == "a-1":
            raise ValueError("unheard of")
        return told(event, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(pump, "project", fragile)
    store = Store()
    items = await joined(store)
    for number in range(3):
        await store.happen("a", str(number))
    assert await heard(items, 2) == ["a-0", "a-2"]
    await items.aclose()


async def test_folder_that_cannot_be_and_damaged_line_do_not_silence_the_bus() -> None:
    store = Store()
    items = await joined(store)
    odd = ConversationCreated(seq=1, id="odd", conversation="odd", project="/a\0b/" + "c" * 5_000)
    for name, line in (("odd", msgspec.json.encode(odd)), ("bad", b'{"type": "conv')):
        await store.log.append(Append(name, 0, [line]))
    await store.happen("a", "1")
    # What is damaged has no id to be told by.
    assert [one for one in await heard(items, 2) if one] == ["odd", "a-1"]
    await items.aclose()


@pytest.mark.parametrize("kept_at", [None, 5, 20, len(LINES)])
async def test_view_at_a_moment_is_the_fold_up_to_it(kept_at: int | None) -> None:
    log, events = MemoryLog(), [decode_event(line) for line in LINES]
    name = events[0].conversation
    for seq, line in enumerate(LINES):
        await log.append(Append(name, seq, [line]))
    if kept_at is not None:
        await log.save_snapshot(name, snapshot_of(fold(State(), events[:kept_at]), 0, replace_all=True))
    for seq in range(len(LINES) + 1):
        assert await view_at(log, name, seq) == _whole(events, seq)


def _whole(events: Sequence[Event], seq: int) -> State:
    return fold(State(), events[:seq])


def test_positions_come_back_out_of_numbers() -> None:
    assert [position_of(number_of(position, place)) for position in (0, 7) for place in (0, 1023)] == [0, 0, 7, 7]
