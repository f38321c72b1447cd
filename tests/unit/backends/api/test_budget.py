"""A spending limit pauses and asks before the next model call; a yes raises it, a no ends the turn."""

import asyncio

from palaver.backends.api.budget import Spending
from palaver.schema.events import AnswerFinished, AnswerStarted, ConversationUpdated, KnownEvent
from palaver.schema.records import AgentRecord
from palaver.schema.view import Request, Trigger
from tests.provider.turn import MemoryTurn, allow, deny

FRUGAL = AgentRecord(id="default", name="Default", spend_limit_usd=0.5)


async def _check(turn: MemoryTurn) -> tuple[Spending, list[KnownEvent]]:
    spending = Spending(turn)
    events = [event async for event in spending.check()]
    for event in events:
        turn.accept(event)
    await turn.committed()
    return spending, events


def _spent(turn: MemoryTurn, amount: float) -> MemoryTurn:
    message = turn.new_id()
    turn.accept(AnswerStarted(message=message))
    turn.accept(AnswerFinished(message=message, finish_reason="stop", cost_usd=amount))
    return turn


def _opened(turn: MemoryTurn) -> list[Request]:
    return list(turn.state.requests)


async def test_below_the_limit_nothing_is_asked() -> None:
    turn = _spent(MemoryTurn("Hi", agent=FRUGAL), 0.49)
    await turn.committed()
    spending, events = await _check(turn)
    assert (spending.declined, events, _opened(turn)) == (None, [], [])


async def test_without_a_limit_nothing_is_asked() -> None:
    turn = _spent(MemoryTurn("Hi"), 1_000.0)
    await turn.committed()
    assert (await _check(turn))[1] == []


async def test_at_the_limit_a_yes_raises_it_and_the_turn_goes_on() -> None:
    turn = _spent(MemoryTurn("Hi", agent=FRUGAL, decide=allow), 0.6)
    await turn.committed()
    spending, events = await _check(turn)
    assert spending.declined is None
    assert [event.params for event in events if isinstance(event, ConversationUpdated)] == [{"spend_limit_usd": 1.6}]
    asked = _opened(turn)[0]
    assert (asked.kind, asked.call) == ("approval", None)
    assert "$0.50" in (asked.title or "")
    assert "$0.60" in (asked.preview or "")
    again, more = await _check(turn)
    assert (again.declined, more) == (None, [])


async def test_at_the_limit_a_no_ends_the_turn() -> None:
    turn = _spent(MemoryTurn("Hi", params={"spend_limit_usd": 0}, agent=FRUGAL, decide=deny), 0.001)
    await turn.committed()
    spending, events = await _check(turn)
    assert events == []
    assert spending.declined is not None
    assert "$0.00" in spending.declined


async def test_answer_given_after_a_restart_is_not_asked_for_again() -> None:
    turn = _spent(MemoryTurn("Hi", agent=FRUGAL), 0.6)
    await turn.committed()
    checking = asyncio.create_task(_check(turn))
    (asked,) = await turn.opened(1)
    checking.cancel()
    await asyncio.wait({checking})
    state = turn.restart()
    turn = MemoryTurn(state=state, agent=FRUGAL, trigger=Trigger(kind="request", request=asked.id))
    turn.resolve(allow(asked))
    spending, events = await _check(turn)
    assert (spending.declined, len(events), len(_opened(turn))) == (None, 1, 1)
