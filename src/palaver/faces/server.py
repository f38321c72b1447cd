"""What every face is given: the conversations, their feed and log, the agents, and who may come in.

Made by `app.py`, handed to routes by name (`server`). Holds nothing of its own.
"""

from dataclasses import dataclass, field
from typing import Any

from litestar.connection import ASGIConnection
from litestar.di import NamedDependency

from palaver.agents.backends import Backends
from palaver.agents.missions import Missions
from palaver.agents.projects import Projects
from palaver.agents.roster import Roster
from palaver.agents.test_turn import Trials
from palaver.approval.policy import Rule
from palaver.approval.standing_grants import StandingGrants
from palaver.clock import Clock, Ids
from palaver.conversation.defaults import Defaults
from palaver.conversation.directory import Directory
from palaver.conversation.project_files.trajectories import Trajectories
from palaver.faces.http.open_streams import Streams
from palaver.faces.listings import Listings
from palaver.faces.socket.voices import Speaker
from palaver.feed.feed import Feed
from palaver.history.programs.places import Places
from palaver.log.base import EventLog
from palaver.people.authentication import Failures, Keys, Principal
from palaver.schema.base import Origin
from palaver.tools.shell.background import Processes

CLIENT_CHARS = 128


@dataclass(frozen=True, slots=True, eq=False)
class ServerParts:
    name: str
    version: str
    port: int
    directory: Directory
    feed: Feed
    log: EventLog
    agents: Roster
    backends: Backends
    trials: Trials
    projects: Projects
    missions: Missions
    processes: Processes
    keys: Keys
    failures: Failures
    streams: Streams
    listings: Listings
    clock: Clock
    ids: Ids
    standing: StandingGrants
    places: Places
    """Where other programs of the same user keep their conversations."""
    trajectories: Trajectories | None = None
    """Who writes conversations down beside their projects, if anybody does."""
    speaker: Speaker | None = None
    """Reads answers aloud, where something can."""
    full_enabled: bool = False
    """Mode `full` counts here; else it is no more than `ask`."""
    defaults: Defaults = field(default_factory=Defaults)
    """What counts where nobody said otherwise; a person may change it."""
    rules: tuple[Rule, ...] = ()
    """The policy of the configuration, over every tool call of an agent."""


Server = NamedDependency[ServerParts]
"""How a route asks for them."""

Connection = ASGIConnection[Any, Principal, Principal, Any]


def origin_of(connection: Connection, face: str) -> Origin:
    """Who did it, for the events it causes. A client may name itself, to know its own events again."""
    client = connection.headers.get("palaver-client", "")[:CLIENT_CHARS] or None
    return origin_for(connection.auth, face, client)


def origin_for(principal: Principal, face: str, client: str | None, agent: str | None = None) -> Origin:
    """The one place that says of a command whether a person gave it, and how far that person's yes may reach."""
    decides, changes_agents = principal.may("decide"), principal.may("admin")
    return Origin(
        face=face,
        client=client,
        user=principal.name,
        agent=agent,
        agent_token=not decides,
        human_token=decides and not changes_agents,
    )
