"""Our tools for Claude Code, as a server in this process: earlier conversations, questions to the person, other agents.

Made by `program`; the SDK carries the calls. Each call belongs to the turn that runs at that moment. What takes its time (a
task, a message to another agent) is held by that turn, which ends it when it ends itself.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from palaver.backends.base import Turn
from palaver.backends.claude.approvals import OwnQuestion
from palaver.backends.claude.process import Signal
from palaver.backends.own_tools import OVER, run_own_tool
from palaver.tools.agents.ask_user import AskUser
from palaver.tools.agents.knowledge import SearchConversations
from palaver.tools.base import Tool, ToolResult

if TYPE_CHECKING:
    from claude_agent_sdk import McpSdkServerConfig, SdkMcpTool

    from palaver.backends.claude.process import ClaudeProgram


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call of one of our tools that the turn has to hold."""

    tool: Tool
    given: Mapping[str, Any]
    answer: "asyncio.Future[ToolResult]"

    async def carry_out(self, turn: Turn, call: str) -> None:
        """Whatever happens, there is an answer: the program waits for it."""
        result = OVER
        try:
            result = await run_own_tool(self.tool, self.given, turn, call)
        finally:
            if not self.answer.done():
                self.answer.set_result(result)


def server(program: "ClaudeProgram", others: Sequence[Tool] = ()) -> "McpSdkServerConfig":
    """`others` are tools that work through the turn: to give a task, to write to another agent."""
    from claude_agent_sdk import ToolAnnotations, create_sdk_mcp_server, tool

    ask = AskUser()

    @tool(ask.spec.name, ask.spec.description, dict(ask.spec.parameters))
    async def ask_user(given: dict[str, Any]) -> dict[str, Any]:
        asked = ask.ask(given)
        if isinstance(asked, ToolResult):
            return _text_result(asked.error or "", failed=True)
        resolved = await OwnQuestion.put(program, asked)
        return _tool_result(ask.answered(given, resolved))

    def held(own: Tool) -> "SdkMcpTool[Any]":
        # Of calls that only read the program makes several at once; whoever is set to work here asks for its own effects.
        at_once = ToolAnnotations(readOnlyHint=True)

        @tool(own.spec.name, own.spec.description, dict(own.spec.parameters), annotations=at_once)
        async def call(given: dict[str, Any]) -> dict[str, Any]:
            if program.resting:
                return _tool_result(OVER)
            held = OwnCall(own, given, asyncio.get_running_loop().create_future())
            program.inbox.put_nowait(Signal(held))
            return _tool_result(await held.answer)

        return call

    return create_sdk_mcp_server("palaver", tools=[held(SearchConversations()), ask_user, *map(held, others)])


def _tool_result(result: ToolResult) -> dict[str, Any]:
    return _text_result(result.output if result.ok else result.error or "", failed=not result.ok)


def _text_result(text: str, *, failed: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "is_error": failed}
