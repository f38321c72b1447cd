"""Calls of our own tools by a program: questions that are answered, given up, or both at once; what fails."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from palaver.backends.own_tools import NOT_WANTED, OwnCalls, offer_tools, run_own_tool
from palaver.errors import LogUnavailable
from palaver.schema.commands import Answer
from palaver.schema.events import RequestResolved
from palaver.schema.view import Request
from palaver.tools.agents.ask_user import AskUser
from palaver.tools.agents.task import TaskTool
from palaver.tools.base import Report, ToolResult
from palaver.tools.toolbox import Toolbox
from tests.provider.turn import MemoryTurn

pytestmark = pytest.mark.anyio

WAIT_S = 20.0


class Asked:
    """A turn whose program asks; what it is told is kept by call."""

    def __init__(self) -> None:
        self.turn = MemoryTurn("go")
        self.calls = OwnCalls(self.turn, offer_tools(Toolbox(tools={"ask_user": AskUser()}), self.turn))
        self.results: dict[str, ToolResult] = {}
        self._told = asyncio.Event()

    def ask(self, call: str) -> Callable[[], object]:
        async def answer(result: ToolResult) -> None:
            self.results[call] = result
            self._told.set()

        question: dict[str, Any] = {"question": f"{call}?", "options": [{"label": "Ebb"}, {"label": "Flow"}]}
        return self.calls.begin("ask_user", {"questions": [question]}, call, answer)

    async def opened(self, count: int) -> dict[str, Request]:
        return {request.call or "": request for request in await self.turn.opened(count)}

    def answer(self, request: Request, chosen: str) -> None:
        answers = (Answer(question_index=0, selected=(chosen,)),)
        self.turn.resolve(RequestResolved(request=request.id, status="answered", verdict="allow", answers=answers))

    async def told(self) -> None:
        async with asyncio.timeout(WAIT_S):
            await self._told.wait()
        self._told.clear()

    async def given_up(self) -> list[RequestResolved]:
        async with asyncio.timeout(WAIT_S):
            await self.calls.given_up.wait()
        return self.calls.withdraw()


async def test_question_that_is_given_up_is_taken_back_once_and_the_other_is_answered() -> None:
    asked = Asked()
    give_up = asked.ask("first")
    asked.ask("second")
    requests = await asked.opened(2)
    give_up()
    assert await asked.given_up() == [
        RequestResolved(request=requests["first"].id, status="cancelled", text=NOT_WANTED)
    ]
    assert asked.calls.withdraw() == []
    asked.answer(requests["second"], "Flow")
    await asked.told()
    assert list(asked.results) == ["second"]
    assert '"chosen": ["Flow"]' in asked.results["second"].output


async def test_question_that_is_answered_as_it_is_given_up_is_not_taken_back() -> None:
    asked = Asked()
    give_up = asked.ask("first")
    requests = await asked.opened(1)
    asked.answer(requests["first"], "Ebb")
    give_up()
    assert await asked.given_up() == []
    assert asked.results == {}


async def test_turn_that_ends_lets_go_of_every_question() -> None:
    asked = Asked()
    for call in ("first", "second"):
        asked.ask(call)
    await asked.opened(2)
    asked.turn.interrupt()
    await asked.calls.close()
    # The stop has called them off already.
    assert await asked.given_up() == []
    assert asked.results == {}


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (LogUnavailable("The disk is away."), "The disk is away."),
        (RuntimeError("tide"), "task failed in an unforeseen way (RuntimeError)."),
    ],
)
async def test_tool_that_fails_is_a_result_in_words(failure: Exception, words: str) -> None:
    class Failing(MemoryTurn):
        async def delegate(self, agent: str | None, prompt: str, call: str) -> Report:
            raise failure

    given = {"prompt": "Count the tides."}
    result = await run_own_tool(TaskTool(lambda _: ()), given, Failing("go"), "call")
    assert (result.ok, result.error) == (False, words)
