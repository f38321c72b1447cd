"""What people always allow, beyond one conversation: seen in one place, and taken back."""

from litestar import delete, get
from litestar.params import FromPath

from palaver.errors import NotFound
from palaver.faces.server import Server
from palaver.schema.base import Shown
from palaver.tools.standing import StandingGrant


class GrantList(Shown):
    """`problem` says why what was allowed does not count at the moment."""

    items: tuple[StandingGrant, ...]
    problem: str | None


@get("/api/grants", operation_id="list_grants", tags=["requests"])
async def standing(server: Server) -> GrantList:
    """What was allowed for agents and projects, oldest first. A conversation's own are in its view."""
    items = server.standing.all()
    return GrantList(items=items, problem=server.standing.problem)


@delete("/api/grants/{grant:str}", operation_id="remove_grant", tags=["requests"])
async def remove(grant: FromPath[str], server: Server) -> None:
    """Take one back: such calls are asked for again, also in turns that run."""
    if not await server.standing.remove(grant):
        raise NotFound("There is no such grant: it was taken back before.", grant=grant)


ROUTES = [standing, remove]
