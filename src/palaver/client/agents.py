"""Agents and what runs them, as a server tells a client of them, and what a client may ask about them.

A part of `Client`. Fields that it does not know are passed over.
"""

from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from palaver.client.connection import Connection

TEST_S = 90.0
"""A test turn takes a minute at most, and what it started must end."""


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


class _Agents(Struct):
    items: list[AgentInfo]
    last_used: str | None = None


class BackendError(Struct):
    message: str
    ts: int = 0


class BackendInfo(Struct):
    """What runs agents, and whether it can. ACP agents have one each, named `acp:AGENT`."""

    name: str
    title: str = ""
    ready: bool = True
    installed: bool = True
    version: str | None = None
    summary: str = ""
    fix: str | None = None
    login: str | None = None
    capabilities: dict[str, bool] | None = None
    agents: tuple[str, ...] = ()
    processes: int = 0
    last_error: BackendError | None = None


class _Backends(Struct):
    items: list[BackendInfo]


class TrialError(Struct):
    code: str
    message: str


class Tried(Struct):
    """How a test turn went."""

    ok: bool
    text: str = ""
    duration_ms: int = 0
    error: TrialError | None = None


class ProcessInfo(Struct):
    """A program of an agent, or a process that one left in the background."""

    kind: str
    command: str = ""
    pid: int | None = None
    conversation: str | None = None
    title: str = ""
    agent: str | None = None
    backend: str | None = None
    started_at: int | None = None
    busy: bool = False
    idle_s: float = 0.0


class _Processes(Struct):
    items: list[ProcessInfo]


class Agents(Connection):
    async def agents(self, project: str | None = None) -> list[AgentInfo]:
        return (await self._get("/api/agents", _Agents, {"project": project})).items

    async def last_used_agent(self, project: str | None = None) -> str | None:
        """What a person chose last, to be offered first."""
        return (await self._get("/api/agents", _Agents, {"project": project})).last_used

    async def agent(self, agent: str, project: str | None = None) -> AgentDetails:
        return await self._get(f"/api/agents/{quote(agent, safe='')}", AgentDetails, {"project": project})

    async def create_agent(self, **fields: Any) -> AgentDetails:
        """Not tried again when the connection breaks: the second try would find its id taken."""
        return await self._request("POST", "/api/agents", AgentDetails, data=msgspec.json.encode(fields))

    async def update_agent(self, agent: str, **fields: Any) -> AgentDetails:
        """Changes what is given; None clears a field."""
        return await self._send("PATCH", f"/api/agents/{quote(agent, safe='')}", fields, AgentDetails)

    async def delete_agent(self, agent: str) -> None:
        await self._body("DELETE", f"/api/agents/{quote(agent, safe='')}")

    async def trust_agent(self, project: str, agent: str, hash: str | None) -> AgentInfo:
        """Let these bytes of a project's agent work there; None takes the trust back."""
        body = {"project": project, "agent": agent, "hash": hash}
        return await self._send("POST", "/api/agents/trust", body, AgentInfo)

    async def test(self, agent: str) -> Tried:
        """One real turn with an agent. Not tried again when the connection breaks: it may cost money."""
        return await self._request("POST", f"/api/agents/{quote(agent, safe='')}/test", Tried, limit_s=TEST_S)

    async def backends(self) -> list[BackendInfo]:
        return (await self._get("/api/backends", _Backends)).items

    async def processes(self) -> list[ProcessInfo]:
        return (await self._get("/api/processes", _Processes)).items

    async def end_process(self, pid: int) -> None:
        """Raises Conflict when a turn runs in it."""
        await self._body("DELETE", f"/api/processes/{pid}")
