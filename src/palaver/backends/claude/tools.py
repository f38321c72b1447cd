"""Our tools for Claude Code, as a server in this process: earlier conversations, and questions to the person.

Made by `program`; the SDK carries the calls. Each call belongs to the turn that runs at that moment.
"""

from typing import TYPE_CHECKING, Any

from palaver.backends.claude.asking import OwnQuestion
from palaver.tools.ask_user import AskUser
from palaver.tools.base import ToolResult

if TYPE_CHECKING:
    from claude_agent_sdk import McpSdkServerConfig

    from palaver.backends.claude.program import ClaudeProgram

FOUND_LIMIT = 8
"""Passages of one search: enough to find what is meant, and to ask again more exactly."""
SEARCH = "Search the earlier conversations of this project. Gives the best passages with their conversation's title."


def server(program: "ClaudeProgram") -> "McpSdkServerConfig":
    from claude_agent_sdk import create_sdk_mcp_server, tool

    ask = AskUser()
    query = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}

    @tool("search_conversations", SEARCH, query)
    async def search_conversations(given: dict[str, Any]) -> dict[str, Any]:
        if program.turn is None:
            return _said("There is no conversation to search from.", failed=True)
        found = await program.turn.search(str(given.get("query") or ""), FOUND_LIMIT)
        passages = [f"## {passage.title or 'Untitled'} ({passage.conversation})\n{passage.text}" for passage in found]
        return _said("\n\n".join(passages) or "Nothing was found.")

    @tool(ask.spec.name, ask.spec.description, dict(ask.spec.parameters))
    async def ask_user(given: dict[str, Any]) -> dict[str, Any]:
        asked = ask.ask(given)
        if isinstance(asked, ToolResult):
            return _said(asked.error or "", failed=True)
        resolved = await OwnQuestion.put(program, asked)
        answer = ask.answered(given, resolved)
        return _said(answer.output if answer.ok else answer.error or "", failed=not answer.ok)

    return create_sdk_mcp_server("palaver", tools=[search_conversations, ask_user])


def _said(text: str, *, failed: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "is_error": failed}
