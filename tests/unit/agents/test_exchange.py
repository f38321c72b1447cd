"""What one agent writes to another, and the answer that comes back: once, whatever happens in between."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from palaver.backends.base import Turn
from palaver.errors import AgentError, NotInstalled
from palaver.schema.base import Origin
from palaver.schema.commands import (
    DeleteConversation,
    Interrupt,
    RemoveQueued,
)
from palaver.schema.events import (
    ConversationCreated,
    ExchangeReturned,
    ExchangeSent,
    KnownEvent,
    MessageAdded,
    ToolCalled,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from palaver.schema.records import AgentRecord
from palaver.schema.view import Parent, State
from palaver.tools.base import Reply
from tests.unit.agents.post import open_office, to, writes
from tests.unit.agents.told import callbacks, of, out, statuses
from tests.unit.conversation.house import Script, answer, says, says_until, soon


def fails(error: AgentError) -> Script:
    async def script(turn: Turn) -> AsyncIterator[KnownEvent]:
        yield answer(turn, "half")[0]
        raise error

    return script


# -- now


async def test_answer_comes_back_as_the_result_of_the_call() -> None:
    replies: list[Reply] = []
    async with open_office() as office:
        caller = await office.begin("ada")
        office.scripts["bea"] = [says("Blue.")]
        await office.ask(caller, writes(to(), replies))
        await office.at_rest(caller, turns=1)
        (target,) = await office.conversations("bea")
        events, theirs = await office.events(caller), await office.events(target)
    (reply,) = replies
    assert (reply.status, reply.response, reply.conversation, reply.tool_call_count) == ("complete", "Blue.", target, 0)
    assert reply.duration_ms is not None
    (sent,) = of(events, ExchangeSent)
    assert (sent.exchange, sent.agent, sent.to, sent.call, sent.hops, sent.mode) == ("x", "bea", target, "x", 1, "sync")
    (returned,) = of(events, ExchangeReturned)
    assert (returned.status, returned.response, returned.turn) == ("complete", "Blue.", sent.turn)
    assert {event.exchange for event in (*of(events, ToolCalled), *of(events, ToolFinished))} == {"x"}
    (message,) = of(theirs, MessageAdded)
    assert message.origin == Origin(face="agents", agent="ada", conversation=caller)
    (turn,) = of(theirs, TurnStarted)
    assert {event.exchange for event in theirs if event.turn == turn.turn} == {"x"}
    assert len(of(events, TurnStarted)) == 1


async def test_new_conversation_belongs_to_the_project_and_the_root_of_the_caller() -> None:
    async with open_office() as office:
        caller = await office.begin("ada", project="/usr/lib")
        await office.ask(caller, writes(to(conversation="create")))
        await office.at_rest(caller, turns=1)
        (target,) = await office.conversations("bea")
        (created,) = of(await office.events(target), ConversationCreated)
    assert (created.agent, created.project) == ("bea", "/usr/lib")
    assert created.parent == Parent(conversation=caller, kind="exchange", root=caller, call="x")


async def test_failure_of_the_other_agent_is_told() -> None:
    replies: list[Reply] = []
    async with open_office() as office:
        caller = await office.begin("ada")
        office.scripts["bea"] = [fails(NotInstalled("It is not installed."))]
        await office.ask(caller, writes(to(), replies))
        state = await office.at_rest(caller, turns=1)
    assert (replies[0].status, replies[0].response) == ("failed", "It is not installed.")
    assert out(state) == "failed"


async def test_stopped_target_gives_back_what_it_had_said() -> None:
    replies: list[Reply] = []
    started = asyncio.Event()
    async with open_office() as office:
        caller = await office.begin("ada")
        office.scripts["bea"] = [says_until(asyncio.Event(), "So far", started)]
        await office.ask(caller, writes(to(), replies))
        await soon(started.wait())
        (target,) = await office.conversations("bea")
        await office.do(target, Interrupt())
        await office.at_rest(caller, turns=1)
    assert (replies[0].status, replies[0].response) == ("cancelled", "So far")


async def test_two_exchanges_at_once_never_mix() -> None:
    replies: dict[str, list[Reply]] = {"one": [], "two": []}
    gates = {name: asyncio.Event() for name in replies}
    async with open_office() as office:
        office.scripts["bea"] = [says_until(gates["one"], "first"), says_until(gates["two"], "second")]
        callers = {}
        for name, came in replies.items():
            callers[name] = await office.begin("ada")
            await office.ask(callers[name], writes(to(content=name, conversation="create"), came, call=name))
            await office.at_work("bea", len(callers))
        for name in ("two", "one"):
            gates[name].set()
            await office.at_rest(callers[name], turns=1)
    assert [replies[name][0].response for name in ("one", "two")] == ["first", "second"]
    assert replies["one"][0].conversation != replies["two"][0].conversation


# -- later


async def test_busy_agent_answers_later_and_that_begins_exactly_one_turn() -> None:
    replies: list[Reply] = []
    gate, started = asyncio.Event(), asyncio.Event()
    async with open_office() as office:
        target, caller = await office.begin("bea"), await office.begin("ada")
        await office.ask(target, says_until(gate, "busy", started), says("Blue."))
        await soon(started.wait())
        await office.ask(caller, writes(to(), replies))
        await office.at_rest(caller, turns=1)
        assert (replies[0].status, replies[0].conversation) == ("queued", target)
        gate.set()
        state = await office.at_rest(caller, turns=2)
        events = await office.events(caller)
    assert statuses(events) == ["queued", "complete"]
    (begun,) = callbacks(events)
    assert (begun.trigger.exchange, begun.trigger.hops, begun.exchange) == ("x", 2, None)
    assert begun.origin == Origin(face="agents", agent="bea", conversation=target)
    (word,) = [event for event in of(events, MessageAdded) if event.role == "event"]
    assert (word.event_kind, word.exchange, word.content[0].text) == ("agent_callback", "x", "bea answered:\n\nBlue.")
    assert out(state) == "complete"


async def test_answer_to_a_busy_caller_waits_for_its_turn() -> None:
    gate, answered = asyncio.Event(), asyncio.Event()
    async with open_office() as office:
        caller = await office.begin("ada")

        async def goes_on(turn: Turn) -> AsyncIterator[KnownEvent]:
            async for event in writes(to(wait=False))(turn):
                if isinstance(event, TurnFinished):
                    answered.set()
                    await gate.wait()
                yield event

        await office.ask(caller, goes_on)
        await soon(answered.wait())
        queued = await office.until(caller, lambda state: bool(state.queue))
        assert [item.trigger for item in queued.queue] == ["callback"]
        gate.set()
        await office.at_rest(caller, turns=2)
        events = await office.events(caller)
    assert len(callbacks(events)) == 1
    assert statuses(events)[0] == "started"


async def test_answer_of_an_async_message_comes_back_once() -> None:
    replies: list[Reply] = []
    async with open_office() as office:
        caller = await office.begin("ada")
        office.scripts["bea"] = [says("Blue.")]
        await office.ask(caller, writes(to(wait=False), replies))
        await office.at_rest(caller, turns=2)
        (target,) = await office.conversations("bea")
        events = await office.events(caller)
    assert (replies[0].status, replies[0].conversation) == ("started", target)
    assert statuses(events) == ["started", "complete"]
    assert len(callbacks(events)) == 1


async def test_late_answer_after_a_timeout_is_kept_and_begins_nothing() -> None:
    replies: list[Reply] = []
    gate, started = asyncio.Event(), asyncio.Event()
    async with open_office() as office:
        caller = await office.begin("ada")
        office.scripts["bea"] = [says_until(gate, "Late.", started)]
        await office.ask(caller, writes(to(timeout_s=30), replies))
        await soon(started.wait())
        await office.clock.advance(29)
        assert replies == []
        await office.clock.advance(1)
        await office.at_rest(caller, turns=1)
        (target,) = await office.conversations("bea")
        assert (replies[0].status, replies[0].conversation) == ("timeout", target)
        assert target in replies[0].response
        assert (await office.directory.state(target)).turn is not None
        gate.set()
        state = await office.until(caller, lambda state: out(state) == "complete")
        events = await office.events(caller)
    assert statuses(events) == ["timeout", "complete"]
    assert (state.turn, state.queue, callbacks(events)) == (None, (), [])


async def test_stop_of_the_caller_leaves_the_other_agent_at_work() -> None:
    gate, started = asyncio.Event(), asyncio.Event()
    async with open_office() as office:
        caller = await office.begin("ada")
        office.scripts["bea"] = [says_until(gate, "Done.", started)]
        await office.ask(caller, writes(to()))
        await soon(started.wait())
        await office.do(caller, Interrupt())
        (target,) = await office.conversations("bea")
        assert (await office.directory.state(target)).turn is not None
        gate.set()
        await office.at_rest(target, turns=1)
        state, events = await office.directory.state(caller), await office.events(caller)
    assert (out(state), statuses(events), callbacks(events)) == ("cancelled", ["cancelled"], [])


async def test_message_taken_out_of_the_queue_comes_back_as_cancelled() -> None:
    gate, started = asyncio.Event(), asyncio.Event()
    async with open_office() as office:
        target, caller = await office.begin("bea"), await office.begin("ada")
        await office.ask(target, says_until(gate, "busy", started))
        await soon(started.wait())
        await office.ask(caller, writes(to()))
        await office.at_rest(caller, turns=1)
        (item,) = (await office.directory.state(target)).queue
        await office.do(target, RemoveQueued(item=item.id))
        await office.at_rest(caller, turns=2)
        events = await office.events(caller)
        gate.set()
    assert statuses(events) == ["queued", "cancelled"]
    assert len(callbacks(events)) == 1


async def test_answer_to_a_deleted_caller_is_dropped_quietly(caplog: pytest.LogCaptureFixture) -> None:
    gate, started = asyncio.Event(), asyncio.Event()
    async with open_office() as office:
        caller = await office.begin("ada")
        office.scripts["bea"] = [says_until(gate, "Blue.", started)]
        await office.ask(caller, writes(to(wait=False)))
        await soon(started.wait())
        await office.at_rest(caller, turns=1)
        await office.do(caller, DeleteConversation())
        (target,) = await office.conversations("bea")
        gate.set()
        state = await office.at_rest(target, turns=1)
        # A second exchange passes behind the first: by then that one was dealt with.
        await office.ask(await office.begin("ada"), writes(to(), call="y"))
        await office.at_rest(target, turns=2)
        events = await office.events(caller)
    assert state.last_turn is not None
    assert state.last_turn.outcome == "completed"
    assert caplog.records == []
    assert (callbacks(events), statuses(events)) == ([], ["started"])


@dataclass
class Stopped:
    """A turn that was stopped in the moment in which it spoke: what it says is dropped."""

    state: State
    id: str = "t1"
    agent_id: str = "ada"
    agent: AgentRecord = field(default_factory=lambda: AgentRecord(id="ada", name="Ada"))
    mode: str = "ask"

    async def tell(self, *events: KnownEvent) -> None:
        pass


async def test_message_of_a_turn_that_was_stopped_in_that_moment_is_not_sent() -> None:
    async with open_office() as office:
        target, caller = await office.begin("bea"), await office.begin("ada")
        reply = await office.exchanges.write(Stopped(await office.directory.state(caller)), to(), "x")
        state = await office.directory.state(target)
    assert (reply.status, state.turn, state.messages) == ("cancelled", None, ())
