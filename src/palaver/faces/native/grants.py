"""What people always allow, beyond one conversation: seen in one place, and taken back."""

from litestar import delete, get
from litestar.params import FromPath
from msgspec import structs

from palaver.approval.policy import why_not_lasting
from palaver.approval.standing_grants import StandingGrant
from palaver.errors import NotFound
from palaver.faces.server import Server, ServerParts
from palaver.schema.base import Shown


class ListedGrant(StandingGrant):
    """`problem` says why this one counts no more."""

    problem: str | None = None


class GrantList(Shown):
    """`problem` says why what was allowed does not count at the moment."""

    items: tuple[ListedGrant, ...]
    problem: str | None


@get("/api/grants", operation_id="list_grants", tags=["requests"])
async def standing(server: Server) -> GrantList:
    """What was allowed for agents and projects, oldest first. A conversation's own are in its view."""
    items = tuple(_grant_info(known) for known in server.standing.all() if _counts(known, server))
    return GrantList(items=items, problem=server.standing.problem)


def _grant_info(grant: StandingGrant) -> ListedGrant:
    return ListedGrant(**structs.asdict(grant), problem=why_not_lasting(grant.match))


def _counts(grant: StandingGrant, server: ServerParts) -> bool:
    """Not once a person has taken the tool out of the agent's record."""
    if not grant.in_record:
        return True
    known = server.agents.book.known(grant.agent or "")
    return known is not None and known.record is not None and grant.tool in known.record.allowed_tools


@delete("/api/grants/{grant:str}", operation_id="remove_grant", tags=["requests"])
async def remove(grant: FromPath[str], server: Server) -> None:
    """Take one back: such calls are asked for again, also in turns that run."""
    known = server.standing.get(grant)
    if known is not None and known.in_record and _counts(known, server):
        await server.agents.book.disallow_tool(known.agent or "", known.tool)
    if not await server.standing.remove(grant):
        raise NotFound("There is no such grant: it was taken back before.", grant=grant)


ROUTES = [standing, remove]
