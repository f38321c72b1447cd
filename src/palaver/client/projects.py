"""What a server says of projects, as the client reads it. Fields that it does not know are passed over."""

from msgspec import Struct


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


class Missions(Struct):
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


class Projects(Struct):
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
