"""To whom an agent may write, how often, and with what power: whatever cannot be sent is refused in words."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from palaver.agents.addressing import WIDTH
from palaver.backends.base import Turn
from palaver.core.exchanges import HOPS, find
from palaver.schema.base import Origin
from palaver.schema.commands import (
    DeleteConversation,
    Deliver,
    SendMessage,
    UpdateConversation,
)
from palaver.schema.events import (
    ConversationCreated,
    ExchangeSent,
    KnownEvent,
    TurnFinished,
    TurnStarted,
)
from palaver.schema.records import AgentRecord
from palaver.schema.view import Parent, State, ToolBlock
from palaver.tools.base import Reply
from tests.unit.agents.post import HOME, open_office, to, writes
from tests.unit.agents.told import callbacks, of, out
from tests.unit.conversation.house import says, says_until, soon


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
        other = await office.begin("bea", project="/usr/lib")
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
        caller = await office.begin("ada", project="/usr/share")
        await office.begin("bea", project="/usr/lib")
        wanted = await office.begin("bea", project="/usr/share")
        await office.begin("ada", project="/usr/share")
        for order in (UpdateConversation(archived=True), DeleteConversation()):
            await office.do(await office.begin("bea", project="/usr/share"), order)
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
