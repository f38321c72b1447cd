"""Exchanges between agents through kills, restarts and full disks: every answer comes back exactly once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from palaver.backends.base import Turn
from palaver.errors import StorageFull
from palaver.log.base import Append, Appended
from palaver.log.memory import MemoryLog
from palaver.schema.commands import (
    DeleteConversation,
    ResolveRequest,
)
from palaver.schema.events import (
    ExchangeReturned,
    ExchangeSent,
    KnownEvent,
    MessageAdded,
    RequestOpened,
    ToolCalled,
    TurnFinished,
    TurnStarted,
)
from palaver.schema.view import State
from tests.unit.agents.post import Recorded, events_of, open_office, to, writes
from tests.unit.agents.told import callbacks, of, statuses
from tests.unit.conversation.house import Script, answer, says, says_until, soon


class Full(MemoryLog):
    """A disk that is full for one conversation until there is room again."""

    full_for: str | None = None

    async def append(self, append: Append) -> Appended:
        if append.conversation == self.full_for and not append.urgent:
            raise StorageFull("The disk is full.")
        return await super().append(append)


async def test_answer_waits_until_there_is_room_on_the_disk_again() -> None:
    log = Full()
    gate, started = asyncio.Event(), asyncio.Event()
    async with open_office(log) as office:
        caller = await office.begin("ada")
        office.scripts["bea"] = [says_until(gate, "Blue.", started)]
        await office.ask(caller, writes(to(wait=False)))
        await soon(started.wait())
        await office.at_rest(caller, turns=1)
        log.full_for = caller
        gate.set()
        (target,) = await office.conversations("bea")
        await office.at_rest(target, turns=1)
        await office.clock.advance(60)
        assert statuses(await office.events(caller)) == ["started"]
        log.full_for = None
        await office.in_time(office.at_rest(caller, turns=2))
        events = await office.events(caller)
    assert statuses(events) == ["started", "complete"]
    assert len(callbacks(events)) == 1


async def test_server_killed_after_any_commit_still_brings_every_answer_back_exactly_once(tmp_path: Path) -> None:
    log = Recorded(tmp_path)
    async with open_office(log) as office:
        caller = await office.begin("ada")
        first = log.commits
        office.scripts["bea"] = [says("Blue.")]
        await office.ask(caller, writes(to(wait=False)))
        await office.at_rest(caller, turns=2)
        last = log.commits
    stages = [await _after_the_kill(log.after(commit), caller) for commit in range(first + 1, last + 1)]
    # Not yet sent; sent and never delivered; delivered; answered; called back: each of them was met.
    assert {"nothing", "sent", "delivered", "answered", "returned"} <= set(stages)


async def test_server_killed_after_any_commit_of_a_queued_exchange_calls_back_once_or_gives_it_up(
    tmp_path: Path,
) -> None:
    log = Recorded(tmp_path)
    gate, started = asyncio.Event(), asyncio.Event()
    async with open_office(log) as office:
        target, caller = await office.begin("bea"), await office.begin("ada")
        await office.ask(target, says_until(gate, "busy", started), says("Blue."))
        await soon(started.wait())
        first = log.commits
        await office.ask(caller, writes(to()))
        await office.at_rest(caller, turns=1)
        gate.set()
        await office.at_rest(caller, turns=2)
        last = log.commits
    stages = [await _after_the_kill(log.after(commit), caller) for commit in range(first + 1, last + 1)]
    assert {"given up", "delivered", "answered", "returned"} <= set(stages)


async def _after_the_kill(left: MemoryLog, caller: str) -> str:
    """What the next start makes of it: each answer once, each message once. Says at which stage the kill came."""
    before = await events_of(left, caller)
    sent = of(before, ExchangeSent)
    due = bool(sent) and (sent[0].mode == "async" or "queued" in statuses(before))
    target = sent[0].to if sent else None
    theirs = await events_of(left, target) if target else []
    async with open_office(left) as office:
        await office.until(caller, lambda state: state.turn is None and not state.queue)
        if due:
            await office.until(caller, lambda state: bool(returned(state)) and state.turn is None and not state.queue)
        if target and await left.head(target):
            await office.until(target, lambda state: state.turn is None and not state.queue)
        events = await office.events(caller)
        state = await office.directory.state(caller)
        taken = of(await office.events(target), MessageAdded) if target and await left.head(target) else []
    assert len(callbacks(events)) == due
    assert len([event for event in taken if event.exchange]) <= 1
    assert all(known.status in ("complete", "cancelled") for known in state.exchanges)
    if not sent:
        return "nothing"
    if not due:
        return "given up"
    if callbacks(before):
        return "returned"
    if of(theirs, ExchangeReturned):
        return "answered"
    return "delivered" if any(event.exchange for event in theirs) else "sent"


def returned(state: State) -> list[str]:
    """The callbacks in the transcript."""
    return [message.id for message in state.messages if message.event_kind == "agent_callback"]


async def test_server_stopped_in_order_while_the_other_agent_works_brings_its_answer_back_once() -> None:
    log = MemoryLog()
    started = asyncio.Event()
    async with open_office(log) as office:
        caller = await office.begin("ada")
        office.scripts["bea"] = [says_until(asyncio.Event(), "Half", started)]
        await office.ask(caller, writes(to(wait=False)))
        await soon(started.wait())
        await office.at_rest(caller, turns=1)
    for _ in range(2):
        async with open_office(log) as office:
            await office.at_rest(caller, turns=2)
    events = await events_of(log, caller)
    assert statuses(events) == ["started", "cancelled"]
    assert len(callbacks(events)) == 1


async def stopped_while_asking(log: MemoryLog, asks: Script, asked: asyncio.Event) -> tuple[str, str]:
    """The server is gone while Bea, whom Ada wrote to, waits for a person. Ada's conversation and Bea's."""
    async with open_office(log) as office:
        caller = await office.begin("ada")
        office.scripts["bea"] = [asks]
        await office.ask(caller, writes(to(wait=False)))
        await soon(asked.wait())
        (target,) = await office.conversations("bea")
        await office.until(target, lambda state: bool(state.requests))
        await office.at_rest(caller, turns=1)
        return caller, target


async def test_approval_answered_after_a_restart_still_answers_the_exchange() -> None:
    log = MemoryLog()
    asked = asyncio.Event()

    async def asks(turn: Turn) -> AsyncIterator[KnownEvent]:
        message = turn.new_id()
        yield answer(turn, "")[0]
        yield ToolCalled(message=message, block=0, call="a", name="shell", input={})
        asked.set()
        await turn.request(RequestOpened(request="q", kind="approval", tool="shell"))
        yield TurnFinished(outcome="completed")

    caller, target = await stopped_while_asking(log, asks, asked)
    async with open_office(log) as office:
        office.scripts["bea"] = [says("Blue.")]
        await office.do(target, ResolveRequest(request="q", verdict="allow"))
        await office.at_rest(caller, turns=2)
        events, theirs = await office.events(caller), await office.events(target)
    assert statuses(events) == ["started", "complete"]
    assert len(callbacks(events)) == 1
    went_on = of(theirs, TurnStarted)[-1]
    assert (went_on.trigger.kind, went_on.trigger.exchange) == ("request", "x")
    assert {event.exchange for event in theirs if event.turn == went_on.turn} == {"x"}


async def test_request_that_nobody_answers_after_a_restart_expires_and_is_told_to_the_caller() -> None:
    log = MemoryLog()
    asked = asyncio.Event()

    async def asks(turn: Turn) -> AsyncIterator[KnownEvent]:
        asked.set()
        await turn.request(RequestOpened(request="q", kind="question", expires_at=turn.now_ms() + 300_000))
        yield TurnFinished(outcome="completed")

    caller, _ = await stopped_while_asking(log, asks, asked)
    async with open_office(log) as office:
        await office.in_time(office.at_rest(caller, turns=2))
        events = await office.events(caller)
    assert statuses(events) == ["started", "cancelled"]


async def test_target_deleted_before_it_got_the_message_is_told_after_the_restart(tmp_path: Path) -> None:
    log = Recorded(tmp_path)
    async with open_office(log) as office:
        target, caller = await office.begin("bea"), await office.begin("ada")
        await office.ask(caller, writes(to(wait=False)))
        await office.at_rest(caller, turns=2)
    commits = [
        commit for commit in range(1, log.commits) if of(await events_of(log.after(commit), caller), ExchangeSent)
    ]
    left = log.after(commits[0])
    async with open_office(left, take_up=False) as office:
        await office.do(target, DeleteConversation())
        assert (await left.used(target, "exchange-x")) is None
    async with open_office(left) as office:
        await office.at_rest(caller, turns=2)
        events = await office.events(caller)
    assert statuses(events)[-1] == "cancelled"
    assert len(callbacks(events)) == 1
