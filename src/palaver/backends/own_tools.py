"""Our own tools in the hands of an agent program: to give a task to another agent, to write to one, to search.

Used by the backends whose programs can be offered tools. The program decides when to call; the turn that runs at that moment
carries the call out and ends it when it ends itself. None of them acts by itself, so none needs leave: whoever is set to work
asks for its own effects.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from palaver.backends.base import Turn
from palaver.backends.judging import mode_of
from palaver.schema.events import KnownEvent
from palaver.schema.view import Outcome
from palaver.tools.base import Letter, Passage, Reply, Report, Tool, ToolResult, Workplace
from palaver.tools.task import is_deepest
from palaver.tools.toolbox import Toolbox

OVER = ToolResult(ok=False, error="The turn is over; nothing more comes of this.")


def offered(toolbox: Toolbox | None, turn: Turn) -> list[Tool]:
    """What this turn's agent may be offered: as its record says, and no tasks where nobody may stand below."""
    if toolbox is None:
        return []
    has, tools = turn.agent.tools, toolbox.delegating(turn.project, is_deepest(turn.state)).tools
    return [cast(Tool, tool) for name, tool in tools.items() if not has or name in has]


async def carried_out(tool: Tool, arguments: Mapping[str, Any], turn: Turn, call: str) -> ToolResult:
    """`call` is ours: what the call brings about names it."""
    place = Workplace(
        root=turn.project, output=_unheard, spill=turn.store_blob, host=_Host(turn), call=call, mode=mode_of(turn)
    )
    return await tool.run(arguments, place)


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
