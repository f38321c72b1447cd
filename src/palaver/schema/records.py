"""Records that are not events: agents, and what an agent is made of."""

from typing import Any

from palaver.schema.base import Decision, Id, Wire


class PolicyRule(Wire):
    """A standing word on a tool: its name (or `*`), and optionally what the call must look like."""

    tool: str
    decision: Decision
    match: str | None = None


class McpServer(Wire):
    """A server of tools: a program that speaks MCP on its standard streams, or an address that speaks it over HTTP."""

    name: Id
    command: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}
    trusted: bool = False
    """Believe it which of its tools only read; those then run without asking."""


class AgentRecord(Wire):
    """An agent a person can talk to. `backend` names what runs it; unset fields take the backend's defaults."""

    id: Id
    name: str
    description: str = ""
    backend: str = "api"
    command: tuple[str, ...] = ()
    """How to start its program, where the backend cannot know: any agent that speaks ACP."""
    environment: dict[str, str] = {}
    """What its program sees beside the usual."""
    model: str | None = None
    fallbacks: tuple[str, ...] = ()
    """Models that take over, in this order, when the one before cannot be had."""
    system_prompt: str = ""
    tools: tuple[str, ...] = ()
    """The tools it has; empty means all."""
    allowed_tools: tuple[str, ...] = ()
    """Of those, the ones that run without asking. Deny rules beat it."""
    mcp_servers: tuple[McpServer, ...] = ()
    policy: tuple[PolicyRule, ...] = ()
    mode: str | None = None
    spend_limit_usd: float | None = None
    """Of one conversation with it. Reaching it pauses and asks."""
    knowledge: bool = True
    """Recalls earlier conversations and notes of the project before it answers."""
    idle_prompt: str | None = None
    """What it is told when it has rested for a while during a mission."""
    idle_interval_s: int | None = None
    strict_inbox: bool = False
    """It speaks to people through its tools alone; plain text is an error that tells it so."""
    params: dict[str, Any] = {}
