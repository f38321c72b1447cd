"""Agents, as a server tells a client of them."""

from typing import Any

from msgspec import Struct


class AgentInfo(Struct):
    id: str
    name: str
    description: str = ""
    backend: str = ""
    model: str | None = None
    ready: bool = True
    note: str | None = None
    source: str = "built-in"
    editable: bool = False
    trusted: bool = True
    hash: str | None = None
    problem: str | None = None


class AgentDetails(AgentInfo):
    """The whole of an agent. Of an environment only the names are told, and whether each is set."""

    command: tuple[str, ...] = ()
    environment: dict[str, bool] = {}
    fallbacks: tuple[str, ...] = ()
    system_prompt: str = ""
    tools: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    mcp_servers: list[dict[str, Any]] = []
    policy: list[dict[str, Any]] = []
    mode: str | None = None
    spend_limit_usd: float | None = None
    knowledge: bool = True
    idle_prompt: str | None = None
    idle_interval_s: int | None = None
    strict_inbox: bool = False
    params: dict[str, Any] = {}
    given: tuple[str, ...] = ()


class Agents(Struct):
    items: list[AgentInfo]
    last_used: str | None = None
