"""When a turn's words find no room on the disk: it is settled as soon as there is some, and never goes on by itself."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from palaver.backends.base import Turn
from palaver.clock import ManualClock
from palaver.conversation.conversation import RETRY_SETTLE_S
from palaver.errors import LogUnavailable, StorageFull
from palaver.log.base import Append, Appended
from palaver.log.memory import MemoryLog
from palaver.schema.commands import Command, Interrupt, SendMessage, SetDraft, UpdateConversation
from palaver.schema.events import AnswerStarted, KnownEvent, TextDelta, TurnStarted
from tests.unit.conversation.house import open_house, says, says_until, soon
from tests.unit.conversation.test_owner import texts


class FullOnce(MemoryLog):
    """A disk without room for the next append, and with room for those after it."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.reached = asyncio.Event()
        self.answers = asyncio.Event()
        """Cleared: what finds no room is not told so yet."""
        self.answers.set()
        self.refused = asyncio.Event()

    async def append(self, append: Append) -> Appended:
        if self.full:
            self.full = False
            self.reached.set()
            await self.answers.wait()
            self.refused.set()
            raise StorageFull("The disk is full.")
        return await super().append(append)


class Full(MemoryLog):
    """A disk that has no room while it is full."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.refused = 0

    async def append(self, append: Append) -> Appended:
        if self.full:
            self.refused += 1
            raise StorageFull("The disk is full.")
        return await super().append(append)


async def test_turn_whose_words_found_no_room_is_not_begun_again_before_it_is_settled() -> None:
    log = FullOnce()
    clock = ManualClock()
    async with open_house(log, clock=clock) as house:
        going_on, started = asyncio.Event(), asyncio.Event()
        house.puppet.scripts = [says_until(going_on, "half", started)]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="one"))
        await soon(started.wait())
        log.full = True
        going_on.set()
        await soon(log.refused.wait())
        await house.do(conversation, UpdateConversation(title="Renamed while it waits"))
        await house.do(conversation, SetDraft(text="and more"))
        assert len(house.puppet.turns) == 1
        await clock.advance(RETRY_SETTLE_S)
        state = await house.at_rest(conversation)
    assert state.last_turn is not None
    assert state.last_turn.stopped == "storage"
    assert texts(state.messages) == ["one", "half"]
    assert len(house.puppet.turns) == 1


@pytest.mark.parametrize("meanwhile", [UpdateConversation(title="Renamed while it waits"), Interrupt()])
async def test_what_waits_begins_with_the_end_of_a_turn_whose_words_found_no_room(meanwhile: Command) -> None:
    log = FullOnce()
    clock = ManualClock()
    async with open_house(log, clock=clock) as house:
        going_on, started = asyncio.Event(), asyncio.Event()
        house.puppet.scripts = [says_until(going_on, "half", started), says("whole")]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="one"))
        await soon(started.wait())
        await house.do(conversation, SendMessage(content="two"))
        log.full = True
        going_on.set()
        await soon(log.refused.wait())
        await house.do(conversation, meanwhile)
        # What a stop has settled already is not settled again, nor what has begun since.
        await clock.advance(RETRY_SETTLE_S)
        state = await house.at_rest(conversation)
        began = [event for event in await house.events(conversation) if isinstance(event, TurnStarted)]
    assert texts(state.messages) == ["one", "half", "two", "whole"]
    assert state.last_turn is not None
    assert state.last_turn.outcome == "completed"
    assert [event.turn for event in began] == house.puppet.turns


async def test_turn_whose_words_found_no_room_does_and_takes_nothing_more() -> None:
    log = FullOnce()
    clock = ManualClock()
    going_on, started, asked = asyncio.Event(), asyncio.Event(), asyncio.Event()
    aside: list[asyncio.Task[object]] = []

    async def script(turn: Turn) -> AsyncIterator[KnownEvent]:
        message = turn.new_id()
        yield AnswerStarted(message=message)
        yield TextDelta(message=message, block=0, text="a")
        await turn.committed()
        started.set()
        await going_on.wait()
        yield TextDelta(message=message, block=0, text="b")
        await log.reached.wait()
        yield TextDelta(message=message, block=0, text="c")
        # By tasks that the end of the turn's own does not reach at once, as tools have them.
        aside.extend((asyncio.create_task(turn.committed()), asyncio.create_task(turn.deliveries())))
        await asyncio.sleep(0)
        asked.set()
        await asyncio.Event().wait()

    async with open_house(log, clock=clock) as house:
        house.puppet.scripts = [script, says("whole")]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="one"))
        await soon(started.wait())
        await house.do(conversation, SendMessage(content="two", delivery="boundary"))
        log.full = True
        log.answers.clear()
        going_on.set()
        await soon(asked.wait())
        log.answers.set()
        committed, delivered = await soon(asyncio.gather(*aside, return_exceptions=True))
        await clock.advance(RETRY_SETTLE_S)
        state = await house.at_rest(conversation)
    assert isinstance(committed, LogUnavailable)
    assert list(delivered) == []
    assert texts(state.messages) == ["one", "a", "two", "whole"]


async def test_turn_that_cannot_be_settled_is_tried_once_a_second_however_much_is_refused() -> None:
    log = Full()
    clock = ManualClock()
    async with open_house(log, clock=clock) as house:
        started = asyncio.Event()
        house.puppet.scripts = [says_until(asyncio.Event(), "half", started)]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="one"))
        await soon(started.wait())
        log.full = True
        for number in range(4):
            with pytest.raises(StorageFull):
                await house.do(conversation, SetDraft(text=f"draft {number}"))
            await clock.advance(RETRY_SETTLE_S / 10)
        before = log.refused
        for _ in range(50):
            await clock.advance(RETRY_SETTLE_S / 10)
        tried = log.refused - before
        log.full = False
        await clock.advance(RETRY_SETTLE_S)
        state = await house.at_rest(conversation)
    assert 0 < tried <= 5
    assert state.last_turn is not None
    assert state.last_turn.stopped == "storage"
