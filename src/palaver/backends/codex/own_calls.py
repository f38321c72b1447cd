"""Calls of our tools in one turn of Codex: each carried out by itself, and answered whatever becomes of it.

Used by the turn, which ends them when it ends itself.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from palaver.backends.base import Turn
from palaver.backends.codex.events import ToolCall
from palaver.backends.codex.process import AppServer, Json
from palaver.backends.own_tools import OVER, run_own_tool
from palaver.errors import AgentError
from palaver.tools.base import Tool, ToolResult


class OwnCalls:
    def __init__(self, turn: Turn, server: AppServer, tools: Sequence[Tool], known: Mapping[str, ToolCall]) -> None:
        """`known` are the calls that Codex tells of, by its names."""
        self._turn = turn
        self._server = server
        self._tools = {tool.spec.name: tool for tool in tools}
        self._known = known
        self._running: set[asyncio.Task[None]] = set()

    @property
    def tasks(self) -> "list[asyncio.Task[None]]":
        return list(self._running)

    async def begin(self, request: int | str, params: Json) -> None:
        name, arguments = str(params.get("tool")), params.get("arguments")
        tool = self._tools.get(name)
        if tool is None:
            await self._server.reply(
                request, _tool_result(ToolResult(ok=False, error=f"There is no tool “{name}” here."))
            )
            return
        known = self._known.get(str(params.get("callId")))
        call = known.call if known else self._turn.new_id()
        given = arguments if isinstance(arguments, dict) else {}
        task = asyncio.create_task(self._answer(request, tool, given, call), name=f"{name} of codex")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _answer(self, request: int | str, tool: Tool, given: Json, call: str) -> None:
        """Whatever happens, there is an answer: Codex waits for it."""
        result = OVER
        try:
            result = await run_own_tool(tool, given, self._turn, call)
        finally:
            # Where the program is gone the turn sees it for itself.
            with suppress(AgentError):
                await self._server.reply(request, _tool_result(result))


def _tool_result(result: ToolResult) -> Json:
    text = result.output if result.ok else result.error or ""
    return {"contentItems": [{"type": "inputText", "text": text}], "success": result.ok}
