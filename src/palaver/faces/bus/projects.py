"""Projects in the words of this contract: the mission, those before it, what is said of an agent's resting, the files."""

import asyncio
from operator import itemgetter
from pathlib import Path

import msgspec
from litestar import delete, get
from litestar.params import FromQuery, JSONBody
from msgspec import UNSET, Struct, UnsetType

from palaver.agents.projects import By
from palaver.core.project import Idle, Mission
from palaver.errors import Invalid, NotFound
from palaver.faces.bus.chat import FACE, BusRequest
from palaver.faces.http.body import decode
from palaver.faces.http.json_route import json_post
from palaver.faces.server import Server, ServerParts, origin_of
from palaver.schema.base import Id, Shown
from palaver.schema.events import MissionAgent
from palaver.tools.files.tree import DEPTH_LIMIT, Entry, tree_of


class NamedAgent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: Id
    idle_prompt: str | None = None
    idle_interval_secs: int | None = None


class MissionTold(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Without one: only that none is active."""

    active: bool
    text: str | None = None
    created_at: int | None = None
    agents: list[NamedAgent] | None = None
    ended_at: int | None = None
    project_root: str | None = None


class MissionsTold(Shown):
    missions: list[MissionTold]


class Done(Shown):
    ok: bool = True


class OverrideTold(Shown):
    project_root: str
    agent_id: str
    idle_prompt: str | None
    idle_interval_secs: int | None


class EntryTold(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    path: str
    type: str
    """`directory`, `file`, `link` or `other`."""
    size: int | None = None
    children: "list[EntryTold] | None" = None


class TreeTold(Shown):
    project_root: str
    path: str
    entries: list[EntryTold]
    truncated: bool


class MissionWish(Struct, frozen=True, kw_only=True):
    text: str
    project_root: str | None = None
    agents: tuple[NamedAgent, ...] = ()


class Named(Struct, frozen=True, kw_only=True):
    project_root: str | None = None


class OverrideWish(Struct, frozen=True, kw_only=True):
    """Only what is given changes; null takes it back."""

    agent_id: Id
    project_root: str | None = None
    idle_prompt: str | UnsetType | None = UNSET
    idle_interval_secs: int | UnsetType | None = UNSET


_named = msgspec.json.Decoder(Named)


# -- missions


@get("/api/mission", operation_id="bus_mission", tags=["bus"])
async def mission(request: BusRequest, server: Server, project_root: FromQuery[str | None] = None) -> MissionTold:
    """The mission that a project has."""
    state = await server.projects.state(await _folder(server, request, project_root))
    return _mission(state.mission) if state.mission else MissionTold(active=False)


@get("/api/missions", operation_id="bus_missions", tags=["bus"])
async def missions(request: BusRequest, server: Server, project_root: FromQuery[str | None] = None) -> MissionsTold:
    """Every mission that a project has had, or all projects; the latest first."""
    if project_root is None:
        states = await server.projects.all()
    else:
        states = [await server.projects.state(await _folder(server, request, project_root))]
    found = [
        (one.created_at, _mission(one, state.folder))
        for state in states
        for one in (*state.former, *([state.mission] if state.mission else []))
    ]
    return MissionsTold(missions=[one for _, one in sorted(found, key=itemgetter(0), reverse=True)])


def _mission(one: Mission, project_root: str | None = None) -> MissionTold:
    agents = [
        NamedAgent(id=named.agent, idle_prompt=named.idle_prompt, idle_interval_secs=named.idle_interval_s)
        for named in one.agents
    ]
    return MissionTold(
        active=one.ended_at is None,
        text=one.text,
        created_at=one.created_at,
        agents=agents,
        ended_at=one.ended_at,
        project_root=project_root,
    )


@json_post("/api/mission", "bus_set_mission", "bus")
async def set_mission(data: JSONBody[MissionWish], request: BusRequest, server: Server) -> Done:
    """Give a project a mission. The former one ends and stays in the history."""
    folder = await server.projects.choose(_root(server, data.project_root), origin_of(request, FACE))
    for named in data.agents:
        _check_agent(server, named.id, str(folder))
    agents = [
        MissionAgent(agent=named.id, idle_prompt=named.idle_prompt, idle_interval_s=named.idle_interval_secs)
        for named in data.agents
    ]
    await server.projects.set_mission(folder, data.text, agents, by=By(origin_of(request, FACE)))
    return Done()


@delete("/api/mission", status_code=200, operation_id="bus_clear_mission", tags=["bus"])
async def clear_mission(request: BusRequest, server: Server, project_root: FromQuery[str | None] = None) -> Done:
    """End the mission of a project, named in the query or in the body. Turns that run go on."""
    if project_root is None and (body := await request.body()):
        project_root = decode(body, _named).project_root
    folder = await _folder(server, request, project_root)
    await server.projects.clear_mission(folder, By(origin_of(request, FACE)))
    return Done()


# -- what a project says of an agent


@get("/api/agent-override", operation_id="bus_override", tags=["bus"])
async def override(
    request: BusRequest, server: Server, agent_id: FromQuery[str], project_root: FromQuery[str | None] = None
) -> OverrideTold:
    """The idle prompt and interval that a project has for an agent."""
    return await _override(server, await _folder(server, request, project_root), agent_id)


@json_post("/api/agent-override", "bus_set_override", "bus")
async def set_override(data: JSONBody[OverrideWish], request: BusRequest, server: Server) -> OverrideTold:
    """Change them: only what is given, null takes one back."""
    folder = await server.projects.choose(_root(server, data.project_root), origin_of(request, FACE))
    _check_agent(server, data.agent_id, str(folder))
    changes: dict[str, str | int | None] = {}
    if data.idle_prompt is not UNSET:
        changes["idle_prompt"] = data.idle_prompt
    if data.idle_interval_secs is not UNSET:
        changes["idle_interval_s"] = data.idle_interval_secs
    await server.projects.override(folder, data.agent_id, changes, By(origin_of(request, FACE)))
    return await _override(server, folder, data.agent_id)


async def _override(server: ServerParts, folder: Path, agent: str) -> OverrideTold:
    said = (await server.projects.state(folder)).overrides.get(agent)
    if said is None:
        _check_agent(server, agent, str(folder))
        said = Idle()
    return OverrideTold(
        project_root=str(folder), agent_id=agent, idle_prompt=said.prompt, idle_interval_secs=said.interval_s
    )


async def _folder(server: ServerParts, request: BusRequest, given: str | None) -> Path:
    return await server.projects.folder(_root(server, given), person=request.auth.may("decide"))


def _root(server: ServerParts, given: str | None) -> str:
    return given or str(server.directory.home)


def _check_agent(server: ServerParts, agent: str, folder: str) -> None:
    if server.agents.agent(agent, folder) is None:
        raise NotFound(server.agents.why_not(agent, folder), agent=agent)


# -- files


@get("/api/workspace/tree", operation_id="bus_tree", tags=["bus"])
async def tree(
    request: BusRequest, server: Server, project_root: FromQuery[str | None] = None, path: FromQuery[str] = "."
) -> TreeTold:
    """The files of a project, without what git ignores. Links are shown and never followed."""
    folder = await server.directory.folders.open(_root(server, project_root), person=request.auth.may("decide"))
    if "\0" in path:
        raise Invalid("`path`: this is no path.")
    found = await asyncio.to_thread(tree_of, folder, path, DEPTH_LIMIT)
    entries = [_entry(entry) for entry in found.entries]
    return TreeTold(project_root=found.project, path=found.path, entries=entries, truncated=found.truncated)


def _entry(entry: Entry) -> EntryTold:
    """Of a link its name alone: where it leads may lie outside."""
    return EntryTold(
        name=entry.name,
        path=entry.path,
        type="directory" if entry.kind == "folder" else entry.kind,
        size=entry.size_bytes if entry.kind == "file" else None,
        children=None if entry.entries is None else [_entry(one) for one in entry.entries],
    )


ROUTES = [mission, missions, set_mission, clear_mission, override, set_override, tree]
