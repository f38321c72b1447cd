"""What a turn waits for from outside: how many requests at once, for how long, and results of an editor."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from palaver.backends.base import Turn
from palaver.clock import ManualClock
from palaver.conversation.requests import OPEN_REQUESTS, PERMISSION_TIMEOUT_S, with_expiry
from palaver.schema.commands import Interrupt, ResolveRequest, ReturnToolResult, SendMessage, SetParams
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    KnownEvent,
    RequestOpened,
    RequestResolved,
    ToolCalled,
    ToolStarted,
    TurnFinished,
)
from palaver.schema.view import RequestKind
from tests.unit.conversation.house import Script, open_house, soon


def asks(count: int, answers: list[RequestResolved], reached: asyncio.Event | None = None) -> Script:
    """So many questions at once; the turn is over when all are answered."""

    async def script(turn: Turn) -> AsyncIterator[KnownEvent]:
        waiting = [
            asyncio.create_task(turn.request(RequestOpened(request=f"q{number}", kind="question")))
            for number in range(count)
        ]
        try:
            for done in asyncio.as_completed(waiting):
                answers.append(await done)
                if reached:
                    reached.set()
        finally:
            for task in waiting:
                task.cancel()
        yield TurnFinished(outcome="completed")

    return script


async def test_request_beyond_the_bound_is_refused_and_harms_nobody() -> None:
    answers: list[RequestResolved] = []
    reached = asyncio.Event()
    async with open_house() as house:
        house.puppet.scripts = [asks(OPEN_REQUESTS + 2, answers, reached)]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="go"))
        await soon(reached.wait())
        state = await house.until(conversation, lambda state: len(state.requests) == OPEN_REQUESTS)
        assert all(request.status == "open" for request in state.requests)
        assert state.turn is not None
        assert {answer.status for answer in answers} == {"cancelled"}
        assert "32 requests wait" in str(answers[0].text)
        for request in state.requests:
            await house.do(conversation, ResolveRequest(request=request.id, text="yes"))
        state = await house.at_rest(conversation)
        assert state.last_turn is not None
        assert state.last_turn.outcome == "completed"
    assert len(answers) == OPEN_REQUESTS + 2
    assert len([answer for answer in answers if answer.status == "cancelled"]) == 2


async def test_request_that_a_person_answered_is_not_ended_again_by_the_agent() -> None:
    gave_up = asyncio.Event()

    async def script(turn: Turn) -> AsyncIterator[KnownEvent]:
        answer = await turn.request(RequestOpened(request="q", kind="question"))
        gave_up.set()
        yield RequestResolved(request=answer.request, status="cancelled", text="It no longer needs to know.")
        yield RequestResolved(request="never asked", status="cancelled")
        yield TurnFinished(outcome="completed")

    async with open_house() as house:
        house.puppet.scripts = [script]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="go"))
        await house.until(conversation, lambda state: bool(state.requests))
        await house.do(conversation, ResolveRequest(request="q", text="yes"))
        await soon(gave_up.wait())
        await house.at_rest(conversation)
        ends = [event for event in await house.events(conversation) if isinstance(event, RequestResolved)]
    assert [(event.request, event.status, event.text) for event in ends] == [("q", "answered", "yes")]


@pytest.mark.parametrize(
    ("agents", "conversations", "waits_s"),
    [
        ({}, {}, None),
        ({"request_timeout_s": 60}, {}, 60),
        ({"request_timeout_s": 60}, {"request_timeout_s": 20}, 20),
        ({}, {"request_timeout_s": 20}, 20),
        ({"request_timeout_s": 60}, {"request_timeout_s": 0}, None),
        ({"request_timeout_s": 0}, {}, None),
    ],
)
async def test_request_expires_as_conversation_then_agent_then_server_say(
    agents: dict[str, Any], conversations: dict[str, Any], waits_s: float | None
) -> None:
    clock = ManualClock()
    async with open_house(clock=clock) as house:
        house.roster.params = agents
        house.puppet.scripts = [asks(1, [])]
        conversation = await house.begin()
        if conversations:
            await house.do(conversation, SetParams(patch=conversations))
        await house.do(conversation, SendMessage(content="go"))
        state = await house.until(conversation, lambda state: bool(state.requests))
        expires_at = state.requests[0].expires_at
        assert expires_at == (None if waits_s is None else clock.now_ms() + int(waits_s * 1000))
        await house.do(conversation, Interrupt())


@pytest.mark.parametrize(
    ("kind", "face", "params", "waits_s"),
    [
        ("approval", "stream", {}, PERMISSION_TIMEOUT_S),
        ("approval", "native", {}, None),
        ("approval", None, {}, None),
        ("question", "stream", {}, None),
        ("plan", "stream", {}, None),
        ("approval", "stream", {"request_timeout_s": 0}, None),
        ("approval", "stream", {"request_timeout_s": 7}, 7),
        ("question", "native", {"request_timeout_s": 7}, 7),
    ],
)
def test_only_permissions_of_the_stream_face_expire_unless_somebody_said_so(
    kind: RequestKind, face: str | None, params: dict[str, Any], waits_s: float | None
) -> None:
    request = with_expiry(RequestOpened(request="q", kind=kind), params, 1_000, face)
    assert request.expires_at == (None if waits_s is None else 1_000 + int(waits_s * 1000))


def edits(*calls: str) -> Script:
    """Calls that an editor executes."""

    async def script(turn: Turn) -> AsyncIterator[KnownEvent]:
        message = turn.new_id()
        yield AnswerStarted(message=message)
        for block, call in enumerate(calls):
            yield ToolCalled(message=message, block=block, call=call, name="rename", input={})
        yield AnswerFinished(message=message, finish_reason="tool_calls")
        for call in calls:
            yield ToolStarted(call=call, grant="ide")
        await turn.committed()
        for call in calls:
            await turn.result_of(call)
        yield TurnFinished(outcome="completed")

    return script


async def test_turn_waits_for_an_editors_results_in_any_order() -> None:
    async with open_house() as house:
        house.puppet.scripts = [edits("a", "b", "c")]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="go"))
        await house.until(conversation, lambda state: state.status == "waiting_ide")
        for call in ("c", "a"):
            await house.do(conversation, ReturnToolResult(call=call, content="done"))
        assert (await house.directory.state(conversation)).turn is not None
        await house.do(conversation, ReturnToolResult(call="b", content="no", failed=True))
        state = await house.at_rest(conversation)
    assert state.last_turn is not None
    assert state.last_turn.outcome == "completed"


async def test_stop_frees_a_turn_that_waits_for_an_editor() -> None:
    async with open_house() as house:
        house.puppet.scripts = [edits("a")]
        conversation = await house.begin()
        await house.do(conversation, SendMessage(content="go"))
        await house.until(conversation, lambda state: state.status == "waiting_ide")
        await house.do(conversation, Interrupt())
        state = await house.at_rest(conversation)
        await house.do(conversation, SendMessage(content="again"))
        await house.at_rest(conversation)
    assert state.last_turn is not None
    assert state.last_turn.outcome == "interrupted"
