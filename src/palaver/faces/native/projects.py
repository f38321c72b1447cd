"""Projects: the folders that are worked in, their missions, what they say of agents, and their file trees."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

from litestar import delete, get, post, put
from litestar.params import FromQuery, JSONBody, QueryParameter
from msgspec import UNSET, Struct, UnsetType

from palaver.agents.missions import MissionView
from palaver.agents.program_settings import ProgramFolder, ProgramReview, TrustedFolder
from palaver.agents.projects import By
from palaver.core.project import Idle, Mission
from palaver.errors import NotFound
from palaver.faces.http.body import JsonBody
from palaver.faces.native.conversations import NativeRequest
from palaver.faces.server import Server, ServerParts, origin_of
from palaver.schema.base import Id, Shown
from palaver.schema.events import MissionAgent
from palaver.tools.files.tree import DEPTH_LIMIT, Tree, tree_of

MISSION_BYTES = 1 << 20
HISTORY_LIMIT = 200

Project = FromQuery[str]
"""The whole path of a folder on the server."""


class ProjectEntry(Shown):
    """A folder that conversations or a mission are about. Counts leave out what was deleted."""

    project: str
    name: str
    exists: bool
    home: bool
    """Where a conversation without a project belongs."""
    conversations: int = 0
    unfinished: int = 0
    waiting: int = 0
    updated_at: int | None = None
    mission: str | None = None
    """The text of its active mission."""


class ProjectList(Shown):
    items: tuple[ProjectEntry, ...]


class PastMission(Shown):
    mission: str
    text: str
    active: bool
    created_at: int
    ended_at: int | None
    agents: tuple[MissionAgent, ...]
    budget_usd: float | None
    triggered: int
    conversations: dict[str, str]
    """By agent, for those that were woken."""


class MissionHistory(Shown):
    items: tuple[PastMission, ...]


class NamedAgent(Struct, frozen=True, kw_only=True):
    agent: Id
    idle_prompt: str | None = None
    idle_interval_s: int | None = None


class MissionWish(Struct, frozen=True, kw_only=True):
    text: str
    agents: tuple[NamedAgent, ...] = ()
    budget_usd: float | None = None
    client_request_id: Id | None = None


class Override(Shown):
    """What a project says of an agent's resting; null where it says nothing."""

    project: str
    agent: str
    idle_prompt: str | None
    idle_interval_s: int | None


class OverrideWish(Struct, frozen=True, kw_only=True):
    """Only what is given changes; null takes it back."""

    idle_prompt: str | UnsetType | None = UNSET
    idle_interval_s: int | UnsetType | None = UNSET
    client_request_id: Id | None = None


@get("/api/projects", operation_id="list_projects", tags=["projects"])
async def projects(server: Server) -> ProjectList:
    """Every folder that is or was worked in, the latest first."""
    home = str(await asyncio.to_thread(server.directory.home.resolve))
    found: dict[str, ProjectEntry] = {}
    for known in await server.log.folders():
        real = str(await asyncio.to_thread(Path(known.project).resolve))
        row = found.get(real) or await _entry(real, home)
        found[real] = _with(
            row,
            conversations=row.conversations + known.conversations,
            unfinished=row.unfinished + known.unfinished,
            waiting=row.waiting + known.waiting,
            updated_at=max(row.updated_at or 0, known.updated_at),
        )
    for state in await server.projects.all():
        row = found.get(state.folder) or await _entry(state.folder, home)
        mission = state.mission
        changed = [one.ended_at or 0 for one in state.former] + [mission.created_at if mission else 0]
        updated_at = max(row.updated_at or 0, *changed) or None
        found[state.folder] = _with(row, mission=mission.text if mission else None, updated_at=updated_at)
    return ProjectList(items=tuple(sorted(found.values(), key=lambda row: row.updated_at or 0, reverse=True)))


async def _entry(project: str, home: str) -> ProjectEntry:
    exists = await asyncio.to_thread(Path(project).is_dir)
    return ProjectEntry(project=project, name=Path(project).name or project, exists=exists, home=project == home)


