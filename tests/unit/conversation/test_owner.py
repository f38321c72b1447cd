"""Admission, execution, the queue, the stop: what the owner of a conversation does, over a log in memory."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from palaver.backends.base import Turn
from palaver.errors import Conflict, NotFound, NotInstalled
from palaver.log.base import Append, Appended
from palaver.log.memory import MemoryLog
from palaver.schema.commands import EditQueued, Interrupt, RemoveQueued, SendMessage, UpdateConversation
from palaver.schema.content import plain_text
from palaver.schema.events import (
    AnswerStarted,
    KnownEvent,
    MessageAdded,
    TextDelta,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from palaver.schema.view import TextBlock
from tests.unit.conversation.house import House, answer, open_house, says, says_until, soon


def texts(state_messages: object) -> list[str]:
    return [
        block.text
        for message in state_messages  # type: ignore[attr-defined]
        for block in message.blocks
        if isinstance(block, TextBlock)
    ]


async def test_message_starts_a_turn_in_the_same_commit_and_is_answered() -> None:
    async with open_house() as house:
        house.puppet.scripts = [says("hello back")]
        conversation = await house.begin()
        accepted = await house.do(conversation, SendMessage(content="hello"))
        assert accepted.turn is not None
        state = await house.at_rest(conversation)
        assert texts(state.messages) == ["hello", "hello back"]
        assert state.status == "idle"
        assert state.title == "hello"
        assert [event.seq for event in await house.events(conversation)] == list(range(1, state.seq + 1))


async def test_command_repeated_with_its_id_has_one_effect_and_the_same_answer() -> None:
    async with open_house() as house:
        conversation = await house.begin()
        command = SendMessage(content="once", client_request_id="r1")
        first, second = await asyncio.gather(house.do(conversation, command), house.do(conversation, command))
        await house.at_rest(conversation)
        assert await house.do(conversation, command) == first == second
        with pytest.raises(Conflict):
            await house.do(conversation, SendMessage(content="something else", client_request_id="r1"))
        assert texts((await house.directory.state(conversation)).messages).count("once") == 1


async def test_command_repeated_after_its_conversation_left_memory_gets_the_same_answer() -> None:
    async with open_house() as house:
        conversation = await house.begin()
        command = SendMessage(content="once", client_request_id="r1")
        first = await house.do(conversation, command)
        await house.at_rest(conversation)
        assert await house.directory.let_rest(0) == 1
        assert house.directory.open_count == 0
        assert await house.do(conversation, command) == first


async def test_commands_from_before_repeated_amid_a_turn_get_their_answers_and_disturb_nothing() -> None:
    async with open_house() as house:
        gate, started = asyncio.Event(), asyncio.Event()
        house.puppet.scripts = [says("one"), says("two"), says_until(gate, "three", started), says("four")]
        conversation = await house.begin()
        earlier = [SendMessage(content=text, client_request_id=text) for text in ("a", "b")]
        answers = [await house.do(conversation, command) for command in earlier]
        await house.at_rest(conversation)
        assert await house.directory.let_rest(0) == 1
        await house.do(conversation, SendMessage(content="c"))
        await soon(started.wait())
        new = SendMessage(content="d", client_request_id="d")
        queued, *repeated = await asyncio.gather(*(house.do(conversation, command) for command in (new, *earlier)))
        assert repeated == answers
        assert queued.queued
        assert await house.do(conversation, new) == queued
        gate.set()
        state = await house.at_rest(conversation)
        assert texts(state.messages) == ["a", "one", "b", "two", "c", "three", "d", "four"]


async def test_interrupt_repeated_after_its_conversation_left_memory_gets_the_same_answer() -> None:
    async with open_house() as house:
        gate, started = asyncio.Event(), asyncio.Event()
        house.puppet.scripts = [says_until(gate, "never done", started)]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="go"))
        await soon(started.wait())
        command = Interrupt(client_request_id="stop")
        first = await house.do(conversation, command)
        await house.at_rest(conversation)
        assert await house.directory.let_rest(0) == 1
        assert await house.do(conversation, command) == first


async def test_message_to_a_busy_agent_waits_and_gets_a_turn_of_its_own() -> None:
    async with open_house() as house:
        gate, started = asyncio.Event(), asyncio.Event()
        house.puppet.scripts = [says_until(gate, "first", started), says("second"), says("third")]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="one"))
        await soon(started.wait())
        queued = await house.do(conversation, SendMessage(content="two"))
        await house.do(conversation, SendMessage(content="three"))
        assert queued.queued
        assert len((await house.directory.state(conversation)).queue) == 2
        gate.set()
        state = await house.at_rest(conversation)
        assert texts(state.messages) == ["one", "first", "two", "second", "three", "third"]
        assert len(house.puppet.turns) == 3


async def test_boundary_message_joins_the_running_turn_exactly_once() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def two_steps(turn: Turn) -> AsyncIterator[KnownEvent]:
        for event in answer(turn, "step one"):
            yield event
        await turn.committed()
        started.set()
        await go_on.wait()
        joined = await turn.deliveries()
        for event in answer(turn, f"step two saw {len(joined)}: {texts(joined)}"):
            yield event
        assert await turn.deliveries() == []
        yield TurnFinished(outcome="completed")

    async with open_house() as house:
        house.puppet.scripts = [two_steps]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="go"))
        await soon(started.wait())
        await house.do(conversation, SendMessage(content="steer", delivery="boundary"))
        go_on.set()
        state = await house.at_rest(conversation)
        assert texts(state.messages) == ["go", "step one", "steer", "step two saw 1: ['steer']"]
        assert len(house.puppet.turns) == 1


async def test_removed_item_never_runs_and_an_edited_one_runs_as_edited() -> None:
    async with open_house() as house:
        gate, started = asyncio.Event(), asyncio.Event()
        house.puppet.scripts = [says_until(gate, "first", started)]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="one"))
        await soon(started.wait())
        gone = await house.do(conversation, SendMessage(content="never"))
        kept = await house.do(conversation, SendMessage(content="draft"))
        await house.do(conversation, RemoveQueued(item=gone.id or ""))
        await house.do(conversation, EditQueued(item=kept.id or "", content="final"))
        with pytest.raises(NotFound):
            await house.do(conversation, RemoveQueued(item=gone.id or ""))
        gate.set()
        assert texts((await house.at_rest(conversation)).messages) == ["one", "first", "final", "ok"]


async def test_interrupt_keeps_the_partial_text_marked_and_the_queue_goes_on() -> None:
    async with open_house() as house:
        gate, started = asyncio.Event(), asyncio.Event()
        house.puppet.scripts = [says_until(gate, "half an ans", started), says("next")]
        conversation = await house.begin()
        first = await house.do(conversation, SendMessage(content="one"))
        await soon(started.wait())
        await house.do(conversation, SendMessage(content="two"))
        await house.do(conversation, Interrupt())
        state = await house.at_rest(conversation)
        assert texts(state.messages) == ["one", "half an ans", "two", "next"]
        assert state.messages[1].status == "interrupted"
        assert first.turn in house.puppet.ended
        kinds = [type(event) for event in await house.events(conversation)]
        assert kinds.count(TurnStarted) == kinds.count(TurnInterrupted) + kinds.count(TurnFinished)


async def test_interrupt_at_rest_is_accepted_and_changes_nothing() -> None:
    async with open_house() as house:
        conversation = await house.begin()
        before = await house.directory.state(conversation)
        accepted = await house.do(conversation, Interrupt())
        assert not accepted.applied
        assert (await house.directory.state(conversation)).seq == before.seq


async def test_stubborn_backend_that_yields_after_the_stop_adds_nothing() -> None:
    started, may_end = asyncio.Event(), asyncio.Event()

    async def stubborn(turn: Turn) -> AsyncIterator[KnownEvent]:
        message = turn.new_id()
        yield AnswerStarted(message=message)
        yield ToolCalled(message=message, block=0, call="c1", name="shell", input={})
        yield ToolStarted(call="c1", grant="policy")
        await turn.committed()
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await may_end.wait()
            yield ToolFinished(call="c1", ok=True, output="too late")
            yield TextDelta(message=message, block=1, text="too late")

    async with open_house() as house:
        house.puppet.scripts = [stubborn, says("fresh")]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="one"))
        await soon(started.wait())
        await house.do(conversation, Interrupt())
        may_end.set()
        await house.do(conversation, SendMessage(content="two"))
        await house.at_rest(conversation)
        results = [event for event in await house.events(conversation) if isinstance(event, ToolFinished)]
        assert [(result.ok, result.effect) for result in results] == [(False, "unknown")]


async def test_backend_that_is_missing_fails_the_turn_and_not_the_message() -> None:
    async with open_house() as house:
        house.roster.missing = NotInstalled("Codex is not installed. Install it and try again.")
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="hello"))
        state = await house.at_rest(conversation)
        assert state.status == "error"
        assert state.last_turn is not None
        assert state.last_turn.error is not None
        assert state.last_turn.error.code == "not_installed"
        house.roster.missing = None
        await house.do(conversation, SendMessage(content="again"))
        assert (await house.at_rest(conversation)).status == "idle"


async def test_backend_that_just_stops_fails_the_turn() -> None:
    async def walks_off(turn: Turn) -> AsyncIterator[KnownEvent]:
        yield AnswerStarted(message=turn.new_id())

    async with open_house() as house:
        house.puppet.scripts = [walks_off]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="hello"))
        state = await house.at_rest(conversation)
        assert state.last_turn is not None
        assert state.last_turn.outcome == "failed"


async def test_unknown_agent_is_refused_by_name() -> None:
    async with open_house() as house:
        conversation = await house.begin()
        for command in (SendMessage(content="x", agent="nobody"), UpdateConversation(agent="nobody")):
            with pytest.raises(NotFound, match="nobody"):
                await house.do(conversation, command)


async def test_each_user_message_is_consumed_by_exactly_one_turn() -> None:
    async with open_house() as house:
        conversation = await house.begin()
        await asyncio.gather(*(house.do(conversation, SendMessage(content=f"m{n}")) for n in range(20)))
        await house.at_rest(conversation)
        events = await house.events(conversation)
        added = [event for event in events if isinstance(event, MessageAdded)]
        started = [event for event in events if isinstance(event, TurnStarted)]
        consumed = [message for event in started for message in event.trigger.messages]
        assert sorted(consumed) == sorted(event.message for event in added)
        assert [f"m{n}" for n in range(20)] == sorted(
            (plain_text(event.content) for event in added), key=lambda text: int(text[1:])
        )


async def house_with_history(house: House, turns: int) -> str:
    conversation = await house.begin()
    for number in range(turns):
        await house.do(conversation, SendMessage(content=f"question {number}"))
        await house.at_rest(conversation)
    return conversation


async def test_failure_of_an_older_turn_stays_on_its_message() -> None:
    async with open_house() as house:
        house.roster.missing = NotInstalled("Codex is not installed.")
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="fails"))
        await house.at_rest(conversation)
        house.roster.missing = None
        await house.do(conversation, SendMessage(content="works"))
        state = await house.at_rest(conversation)
        ended = [message.ended for message in state.messages]
        assert [end.outcome for end in ended if end] == ["failed"]
        assert ended[0] is not None
        assert ended[0].error is not None


class Lingering(MemoryLog):
    """A log whose writer has stored a commit, and takes its time to say so."""

    def __init__(self) -> None:
        super().__init__()
        self.stored, self.says_so = asyncio.Event(), asyncio.Event()
        self.says_so.set()

    async def append(self, append: Append) -> Appended:
        appended = await super().append(append)
        self.stored.set()
        await self.says_so.wait()
        return appended


async def test_view_is_never_older_than_what_the_log_has_shown_to_somebody() -> None:
    log = Lingering()
    async with open_house(log) as house:
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="hello"))
        await house.at_rest(conversation)

        log.stored.clear()
        log.says_so.clear()
        sending = asyncio.create_task(house.do(conversation, UpdateConversation(title="Tides")))
        await soon(log.stored.wait())
        reading = asyncio.create_task(house.directory.state(conversation))
        await asyncio.sleep(0)  # The reading is under way before the writer speaks.
        log.says_so.set()
        assert (await soon(reading)).title == "Tides"
        await soon(sending)
