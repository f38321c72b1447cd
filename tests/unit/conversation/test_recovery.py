"""What a crash leaves behind, and what the next start makes of it. A crash is a log without its owners."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from palaver.backends.base import Turn
from palaver.conversation.index_rows import claims_of
from palaver.core.fold.evolve import fold
from palaver.log.base import Append, Appended
from palaver.log.memory import MemoryLog
from palaver.schema.commands import (
    PostAnswer,
    ResolveRequest,
    RetryFrom,
    SendMessage,
    SetDraft,
    SetParams,
    TruncateMessages,
)
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    KnownEvent,
    RequestOpened,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnInterrupted,
    UnknownEvent,
    decode_event,
)
from palaver.schema.view import State, ToolBlock
from tests.unit.conversation.house import House, Puppet, open_house, says, says_until, soon
from tests.unit.conversation.test_owner import house_with_history, texts


async def crashed_copy(log: MemoryLog, conversation: str) -> MemoryLog:
    """A log that holds what this one holds now, as a disk would after kill -9."""
    copy = MemoryLog()
    listing = await log.listing(conversation)
    cursor = 0
    while segments := await log.read(conversation, cursor):
        lines = [line for segment in segments for line in segment.body.splitlines()]
        known = [event for event in map(decode_event, lines) if not isinstance(event, UnknownEvent)]
        await copy.append(Append(conversation, cursor, lines, listing, claims=claims_of(known)))
        cursor = segments[-1].last
    return copy


async def test_turn_cut_by_a_crash_is_settled_and_the_queue_goes_on() -> None:
    log = MemoryLog()
    async with open_house(log) as house:
        started = asyncio.Event()
        house.puppet.scripts = [says_until(asyncio.Event(), "half", started)]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="one"))
        await soon(started.wait())
        await house.do(conversation, SendMessage(content="two"))
        left = await crashed_copy(log, conversation)
    async with open_house(left) as house:
        state = await house.at_rest(conversation)
        assert texts(state.messages) == ["one", "half", "two", "ok"]
        assert state.messages[1].status == "interrupted"
        assert len(house.puppet.turns) == 1


async def test_command_that_waited_is_carried_out_once_after_a_crash() -> None:
    log = MemoryLog()
    async with open_house(log) as house:
        started = asyncio.Event()
        house.puppet.scripts = [says("ok"), says_until(asyncio.Event(), "half", started)]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="one"))
        await house.at_rest(conversation)
        await house.do(conversation, SendMessage(content="two"))
        await soon(started.wait())
        cut = TruncateMessages(from_index=1, when_busy="queue", client_request_id="cut")
        answer = await house.do(conversation, cut)
        assert answer.queued
        again = RetryFrom(index=1, content="three", when_busy="queue", client_request_id="again")
        await house.do(conversation, again)
        left = await crashed_copy(log, conversation)
    async with open_house(left) as house:
        state = await house.at_rest(conversation)
        assert texts(state.messages) == ["one", "three", "ok"]
        assert (await house.do(conversation, cut)).id == answer.id
        done = await crashed_copy(left, conversation)
    async with open_house(done) as house:
        state = await house.at_rest(conversation)
        assert texts(state.messages) == ["one", "three", "ok"]
        assert house.puppet.turns == []


async def test_command_that_waited_counts_all_messages_of_a_long_conversation() -> None:
    async with open_house() as house:
        conversation = await house_with_history(house, 130)
        assert await house.directory.let_rest(0.0) == 1
        started, gate = asyncio.Event(), asyncio.Event()
        house.puppet.scripts = [says_until(gate, "half", started)]
        await house.do(conversation, SendMessage(content="more"))
        await soon(started.wait())
        await house.do(conversation, TruncateMessages(from_index=1, when_busy="queue"))
        gate.set()
        state = await house.at_rest(conversation)
        assert (state.offset, len(state.messages)) == (0, 1)
        assert await house.directory.messages(conversation, state.seq, 10) == list(state.messages)


def asks_then_runs(ran: list[str], asked: asyncio.Event | None = None) -> Puppet:
    """A backend that takes up an open call, as the API loop does."""

    async def script(turn: Turn) -> AsyncIterator[KnownEvent]:
        waiting = [
            block
            for message in turn.history
            for block in message.blocks
            if isinstance(block, ToolBlock) and block.status in ("waiting", "called")
        ]
        if waiting:
            call, request = waiting[0].call, waiting[0].request or ""
        else:
            message, call, request = turn.new_id(), turn.new_id(), turn.new_id()
            yield AnswerStarted(message=message)
            yield ToolCalled(message=message, block=0, call=call, name="shell", input={"command": "make"})
            yield AnswerFinished(message=message, finish_reason="tool_calls")
        if asked:
            asked.set()
        answer = await turn.request(RequestOpened(request=request, kind="approval", call=call, tool="shell"))
        if answer.verdict == "allow":
            yield ToolStarted(call=call, grant=f"request:{request}")
            await turn.committed()
            ran.append(call)
            yield ToolFinished(call=call, ok=True, output="built")
        yield TurnFinished(outcome="completed")

    return Puppet(scripts=[script] * 4)


async def open_request_then_crash(ran: list[str]) -> tuple[MemoryLog, str, str]:
    log = MemoryLog()
    async with open_house(log, asks_then_runs(ran)) as house:
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="build it"))
        state = await house.until(conversation, lambda state: bool(state.requests))
        return await crashed_copy(log, conversation), conversation, state.requests[0].id


async def test_request_open_at_a_crash_is_answered_after_it_and_the_tool_runs_once() -> None:
    ran: list[str] = []
    log, conversation, request = await open_request_then_crash(ran)
    async with open_house(log, asks_then_runs(ran)) as house:
        state = await house.until(conversation, lambda state: state.turn is None)
        assert [known.id for known in state.requests if known.status == "open"] == [request]
        assert state.status == "waiting_user_input"
        assert state.last_turn is not None
        assert state.last_turn.stopped == "restart"
        await house.do(conversation, ResolveRequest(request=request, verdict="allow"))
        await house.at_rest(conversation)
        results = [event for event in await house.events(conversation) if isinstance(event, ToolFinished)]
        assert [result.output for result in results] == ["built"]
        assert len(ran) == 1


async def test_new_message_supersedes_a_request_left_open_by_a_crash() -> None:
    ran: list[str] = []
    log, conversation, request = await open_request_then_crash(ran)
    async with open_house(log, Puppet([says("fine")])) as house:
        await house.do(conversation, SendMessage(content="never mind"))
        state = await house.at_rest(conversation)
        assert [known.status for known in state.requests if known.id == request] == ["superseded"]
        late = await house.do(conversation, ResolveRequest(request=request, verdict="allow"))
        assert not late.applied
        assert ran == []
        assert all(block.status == "interrupted" for block in tools(state))


async def test_tool_running_at_a_crash_gets_one_result_that_says_unknown() -> None:
    started = asyncio.Event()

    async def runs_for_ever(turn: Turn) -> AsyncIterator[KnownEvent]:
        message = turn.new_id()
        yield AnswerStarted(message=message)
        yield ToolCalled(message=message, block=0, call="c1", name="shell", input={})
        yield ToolCalled(message=message, block=1, call="c2", name="shell", input={})
        yield AnswerFinished(message=message, finish_reason="tool_calls")
        yield ToolStarted(call="c1", grant="policy")
        await turn.committed()
        started.set()
        await asyncio.Event().wait()

    log = MemoryLog()
    async with open_house(log, Puppet([runs_for_ever])) as house:
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="go"))
        await soon(started.wait())
        left = await crashed_copy(log, conversation)
    async with open_house(left) as house:
        await house.at_rest(conversation)
        results = [event for event in await house.events(conversation) if isinstance(event, ToolFinished)]
        assert [(result.call, result.effect) for result in results] == [("c1", "unknown"), ("c2", "none")]


async def test_opening_from_a_snapshot_equals_folding_the_whole_log() -> None:
    async with open_house() as house:
        conversation = await house_with_history(house, 130)
        live = await house.directory.state(conversation, tail=1000)
        assert await house.directory.let_rest(0) == 1
        reopened = await house.directory.state(conversation)
        folded = fold(State(), await house.events(conversation))
        assert reopened.offset + len(reopened.messages) == len(folded.messages) == 260
        assert reopened.messages == folded.messages[-100:]
        assert live.messages == folded.messages[-len(live.messages) :]
        pages = [*await house.directory.messages(conversation, folded.messages[150].seq, 60)]
        assert pages == list(folded.messages[90:150])


async def test_history_rewritten_beyond_what_memory_holds_stays_rewritten() -> None:
    async with open_house() as house:
        conversation = await house_with_history(house, 130)
        await house.directory.let_rest(0)
        await house.do(conversation, TruncateMessages(from_index=10))
        await house.directory.let_rest(0)
        state = await house.directory.state(conversation)
        assert state.offset == 0
        assert texts(state.messages) == [text for n in range(5) for text in (f"question {n}", "ok")]
        await house.do(conversation, SendMessage(content="go on"))
        state = await house.at_rest(conversation)
        assert texts(state.messages)[-2:] == ["go on", "ok"]


async def test_call_that_waits_is_found_and_ended_though_much_was_said_after_it() -> None:
    log, conversation, _ = await open_request_then_crash([])
    async with open_house(log, asks_then_runs([])) as house:
        for number in range(250):
            await house.directory.command(conversation, PostAnswer(content=f"word {number}"), None)
    async with open_house(log) as house:
        await house.do(conversation, SendMessage(content="something else"))
        await house.at_rest(conversation)
        whole = await house.directory.whole(conversation)
        calls = [block for message in whole.messages for block in message.blocks if isinstance(block, ToolBlock)]
        assert [call.status for call in calls] == ["interrupted"]


async def test_expired_request_is_a_denial() -> None:
    ran: list[str] = []
    async with open_house(puppet=asks_then_runs(ran)) as house:
        conversation = await house.begin()
        await house.do(conversation, SetParams(patch={"request_timeout_s": 300}))
        await house.do(conversation, SendMessage(content="build it"))
        await house.until(conversation, lambda state: bool(state.requests))
        await advance(house, 301)
        state = await house.at_rest(conversation)
        assert state.requests[0].status == "expired"
        assert ran == []


async def advance(house: House, seconds: float) -> None:
    from palaver.clock import ManualClock

    assert isinstance(house.clock, ManualClock)
    await house.clock.advance(seconds)


def tools(state: State) -> list[ToolBlock]:
    return [block for message in state.messages for block in message.blocks if isinstance(block, ToolBlock)]


async def test_command_that_meets_a_conversation_on_its_way_out_is_taken_by_the_next_owner() -> None:
    async with open_house() as house:
        conversation = await house.begin()
        for number in range(20):
            command = SetDraft(text=str(number))
            await soon(asyncio.gather(house.directory.let_rest(0), house.do(conversation, command)))
        assert (await house.directory.state(conversation)).draft == "19"


async def test_cut_turn_is_settled_on_disk_when_the_server_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    log, conversation, _ = await open_request_then_crash([])
    append = log.append

    async def slowly(entry: Append) -> Appended:
        # As a disk takes its time: others run meanwhile.
        for _ in range(100):
            await asyncio.sleep(0)
        return await append(entry)

    monkeypatch.setattr(log, "append", slowly)
    async with open_house(log, Puppet()) as house:
        ends = [event for event in await house.events(conversation) if isinstance(event, TurnInterrupted)]
        assert [end.reason for end in ends] == ["restart"]