def _with(row: ProjectEntry, **fields: Any) -> ProjectEntry:
    return ProjectEntry(**{name: getattr(row, name) for name in row.__struct_fields__} | fields)


async def _folder(server: ServerParts, request: NativeRequest, project: str) -> Path:
    return await server.projects.folder(project, person=request.auth.may("decide"))


# -- missions


@get("/api/projects/mission", operation_id="get_mission", tags=["projects"])
async def mission(request: NativeRequest, server: Server, project: Project) -> MissionView:
    """The mission of a project as it stands: who is busy, who is woken next and when, what it has cost."""
    return await server.missions.view(await _folder(server, request, project))


@put(
    "/api/projects/mission",
    dto=JsonBody,
    request_max_body_size=MISSION_BYTES,
    operation_id="set_mission",
    tags=["projects"],
)
async def set_mission(
    data: JSONBody[MissionWish], request: NativeRequest, server: Server, project: Project
) -> MissionView:
    """Give a project a mission. The former one ends and stays in the history. Nobody is woken before it has rested."""
    folder = await server.projects.choose(project, origin_of(request, "native"))
    for named in data.agents:
        _check_agent(server, named.agent, folder)
    agents = [
        MissionAgent(agent=named.agent, idle_prompt=named.idle_prompt, idle_interval_s=named.idle_interval_s)
        for named in data.agents
    ]
    by = By(origin_of(request, "native"), data.client_request_id)
    await server.projects.set_mission(folder, data.text, agents, data.budget_usd, by)
    return await server.missions.view(folder)


@delete(
    "/api/projects/mission",
    status_code=200,
    operation_id="clear_mission",
    tags=["projects"],
)
async def clear_mission(request: NativeRequest, server: Server, project: Project) -> MissionView:
    """End the mission. Nobody is woken any more; turns that run go on."""
    folder = await _folder(server, request, project)
    await server.projects.clear_mission(folder, By(origin_of(request, "native")))
    return await server.missions.view(folder)


@get("/api/projects/missions", operation_id="list_missions", tags=["projects"])
async def missions(
    request: NativeRequest,
    server: Server,
    project: Project,
    limit: Annotated[int, QueryParameter(ge=1, le=HISTORY_LIMIT)] = 50,
) -> MissionHistory:
    """Every mission the project has had, the latest first."""
    state = await server.projects.state(await _folder(server, request, project))
    every = [*state.former, *([state.mission] if state.mission else [])]
    return MissionHistory(items=tuple(_past(one) for one in reversed(every[-limit:])))


def _past(one: Mission) -> PastMission:
    return PastMission(
        mission=one.id,
        text=one.text,
        active=one.ended_at is None,
        created_at=one.created_at,
        ended_at=one.ended_at,
        agents=one.agents,
        budget_usd=one.budget_usd,
        triggered=one.triggered,
        conversations={agent: woken.conversation for agent, woken in one.woken.items()},
    )


# -- what a project says of an agent


@get("/api/projects/override", operation_id="get_override", tags=["projects"])
async def override(request: NativeRequest, server: Server, project: Project, agent: FromQuery[str]) -> Override:
    """The idle prompt and interval that a project has for an agent."""
    return await _override(server, await _folder(server, request, project), agent)


@put(
    "/api/projects/override",
    dto=JsonBody,
    operation_id="set_override",
    tags=["projects"],
)
async def set_override(
    data: JSONBody[OverrideWish], request: NativeRequest, server: Server, project: Project, agent: FromQuery[str]
) -> Override:
    """Change what a project says of an agent: only the given fields, null takes one back."""
    folder = await server.projects.choose(project, origin_of(request, "native"))
    _check_agent(server, agent, folder)
    changes: dict[str, str | int | None] = {}
    if data.idle_prompt is not UNSET:
        changes["idle_prompt"] = data.idle_prompt
    if data.idle_interval_s is not UNSET:
        changes["idle_interval_s"] = data.idle_interval_s
    by = By(origin_of(request, "native"), data.client_request_id)
    await server.projects.override(folder, agent, changes, by)
    return await _override(server, folder, agent)


