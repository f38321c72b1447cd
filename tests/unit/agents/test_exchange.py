"""What one agent writes to another, and the answer that comes back: once, whatever happens in between."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from palaver.agents.letters import WIDTH
from palaver.backends.base import Turn
from palaver.core.exchanges import HOPS, find
from palaver.errors import AgentError, NotInstalled, StorageFull
from palaver.log.base import Append, Appended
from palaver.log.memory import MemoryLog
from palaver.schema.base import Origin
from palaver.schema.commands import (
    DeleteConversation,
    Deliver,
    Interrupt,
    RemoveQueued,
    ResolveRequest,
    SendMessage,
    UpdateConversation,
)
from palaver.schema.events import (
    ConversationCreated,
    ExchangeReturned,
    ExchangeSent,
    KnownEvent,
    MessageAdded,
    RequestOpened,
    ToolCalled,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from palaver.schema.records import AgentRecord
from palaver.schema.view import Parent, State, ToolBlock
from palaver.tools.base import Reply
from tests.unit.agents.post import HOME, Recorded, events_of, open_office, to, writes
from tests.unit.conversation.house import Script, answer, says, says_until, soon

Events = list[Any]


def of(events: Events, kind: type[Any]) -> Events:
    return [event for event in events if isinstance(event, kind)]


def callbacks(events: Events) -> Events:
    return [event for event in of(events, TurnStarted) if event.trigger.kind == "callback"]


def out(state: State, exchange: str = "x") -> str:
    found = find(state, exchange, "out")
    assert found is not None
    return found.status


def statuses(events: Events) -> list[str]:
    return [event.status for event in of(events, ExchangeReturned)]


def is_answered(state: State) -> bool:
    return any(known.direction == "in" and known.finished_at for known in state.exchanges)


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
        caller = await office.begin("ada", project="/elsewhere")
        await office.ask(caller, writes(to(conversation="create")))
        await office.at_rest(caller, turns=1)
        (target,) = await office.conversations("bea")
        (created,) = of(await office.events(target), ConversationCreated)
    assert (created.agent, created.project) == ("bea", "/elsewhere")
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


async def test_answer_to_a_deleted_caller_is_dropped_quietly() -> None:
    gate, started = asyncio.Event(), asyncio.Event()
    async with open_office() as office:
        caller = await office.begin("ada")
        office.scripts["bea"] = [says_until(gate, "Blue.", started)]
        await office.ask(caller, writes(to(wait=False)))
        await soon(started.wait())
        await office.at_rest(caller, turns=1)
        await office.do(caller, DeleteConversation())
        (target,) = await office.conversations("bea")
        with capture_logs() as said:
            gate.set()
            state = await office.at_rest(target, turns=1)
            # A second exchange passes behind the first: by then that one was dealt with.
            await office.ask(await office.begin("ada"), writes(to(), call="y"))
            await office.at_rest(target, turns=2)
        events = await office.events(caller)
    assert state.last_turn is not None
    assert state.last_turn.outcome == "completed"
    assert [entry for entry in said if entry["log_level"] in ("warning", "error")] == []
    assert (callbacks(events), statuses(events)) == ([], ["started"])


@dataclass
class Stopped:
    """A turn that was stopped in the moment in which it spoke: what it says is dropped."""

    state: State
    id: str = "t1"
    agent_id: str = "ada"
    mode: str = "ask"

    async def tell(self, *events: KnownEvent) -> None:
        pass


async def test_message_of_a_turn_that_was_stopped_in_that_moment_is_not_sent() -> None:
    async with open_office() as office:
        target, caller = await office.begin("bea"), await office.begin("ada")
        reply = await office.exchanges.write(Stopped(await office.directory.state(caller)), to(), "x")
        state = await office.directory.state(target)
    assert (reply.status, state.turn, state.messages) == ("cancelled", None, ())


# -- to whom


def refused(state: State) -> bool:
    return any(isinstance(block, ToolBlock) and block.status == "error" for m in state.messages for block in m.blocks)


@pytest.mark.parametrize(
    ("letter", "words"),
    [
        (to("zoe"), "There is no agent “zoe”. There are: ada, bea."),
        (to(content=" \n"), "empty"),
        (to(content="x" * 50_000), "48,000"),
        (to(conversation="latest"), "has no conversation in this project"),
        (to(conversation="nowhere"), "no conversation “nowhere”"),
        (to("ada", conversation="CALLER"), "this very conversation"),
        (to("ada", conversation="OTHER"), "is with bea, not with ada"),
        (to(conversation="CHILD"), "a subagent's"),
    ],
)
async def test_message_that_cannot_be_sent_is_refused_in_words_and_nothing_is_recorded(letter: Any, words: str) -> None:
    replies: list[Reply] = []
    async with open_office() as office:
        caller = await office.begin("ada")
        other = await office.begin("bea", project="/elsewhere")
        child = Parent(kind="subagent", conversation=other, root=other)
        made = ConversationCreated(agent="bea", project=HOME, parent=child)
        await office.directory.begin_as("child", made, Origin(face="agents"))
        named = {"CALLER": caller, "OTHER": other, "CHILD": "child"}.get(letter.conversation, letter.conversation)
        await office.ask(caller, writes(to(letter.agent, letter.content, conversation=named), replies))
        await office.at_rest(caller, turns=1)
        events = await office.events(caller)
    assert replies[0].status == "failed"
    assert words in replies[0].response
    assert of(events, ExchangeSent) == []


async def test_latest_is_the_newest_conversation_of_that_agent_in_the_project() -> None:
    replies: list[Reply] = []
    async with open_office() as office:
        caller = await office.begin("ada", project="/here")
        await office.begin("bea", project="/elsewhere")
        wanted = await office.begin("bea", project="/here")
        await office.begin("ada", project="/here")
        for order in (UpdateConversation(archived=True), DeleteConversation()):
            await office.do(await office.begin("bea", project="/here"), order)
        for choice in ("latest", "latest-or-create", wanted):
            letter = to(conversation=choice)
            await office.ask(caller, writes(letter, replies, call=f"x-{choice}"))
            await office.at_rest(caller, turns=len(replies) + 1)
        count = len(await office.conversations("bea"))
    assert [reply.conversation for reply in replies] == [wanted] * 3
    assert count == 3


async def test_create_makes_a_new_conversation_each_time() -> None:
    replies: list[Reply] = []
    async with open_office() as office:
        caller = await office.begin("ada")
        for call in ("x", "y"):
            await office.ask(caller, writes(to(conversation="create"), replies, call=call))
            await office.at_rest(caller, turns=len(replies) + 1)
        targets = await office.conversations("bea")
    assert [reply.conversation for reply in replies] == targets


async def test_nobody_gets_more_done_through_another_agent_than_is_allowed_to_themselves() -> None:
    records = [
        AgentRecord(id="ada", name="Ada", backend="p"),
        AgentRecord(id="bea", name="Bea", backend="p", mode="auto"),
        AgentRecord(id="cleo", name="Cleo", backend="p", mode="plan"),
    ]
    async with open_office(None, *records) as office:
        caller = await office.begin("ada", params={"mode": "accept_edits"})
        bold = await office.begin("bea", params={"mode": "full"})
        for call, letter in (
            ("1", to("bea", conversation=bold)),
            ("2", to("bea", conversation="create")),
            ("3", to("cleo")),
        ):
            await office.ask(caller, writes(letter, call=call))
            await office.at_rest(caller, turns=int(call))
        made = (await office.conversations("bea"))[-1]
        (cleo,) = await office.conversations("cleo")
        params = [(await office.directory.state(one)).params for one in (made, cleo)]
        modes = [of(await office.events(one), TurnStarted)[0].mode for one in (bold, made, cleo)]
    assert params == [{"mode": "accept_edits"}, {"mode": "plan"}]
    assert modes == ["accept_edits", None, None]


async def test_agents_that_write_to_each_other_on_and_on_are_told_to_let_the_person_speak() -> None:
    replies: list[Reply] = []
    async with open_office() as office:
        caller, other = await office.begin("ada"), await office.begin("bea")
        letters = {"ada": to("bea", conversation=other, wait=False), "bea": to("ada", conversation=caller, wait=False)}
        for agent, letter in letters.items():
            office.scripts[agent] = [writes(letter, replies, call=f"{agent}{number}") for number in range(HOPS * 2)]
        await office.say(caller)
        for conversation in (caller, other):
            await office.until(conversation, lambda state: refused(state) and state.turn is None and not state.queue)
        sent = [*of(await office.events(caller), ExchangeSent), *of(await office.events(other), ExchangeSent)]
        # A person's word lets them go on.
        await office.clock.advance(1)
        again: list[Reply] = []
        office.scripts["ada"][:] = [writes(to("bea", conversation="create"), again, call="again")]
        office.scripts["bea"].clear()
        await office.say(caller)
        await office.until(caller, lambda state: find(state, "again", "out") is not None and state.turn is None)
    assert all("let the person speak" in reply.response for reply in replies if reply.status == "failed")
    assert max(event.hops for event in sent) == HOPS
    assert len(sent) <= 2 * HOPS
    assert [reply.status for reply in again] == ["complete"]


async def test_agent_whose_queue_is_full_does_not_get_the_message_and_that_is_told() -> None:
    replies: list[Reply] = []
    gate, started = asyncio.Event(), asyncio.Event()
    async with open_office() as office:
        target, caller = await office.begin("bea"), await office.begin("ada")
        await office.ask(target, says_until(gate, "busy", started))
        await soon(started.wait())
        for number in range(50):
            await office.do(target, SendMessage(content=f"{number}"))
        await office.ask(caller, writes(to(wait=False), replies))
        state = await office.at_rest(caller, turns=1)
        await office.do(target, DeleteConversation())
    assert replies[0].status == "failed"
    assert "The queue is full" in replies[0].response
    assert out(state) == "failed"


async def test_subagent_waits_for_a_busy_agent_because_it_has_no_later_turn() -> None:
    replies: list[Reply] = []
    gate, started = asyncio.Event(), asyncio.Event()
    async with open_office() as office:
        above, target = await office.begin("ada"), await office.begin("bea")
        parent = Parent(kind="subagent", conversation=above, root=above)
        made = ConversationCreated(agent="ada", project=HOME, parent=parent)
        await office.directory.begin_as("child", made, Origin(face="agents"))
        await office.ask(target, says_until(gate, "busy", started), says("Blue."))
        await soon(started.wait())
        later = writes(to(wait=False), replies, call="1")
        upwards = writes(to("ada", conversation=above), replies, call="2")
        for number, script in enumerate((later, upwards), 1):
            office.scripts["ada"] = [script]
            await office.do("child", Deliver(content="work", trigger="task"))
            await office.at_rest("child", turns=number)
        office.scripts["ada"] = [writes(to(), replies, call="3")]
        await office.do("child", Deliver(content="work", trigger="task"))
        await office.until(target, lambda state: bool(state.queue))
        gate.set()
        await office.at_rest("child", turns=3)
        events = await office.events("child")
    assert [reply.status for reply in replies] == ["failed", "failed", "complete"]
    assert replies[2].response == "Blue."
    assert callbacks(events) == []


async def test_agent_that_waits_for_eight_answers_writes_to_nobody_else() -> None:
    replies: list[Reply] = []
    gate = asyncio.Event()
    async with open_office() as office:
        caller = await office.begin("ada")
        office.scripts["bea"] = [says_until(gate, "Blue.") for _ in range(WIDTH)]

        async def writes_to_many(turn: Turn) -> AsyncIterator[KnownEvent]:
            letters = (turn.write_to(to(conversation="create", wait=False), f"x{place}") for place in range(WIDTH + 2))
            replies.extend(await asyncio.gather(*letters))
            replies.append(await turn.write_to(to(conversation="create"), "later"))
            yield TurnFinished(outcome="completed")

        await office.ask(caller, writes_to_many)
        await office.at_rest(caller, turns=1)
        gate.set()
        await office.at_rest(caller, turns=1 + WIDTH)
    assert [reply.status for reply in replies] == ["started"] * WIDTH + ["failed"] * 3
    assert "still unanswered" in replies[-1].response


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


# -- through restarts


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

    async with open_office(log) as office:
        caller = await office.begin("ada")
        office.scripts["bea"] = [asks]
        await office.ask(caller, writes(to(wait=False)))
        await soon(asked.wait())
        (target,) = await office.conversations("bea")
        await office.until(target, lambda state: bool(state.requests))
        await office.at_rest(caller, turns=1)
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
        await turn.request(RequestOpened(request="q", kind="question"))
        yield TurnFinished(outcome="completed")

    async with open_office(log) as office:
        caller = await office.begin("ada")
        office.scripts["bea"] = [asks]
        await office.ask(caller, writes(to(wait=False)))
        await soon(asked.wait())
        (target,) = await office.conversations("bea")
        await office.until(target, lambda state: bool(state.requests))
        await office.at_rest(caller, turns=1)
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
