"""Agents in the words of this contract: listed, made, changed (what is given is merged), copied, deleted."""

import msgspec
from litestar import get, put
from litestar.params import FromQuery, JSONBody
from msgspec import Struct

from palaver.agents.catalog import Known
from palaver.agents.changes import new_id
from palaver.agents.records import Wrong
from palaver.errors import Invalid, NotFound
from palaver.faces.http.body import JsonBody
from palaver.faces.http.json_route import json_post
from palaver.faces.rights import may_read
from palaver.faces.server import Server, ServerParts
from palaver.faces.stream.answer import StreamRequest, Success
from palaver.faces.stream.projection import Json
from palaver.schema.base import Id, Shown
from palaver.schema.records import McpServer

NAMES = {
    "systemPrompt": "system_prompt",
    "mcpServers": "mcp_servers",
    "allowedTools": "allowed_tools",
    "isDefault": None,
    "ready": None,
    "problem": None,
    "createdAt": None,
    "updatedAt": None,
}
"""The contract's names for what we call otherwise; None: not a client's to say."""


class Naming(Struct, frozen=True, kw_only=True):
    id: Id


class ServerTold(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Without what its environment and headers hold, which never leaves."""

    name: str
    url: str | None = None
    command: list[str] | None = None


class AgentTold(Shown, rename="camel"):
    id: str
    name: str
    description: str
    system_prompt: str
    model: str
    """Empty: the best there is."""
    mcp_servers: list[ServerTold]
    allowed_tools: list[str]
    backend: str
    is_default: bool
    ready: bool
    problem: str | None


class AgentAnswer(Shown):
    agent: AgentTold


class AgentList(Shown):
    agents: list[AgentTold]


def agent_info(server: ServerParts, known: Known, *, whole: bool = True) -> AgentTold:
    """Without its prompt, its servers' addresses and its allowances unless `whole`: those are for people."""
    record, entry = known.record if whole else None, server.agents.entry(known)
    return AgentTold(
        id=known.id,
        name=entry.name,
        description=entry.description,
        system_prompt=record.system_prompt if record else "",
        model=entry.model or "",
        mcp_servers=[_server(one) for one in record.mcp_servers] if record else [],
        allowed_tools=list(record.allowed_tools) if record else [],
        backend=entry.backend,
        is_default=known.id == "default",
        ready=entry.ready,
        problem=entry.problem,
    )


def _server(server: McpServer) -> ServerTold:
    if server.url:
        return ServerTold(name=server.name, url=server.url)
    return ServerTold(name=server.name, command=list(server.command))


def read_fields(body: Json) -> Json:
    """The body in our words. Names we do not know are the book's to refuse."""
    fields = {NAMES.get(name, name): value for name, value in body.items()}
    return {name: value for name, value in fields.items() if name is not None}


def _with_id(server: ServerParts, fields: Json) -> Json:
    """Clients of this contract leave the id to us, and two agents may have one name."""
    name = fields.get("name")
    if fields.get("id") is not None or not isinstance(name, str) or not name.strip():
        return fields
    try:
        agent = new_id(name, lambda one: server.agents.book.known(one) is not None)
    except Wrong:  # A name without a letter that an id may have.
        agent = server.ids.new()
    return {**fields, "id": agent}


def _with_secrets(changes: Json, known: Known) -> Json:
    """A server that comes back as it was told keeps what was not told of it: many clients save an agent as a whole."""
    servers = changes.get("mcp_servers")
    if not isinstance(servers, list) or known.record is None:
        return changes
    shown = [(msgspec.to_builtins(_server(one)), msgspec.to_builtins(one)) for one in known.record.mcp_servers]
    return {**changes, "mcp_servers": [next((whole for part, whole in shown if part == one), one) for one in servers]}


def _agent(server: ServerParts, agent: str) -> Known:
    known = server.agents.book.known(agent)
    if known is None:
        raise NotFound(server.agents.why_not(agent), agent=agent)
    return known


@get("/api/agents/list", operation_id="stream_list_agents", tags=["stream", "agents"])
async def list_agents(request: StreamRequest, server: Server) -> AgentList:
    """All that can be used, and those whose file has a problem."""
    whole = may_read(request.auth, "agents")
    return AgentList(agents=[agent_info(server, known, whole=whole) for known in server.agents.book.all()])


@get("/api/agents/get", operation_id="stream_get_agent", tags=["stream", "agents"])
async def get_agent(request: StreamRequest, server: Server, id: FromQuery[str]) -> AgentAnswer:
    """One of them. Its prompt, servers and allowances are told to people alone, as on every face."""
    return AgentAnswer(agent=agent_info(server, _agent(server, id), whole=may_read(request.auth, "agents")))


@json_post("/api/agents/create", "stream_create_agent", "stream", "agents")
async def create(data: JSONBody[Json], server: Server) -> AgentAnswer:
    """Make one."""
    return AgentAnswer(agent=agent_info(server, await server.agents.book.create(_with_id(server, read_fields(data)))))


@put(
    "/api/agents/update",
    dto=JsonBody,
    operation_id="stream_update_agent",
    tags=["stream", "agents"],
)
async def update(data: JSONBody[Json], server: Server) -> AgentAnswer:
    """Change what is given; everything else stays."""
    agent = data.get("id")
    if not isinstance(agent, str):
        raise Invalid("`id`: say which agent.")
    changes = read_fields({name: value for name, value in data.items() if name != "id"})
    changes = _with_secrets(changes, _agent(server, agent))
    return AgentAnswer(agent=agent_info(server, await server.agents.book.update(agent, changes)))


@json_post("/api/agents/delete", "stream_delete_agent", "stream", "agents")
async def remove(data: JSONBody[Naming], server: Server) -> Success:
    """Delete one. `default` and what comes with Palaver stay."""
    await server.agents.book.delete(data.id)
    await server.standing.forget(data.id)
    return Success()


@json_post("/api/agents/duplicate", "stream_duplicate_agent", "stream", "agents")
async def duplicate(data: JSONBody[Naming], server: Server) -> AgentAnswer:
    """A copy with an id of its own."""
    _agent(server, data.id)
    return AgentAnswer(agent=agent_info(server, await server.agents.book.duplicate(data.id)))


ROUTES = [list_agents, get_agent, create, update, remove, duplicate]
