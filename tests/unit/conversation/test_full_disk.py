"""When a turn's words find no room on the disk: it is settled as soon as there is some, and never goes on by itself."""

import asyncio

from palaver.clock import ManualClock
from palaver.conversation.conversation import RETRY_SETTLE_S
from palaver.errors import StorageFull
from palaver.log.base import Append, Appended
from palaver.log.memory import MemoryLog
from palaver.schema.commands import SendMessage, SetDraft, UpdateConversation
from tests.unit.conversation.house import open_house, says_until, soon
from tests.unit.conversation.test_owner import texts


class FullOnce(MemoryLog):
    """A disk without room for the next append, and with room for those after it."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.refused = asyncio.Event()

    async def append(self, append: Append) -> Appended:
        if self.full:
            self.full = False
            self.refused.set()
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
