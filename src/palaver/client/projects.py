"""Projects and their missions, as a server tells a client of them, and what a client may ask about them.

A part of `Client`. Fields that it does not know are passed over.
"""

from collections.abc import Mapping, Sequence
from uuid import uuid4

from msgspec import Struct

from palaver.client.connection import Connection


class NamedAgent(Struct, omit_defaults=True):
    """An agent of a mission, and what the mission says of its resting."""

    agent: str
    idle_prompt: str | None = None
    idle_interval_s: int | None = None


class MissionAgent(Struct):
    """How an agent stands with its mission. The prompt and the interval are those that hold for it now."""

    agent: str
    idle_prompt: str | None = None
    idle_interval_s: int = 60
    conversation: str | None = None
    triggered: int = 0
    next_due_at: int | None = None
    status: str = ""


class MissionInfo(Struct):
    """The mission of a project. `status` says why nobody is woken any more: `limit`, `budget`."""

    active: bool
    project: str = ""
    stream: str = ""
    mission: str | None = None
    text: str = ""
    created_at: int | None = None
    agents: tuple[MissionAgent, ...] = ()
    budget_usd: float | None = None
    spent_usd: float = 0.0
    triggered: int = 0
    limit: int = 0
    status: str | None = None


class PastMission(Struct):
    mission: str
    text: str = ""
    active: bool = False
    created_at: int = 0
    ended_at: int | None = None
    agents: tuple[NamedAgent, ...] = ()
    budget_usd: float | None = None
    triggered: int = 0
    conversations: dict[str, str] = {}


class _Missions(Struct):
    items: list[PastMission]


class ProjectInfo(Struct):
    """A folder that is or was worked in."""

    project: str
    name: str = ""
    exists: bool = True
    home: bool = False
    conversations: int = 0
    unfinished: int = 0
    waiting: int = 0
    updated_at: int | None = None
    mission: str | None = None


class _Projects(Struct):
    items: list[ProjectInfo]


class OverrideInfo(Struct):
    """What a project says of an agent's resting."""

    agent: str
    idle_prompt: str | None = None
    idle_interval_s: int | None = None


class TreeEntry(Struct):
    """`leads` says where a link leads: to a `file` or `folder` of the project, `outside` or `nowhere`."""

    name: str
    path: str
    kind: str
    size_bytes: int | None = None
    target: str | None = None
    leads: str | None = None
    entries: tuple["TreeEntry", ...] | None = None


class TreeInfo(Struct):
    path: str
    entries: tuple[TreeEntry, ...] = ()
    truncated: bool = False


class ProgramFolderInfo(Struct):
    """What of an agent program's settings a folder holds, and whether it is trusted."""

    program: str
    name: str = ""
    paths: tuple[str, ...] = ()
    hash: str | None = None
    trusted: bool = False
    summary: str = ""


class ReviewFile(Struct):
    """A file of a program's settings. `text` None: no text, or too long to be shown."""

    path: str
    size_bytes: int = 0
    sha256: str = ""
    text: str | None = None
    link: str | None = None


class ProgramReview(Struct):
    settings: ProgramFolderInfo
    files: tuple[ReviewFile, ...] = ()


class TrustedFolderInfo(Struct):
    """A folder that was trusted for a program; `holds`: its settings are still the same."""

    project: str
    program: str
    name: str = ""
    holds: bool = True


class _TrustedFolders(Struct):
    items: list[TrustedFolderInfo]


class _ProgramFolders(Struct):
    items: list[ProgramFolderInfo]


class Projects(Connection):
    async def projects(self) -> list[ProjectInfo]:
        return (await self._get("/api/projects", _Projects)).items

    async def mission(self, project: str) -> MissionInfo:
        return await self._get("/api/projects/mission", MissionInfo, {"project": project})

    async def missions(self, project: str, limit: int = 50) -> list[PastMission]:
        """Those it has and had, the latest first."""
        return (await self._get("/api/projects/missions", _Missions, {"project": project, "limit": limit})).items

    async def set_mission(
        self, project: str, text: str, agents: Sequence[NamedAgent] = (), *, budget_usd: float | None = None
    ) -> MissionInfo:
        body = {"text": text, "agents": agents, "budget_usd": budget_usd, "client_request_id": str(uuid4())}
        return await self._send("PUT", "/api/projects/mission", body, MissionInfo, {"project": project})

    async def clear_mission(self, project: str) -> MissionInfo:
        return await self._request("DELETE", "/api/projects/mission", MissionInfo, {"project": project})

    async def override(self, project: str, agent: str) -> OverrideInfo:
        return await self._get("/api/projects/override", OverrideInfo, {"project": project, "agent": agent})

    async def set_override(self, project: str, agent: str, changes: Mapping[str, str | int | None]) -> OverrideInfo:
        """`idle_prompt`, `idle_interval_s`: only what is given changes, None takes one back."""
        query = {"project": project, "agent": agent}
        return await self._send("PUT", "/api/projects/override", changes, OverrideInfo, query)

    async def tree(self, project: str, path: str = ".", depth: int = 1) -> TreeInfo:
        return await self._get("/api/projects/tree", TreeInfo, {"project": project, "path": path, "depth": depth})

    async def program_settings(self, project: str, agent: str | None = None) -> list[ProgramFolderInfo]:
        """Of every program, or of the one that runs an agent."""
        query = {"project": project} | ({"agent": agent} if agent else {})
        return (await self._get("/api/projects/trust", _ProgramFolders, query)).items

    async def review_program(self, project: str, program: str) -> ProgramReview:
        """The files that trusting would switch on."""
        return await self._get("/api/projects/trust/review", ProgramReview, {"project": project, "program": program})

    async def trusted_folders(self) -> list[TrustedFolderInfo]:
        return (await self._get("/api/projects/trusted", _TrustedFolders)).items

    async def trust_program(self, project: str, program: str, hash: str) -> ProgramFolderInfo:
        """Let a program read these files of a folder, until they change."""
        body = {"program": program, "hash": hash}
        return await self._send("POST", "/api/projects/trust", body, ProgramFolderInfo, {"project": project})

    async def distrust_program(self, project: str, program: str) -> ProgramFolderInfo:
        query = {"project": project, "program": program}
        return await self._request("DELETE", "/api/projects/trust", ProgramFolderInfo, query)
