"""Our own tools in the hands of an agent program: to give a task to another agent, to write to one, to search, to ask.

Used by the backends whose programs can be offered tools. The program decides when to call; the turn that runs at that moment
carries the call out and ends it when it ends itself. None of them acts by itself, so none needs leave: whoever is set to work
asks for its own effects.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from palaver.approval.program_calls import mode_of, proposal_of
from palaver.backends.base import Turn
from palaver.core.state import find_request
from palaver.errors import PalaverError
from palaver.journal import Journal
from palaver.schema.events import KnownEvent, RequestResolved
from palaver.schema.view import Outcome
from palaver.tools.agents.task import is_deepest
from palaver.tools.base import (
    Asking,
    Letter,
    Passage,
    Proposal,
    Reply,
    Report,
    Tool,
    ToolResult,
    ToolSpec,
    Workplace,
)
from palaver.tools.toolbox import Toolbox, is_asking

OVER = ToolResult(ok=False, error="The turn is over; nothing more comes of this.")
NOT_WANTED = "It no longer needs to know."
LET_GO_S = 1.0
"""For whoever was set to work to be stopped. All clean-up together must end before the conversation goes on without it."""

Answer = Callable[[ToolResult], Awaitable[None]]

logger = Journal(__name__)


def offer_tools(toolbox: Toolbox | None, turn: Turn) -> list[Tool]:
    """What this turn's agent may be offered: as its record says, and no tasks where nobody may stand below."""
    if toolbox is None:
        return []
    has, tools = turn.agent.tools, toolbox.delegating(turn.project, is_deepest(turn.state)).tools
    return [_runnable(tool, turn) for name, tool in tools.items() if not has or name in has]


def _runnable(tool: Tool | Asking, turn: Turn) -> Tool:
    return Question(tool, turn) if is_asking(tool) else cast(Tool, tool)


class Question:
    """Implements `Tool` for one whose call is itself a question to a person.

    The program waits for the answer as for any result, so the call counts as running while it is open.
    """

    def __init__(self, tool: Asking, turn: Turn) -> None:
        self._tool = tool
        self._turn = turn
        self._taken_back: list[RequestResolved] = []

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        asked = self._tool.ask(arguments)
        if isinstance(asked, ToolResult):
            return asked
        return proposal_of("palaver", self.spec.name, arguments, root, path=None, edits=False, reads=True)

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        asked = self._tool.ask(arguments)
        if isinstance(asked, ToolResult):
            return asked
        request = msgspec.structs.replace(
            asked, request=self._turn.new_id(), call=place.call or None, agent=self._turn.agent.id
        )
        try:
            return self._tool.answered(arguments, await self._turn.request(request))
        except asyncio.CancelledError:
            self._taken_back.append(RequestResolved(request=request.request, status="cancelled", text=NOT_WANTED))
            raise

    def withdraw(self) -> list[RequestResolved]:
        """The ends of those that the program waits for no longer, once each; not of one that a person just answered."""
        taken_back, self._taken_back = self._taken_back, []
        return [ended for ended in taken_back if not self._is_over(ended.request)]

    def _is_over(self, request: str) -> bool:
        known = find_request(self._turn.state, request)
        return known is not None and known.status != "open"


async def run_own_tool(tool: Tool, arguments: Mapping[str, Any], turn: Turn, call: str) -> ToolResult:
    """`call` is ours: what the call brings about names it. Whatever goes wrong is said in the result."""
    place = Workplace(
        root=turn.project,
        output=_unheard,
        spill=turn.store_blob,
        programs=turn.programs,
        host=_Host(turn),
        call=call,
        mode=mode_of(turn),
    )
    try:
        return await tool.run(arguments, place)
    except PalaverError as failure:
        return ToolResult(ok=False, error=failure.message)
    except Exception as failure:
        name = tool.spec.name
        logger.exception("a tool failed in an unforeseen way", tool=name)
        return ToolResult(ok=False, error=f"{name} failed in an unforeseen way ({type(failure).__name__}).")


def describe_call(tool: Tool, arguments: Mapping[str, Any], project: Path) -> tuple[ToolSpec, Proposal]:
    """A call as the policy sees it. One that makes no sense does nothing: it may run, and says what is wrong."""
    proposal = tool.propose(arguments, project)
    if isinstance(proposal, Proposal):
        return tool.spec, proposal
    return tool.spec, proposal_of("palaver", tool.spec.name, arguments, project, path=None, edits=False, reads=True)


class OwnCalls:
    """The calls of our tools in one turn. Each runs by itself and ends with the turn at the latest."""

    def __init__(self, turn: Turn, tools: Sequence[Tool]) -> None:
        self.tools = {tool.spec.name: tool for tool in tools}
        self.given_up = asyncio.Event()
        """A call was: there may be questions that are `withdraw`."""
        self._turn = turn
        self._running: set[asyncio.Task[None]] = set()

    def begin(self, name: str, arguments: Any, call: str, answer: Answer) -> Callable[[], object]:
        """`answer` is told the result; not when the turn ends first, for then the program's own wait is ended too. Returns
        what gives the call up."""
        task = asyncio.create_task(self._answer(name, arguments, call, answer), name=f"{name} {call}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task.cancel

    def withdraw(self) -> list[RequestResolved]:
        """The ends of questions that the program gave up, for the turn to tell."""
        self.given_up.clear()
        questions = [tool for tool in self.tools.values() if isinstance(tool, Question)]
        return [ended for question in questions for ended in question.withdraw()]

    async def close(self) -> None:
        running = list(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=LET_GO_S)

    async def _answer(self, name: str, arguments: Any, call: str, answer: Answer) -> None:
        try:
            await answer(await self._result(name, arguments, call))
        except PalaverError as failure:
            # The program is gone, which the turn sees for itself.
            logger.info("nobody took the result of a tool of ours", tool=name, reason=failure.message)
        except asyncio.CancelledError:
            self.given_up.set()
            raise

    async def _result(self, name: str, arguments: Any, call: str) -> ToolResult:
        tool = self.tools.get(name)
        if tool is None:
            return ToolResult(ok=False, error=f"There is no tool “{name}” here.")
        return await run_own_tool(tool, arguments if isinstance(arguments, Mapping) else {}, self._turn, call)


class _Host:
    """Implements `tools.base.Host` as far as these tools ask."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    @property
    def conversation(self) -> str:
        return self._turn.conversation

    async def emit(self, event: KnownEvent) -> None:
        raise RuntimeError("The program tells what happens in its turn; no tool that is offered to it does.")

    def end_turn(self, outcome: Outcome, summary: str | None = None) -> None:
        raise RuntimeError("The program ends its own turn; no tool that is offered to it does.")

    async def search(self, query: str, limit: int) -> Sequence[Passage]:
        return await self._turn.search(query, limit)

    async def process_ended(self, process: str, exit_code: int | None, text: str) -> None:
        await self._turn.process_ended(process, exit_code, text)

    async def delegate(self, agent: str | None, prompt: str, call: str) -> Report:
        return await self._turn.delegate(agent, prompt, call)

    async def write_to(self, letter: Letter, call: str) -> Reply:
        return await self._turn.write_to(letter, call)


async def _unheard(text: str, stream: Literal["stdout", "stderr"]) -> None:
    pass
