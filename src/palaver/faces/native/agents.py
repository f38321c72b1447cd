"""Who can be talked to."""

from litestar import get

from palaver.agents.roster import AgentEntry
from palaver.faces.server import Server, needs
from palaver.schema.base import Shown


class AgentList(Shown):
    items: tuple[AgentEntry, ...]


@get("/api/agents", guards=[needs("read")], operation_id="list_agents", tags=["agents"])
async def agents(server: Server) -> AgentList:
    """The agents of this server, and whether each is ready to answer."""
    return AgentList(items=tuple(server.agents.entries()))


ROUTES = [agents]
