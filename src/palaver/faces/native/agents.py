"""Who can be talked to, and what each is made of: listed, made, changed, copied, removed, trusted.

Whoever changes an agent decides what runs on this machine, so all of that is the owner's. What an environment or a header
holds never leaves: a client is told that it is set.
"""

import asyncio
from pathlib import Path
from typing import Any

from litestar import delete, get, patch, post
from litestar.params import FromPath, FromQuery, JSONBody
from msgspec import Struct, defstruct
from msgspec.structs import fields

from palaver.agents.catalog import Known
from palaver.agents.roster import AgentEntry
from palaver.errors import NotFound
from palaver.faces.http.body import JsonBody, json_body_like
from palaver.faces.native.conversations import NativeRequest
from palaver.faces.server import Server, ServerParts
from palaver.schema.base import Id, Shown
from palaver.schema.records import AgentRecord, PolicyRule


class AgentList(Shown):
    """`last_used` is what a person chose last, if it can be used: to be offered first."""

    items: tuple[AgentEntry, ...]
    last_used: str | None


class McpServerShown(Shown):
    name: str
    command: tuple[str, ...]
    environment: dict[str, bool]
    """Whether each is set; the same below."""
    url: str | None
    headers: dict[str, bool]
    trusted: bool


class AgentShown(AgentEntry):
    """The whole of an agent. `given` are the fields its own file sets."""

    command: tuple[str, ...]
    environment: dict[str, bool]
    fallbacks: tuple[str, ...]
    system_prompt: str
    tools: tuple[str, ...]
    allowed_tools: tuple[str, ...]
    mcp_servers: tuple[McpServerShown, ...]
    policy: tuple[PolicyRule, ...]
    mode: str | None
    spend_limit_usd: float | None
    knowledge: bool
    idle_prompt: str | None
    idle_interval_s: int | None
    strict_inbox: bool
    params: dict[str, Any]
    given: tuple[str, ...]


AgentFields = defstruct(
    "AgentFields",
    [(known.name, known.type | None, None) for known in fields(AgentRecord)],
    namespace={"__doc__": "What can be said of an agent; null leaves a field, or clears it where there is one."},
    module=__name__,
    frozen=True,
    kw_only=True,
)


class Trusting(Struct, frozen=True, kw_only=True):
    """`hash` says which bytes are meant, as the list told it; null takes the trust back."""

    project: str
    agent: Id
    hash: str | None


class Copying(Struct, frozen=True, kw_only=True):
    id: Id | None = None
    name: str | None = None


@get("/api/agents", operation_id="list_agents", tags=["agents"])
async def agents(request: NativeRequest, server: Server, project: FromQuery[str | None] = None) -> AgentList:
    """The agents of this server, and of a project; whether each is ready to answer, and what is wrong with its file."""
    await _folder(server, request, project)
    last = server.agents.last_used.agent
    usable = last and server.agents.agent(last, project) is not None
    # Beside the loop: a project's files are anybody's, and there may be a hundred of them.
    items = await asyncio.to_thread(server.agents.entries, project)
    return AgentList(items=tuple(items), last_used=last if usable else None)


@get("/api/agents/{agent:str}", operation_id="get_agent", tags=["agents"])
async def agent(
    agent: FromPath[str], request: NativeRequest, server: Server, project: FromQuery[str | None] = None
) -> AgentShown:
    """The whole of one."""
    known = server.agents.book.known(agent, await _folder(server, request, project))
    if known is None:
        raise NotFound(server.agents.why_not(agent, project), agent=agent)
    return agent_info(server, known)


@post(
    "/api/agents",
    dto=json_body_like(AgentFields),
    operation_id="create_agent",
    tags=["agents"],
)
async def create(data: JSONBody[dict[str, Any]], server: Server) -> AgentShown:
    """Make one: its fields, `system_prompt`, and an `id` unless it can be made from the name."""
    return agent_info(server, await server.agents.book.create(data))


@patch(
    "/api/agents/{agent:str}",
    dto=json_body_like(AgentFields),
    operation_id="update_agent",
    tags=["agents"],
)
async def update(agent: FromPath[str], data: JSONBody[dict[str, Any]], server: Server) -> AgentShown:
    """Change what is given; null clears a field. Everything else in its file stays."""
    return agent_info(server, await server.agents.book.update(agent, data))


@delete("/api/agents/{agent:str}", operation_id="delete_agent", tags=["agents"])
async def remove(agent: FromPath[str], server: Server) -> None:
    """Its conversations stay, and say that it is gone. What was always allowed for it is taken back."""
    await server.agents.book.delete(agent)
    await server.standing.forget(agent)


@post(
    "/api/agents/{agent:str}/duplicate",
    dto=JsonBody,
    operation_id="duplicate_agent",
    tags=["agents"],
)
async def duplicate(
    agent: FromPath[str],
    request: NativeRequest,
    server: Server,
    data: JSONBody[Copying | None] = None,
    project: FromQuery[str | None] = None,
) -> AgentShown:
    """A copy with a file of its own."""
    wishes = {"id": data.id, "name": data.name} if data else {}
    folder = await _folder(server, request, project)
    return agent_info(server, await server.agents.book.duplicate(agent, folder, wishes))


@post(
    "/api/agents/trust",
    dto=JsonBody,
    status_code=200,
    operation_id="trust_agent",
    tags=["agents"],
)
async def trust(data: JSONBody[Trusting], request: NativeRequest, server: Server) -> AgentEntry:
    """Let a project's agent work in that project, for as long as its file is what it is now."""
    await _folder(server, request, data.project)
    return server.agents.entry(await server.agents.book.trust(data.agent, Path(data.project), data.hash))


def agent_info(server: ServerParts, known: Known) -> AgentShown:
    entry = server.agents.entry(known)
    record = known.record or AgentRecord(id=known.id, name=known.id, backend=entry.backend)
    return AgentShown(
        **{name: getattr(entry, name) for name in AgentEntry.__struct_fields__},
        command=record.command,
        environment=_set(record.environment),
        fallbacks=record.fallbacks,
        system_prompt=record.system_prompt,
        tools=record.tools,
        allowed_tools=record.allowed_tools,
        mcp_servers=tuple(
            McpServerShown(
                name=server.name,
                command=server.command,
                environment=_set(server.environment),
                url=server.url,
                headers=_set(server.headers),
                trusted=server.trusted,
            )
            for server in record.mcp_servers
        ),
        policy=record.policy,
        mode=record.mode,
        spend_limit_usd=record.spend_limit_usd,
        knowledge=record.knowledge,
        idle_prompt=record.idle_prompt,
        idle_interval_s=record.idle_interval_s,
        strict_inbox=record.strict_inbox,
        params=record.params,
        given=tuple(known.given),
    )


def _set(secrets: dict[str, str]) -> dict[str, bool]:
    return {name: bool(value) for name, value in secrets.items()}


async def _folder(server: ServerParts, request: NativeRequest, project: str | None) -> Path | None:
    if project is None:
        return None
    await server.directory.folders.open(project, person=request.auth.may("decide"))
    return Path(project)


ROUTES = [agents, trust, agent, create, update, remove, duplicate]
