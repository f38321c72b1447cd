"""What waits for a person anywhere, and finding old work."""

from typing import Annotated

from litestar import get
from litestar.params import FromQuery, QueryParameter

from palaver.errors import Invalid
from palaver.faces.server import Server, needs
from palaver.schema.base import Shown
from palaver.schema.view import Request

QUERY_CHARS = 1_000


class WaitingRequest(Shown):
    conversation: str
    title: str
    agent: str
    request: Request


class Waiting(Shown):
    items: tuple[WaitingRequest, ...]


class Hit(Shown):
    """`before`, `match` and `after` are the text around what was found; `seq` is where it stands."""

    conversation: str
    title: str
    message: str
    seq: int
    role: str
    before: str
    match: str
    after: str


class Hits(Shown):
    items: tuple[Hit, ...]


@get("/api/requests", guards=[needs("read")], operation_id="list_requests", tags=["requests"])
async def waiting(server: Server) -> Waiting:
    """Every open approval, question and plan, oldest first."""
    found = await server.directory.waiting()
    return Waiting(
        items=tuple(
            WaitingRequest(conversation=row.id, title=row.title, agent=request.agent or row.agent, request=request)
            for row, request in found
        )
    )


@get("/api/search", guards=[needs("read")], operation_id="search", tags=["search"])
async def search(
    server: Server,
    q: FromQuery[str],
    conversation: FromQuery[str | None] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=200)] = 20,
) -> Hits:
    """Messages in which a text is found, newest first."""
    if not q.strip() or len(q) > QUERY_CHARS:
        raise Invalid(f"`q`: say what to look for, in at most {QUERY_CHARS:,} characters.")
    found = await server.log.search(q.strip(), limit=limit, conversation=conversation)
    return Hits(
        items=tuple(
            Hit(
                conversation=hit.conversation,
                title=hit.title,
                message=hit.message,
                seq=hit.seq,
                role=hit.role,
                before=hit.before,
                match=hit.match,
                after=hit.after,
            )
            for hit in found
        )
    )


ROUTES = [waiting, search]