async def _override(server: ServerParts, folder: Path, agent: str) -> Override:
    idle = (await server.projects.state(folder)).overrides.get(agent)
    if idle is None:
        _check_agent(server, agent, folder)
    said = idle or Idle()
    return Override(project=str(folder), agent=agent, idle_prompt=said.prompt, idle_interval_s=said.interval_s)


def _check_agent(server: ServerParts, agent: str, folder: Path) -> None:
    if server.agents.agent(agent, str(folder)) is None:
        raise NotFound(server.agents.why_not(agent, str(folder)), agent=agent)


# -- files


@get("/api/projects/tree", operation_id="get_tree", tags=["projects"])
async def tree(
    request: NativeRequest,
    server: Server,
    project: Project,
    path: FromQuery[str] = ".",
    depth: Annotated[int, QueryParameter(ge=1, le=DEPTH_LIMIT)] = 1,
) -> Tree:
    """The files of a folder of the project, without what git ignores; `depth` levels of it. Links are not followed."""
    folder = await server.directory.folders.open(project, person=request.auth.may("decide"))
    return await asyncio.to_thread(tree_of, folder, path, depth)


# -- settings of agent programs


class ProgramFolders(Shown):
    items: tuple[ProgramFolder, ...]


class TrustWish(Struct, frozen=True, kw_only=True):
    """`hash` says which files are meant, as the list told it."""

    program: str
    hash: str


class TrustedFolders(Shown):
    items: tuple[TrustedFolder, ...]


@get("/api/projects/trust", operation_id="list_program_settings", tags=["projects"])
async def program_settings(
    request: NativeRequest, server: Server, project: Project, agent: FromQuery[str | None] = None
) -> ProgramFolders:
    """What each agent program would read from a folder that can run code, and whether that is trusted; with an agent, only
    the program that runs it."""
    folder = await server.directory.folders.open(project, person=request.auth.may("decide"))
    record = server.agents.agent(agent, str(folder)) if agent is not None else None
    if agent is not None and record is None:
        return ProgramFolders(items=())
    return ProgramFolders(items=await server.agents.program_settings.list(folder, record))


@get("/api/projects/trust/review", operation_id="review_program_settings", tags=["projects"])
async def review_program_settings(
    request: NativeRequest, server: Server, project: Project, program: FromQuery[str]
) -> ProgramReview:
    """The files that trusting would switch on, as they are now, with the hash that says which they are."""
    folder = await server.directory.folders.open(project, person=request.auth.may("decide"))
    return await server.agents.program_settings.review(folder, program)


@get("/api/projects/trusted", operation_id="list_trusted_folders", tags=["projects"])
async def trusted_folders(server: Server) -> TrustedFolders:
    """Every folder whose settings were trusted for an agent program."""
    return TrustedFolders(items=await server.agents.program_settings.trusted())


@post(
    "/api/projects/trust",
    dto=JsonBody,
    status_code=200,
    operation_id="trust_program_settings",
    tags=["projects"],
)
async def trust_program_settings(
    request: NativeRequest, data: JSONBody[TrustWish], server: Server, project: Project
) -> ProgramFolder:
    """Let a program read a folder's settings, for as long as they are what they are now."""
    folder = await server.directory.folders.open(project, person=request.auth.may("decide"))
    return await server.agents.program_settings.give(folder, data.program, data.hash)


@delete(
    "/api/projects/trust",
    status_code=200,
    operation_id="distrust_program_settings",
    tags=["projects"],
)
async def distrust_program_settings(
    request: NativeRequest, server: Server, project: Project, program: FromQuery[str]
) -> ProgramFolder:
    """Take the trust back; it counts from the next turn on."""
    folder = await server.directory.folders.open(project, person=request.auth.may("decide"))
    return await server.agents.program_settings.take(folder, program)


ROUTES = [
    *(projects, mission, set_mission, clear_mission, missions, override, set_override, tree),
    *(program_settings, review_program_settings, trust_program_settings, distrust_program_settings, trusted_folders),
]
