"""What waits for a person anywhere, and finding old work."""

from typing import Annotated, Literal

from litestar import get
from litestar.params import FromQuery, QueryParameter

from palaver.errors import Invalid
from palaver.faces.server import Server
from palaver.log.base import EventLog
from palaver.schema.base import Shown
from palaver.schema.view import Listing, Request

QUERY_CHARS = 1_000
DEEPEST = 16
"""No chain of subagents is longer; a list that says otherwise must not keep anybody waiting."""


class WaitingRequest(Shown):
    """`conversation` is where it is answered. A subagent's stands far below; `root` is the conversation at the top, which a
    person knows, and `parents` are all between, the nearest first, for as long as each works for the next."""

    conversation: str
    title: str
    agent: str
    root: str
    parent_kind: Literal["branch", "subagent", "exchange", "mission"] | None
    parents: tuple[str, ...]
    request: Request


class Waiting(Shown):
    """`recent`: those that were answered, expired or withdrawn last, newest first, each with its `resolution`."""

    items: tuple[WaitingRequest, ...]
    recent: tuple[WaitingRequest, ...] = ()


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


@get("/api/requests", operation_id="list_requests", tags=["requests"])
async def waiting(
    server: Server,
    root: FromQuery[str | None] = None,
    recent: Annotated[int, QueryParameter(ge=0, le=100)] = 0,
) -> Waiting:
    """Every open approval, question and plan, oldest first. `root`: those of one conversation and its subagents.
    `recent`: so many of those that are over too, newest first, of the last seven days."""

    def wanted(row: Listing) -> bool:
        return root in (None, _root(row))

    opened = [pair for pair in await server.directory.waiting() if wanted(pair[0])]
    resolved = await server.directory.resolved(recent, wanted)
    parents: dict[str, tuple[str, ...]] = {}
    for row, _ in (*opened, *resolved):
        if row.id not in parents:
            parents[row.id] = await _parents(server.log, row)

    def request_info(row: Listing, request: Request) -> WaitingRequest:
        return WaitingRequest(
            conversation=row.id,
            title=row.title,
            agent=request.agent or row.agent,
            root=_root(row),
            parent_kind=row.parent_kind,
            parents=parents[row.id],
            request=request,
        )

    return Waiting(
        items=tuple(request_info(*pair) for pair in opened), recent=tuple(request_info(*pair) for pair in resolved)
    )


def _root(row: Listing) -> str:
    """A branch stands for itself, whatever it was taken from."""
    return row.root or row.id if row.parent_kind not in (None, "branch") else row.id


async def _parents(log: EventLog, row: Listing) -> tuple[str, ...]:
    found: list[str] = []
    at: Listing | None = row
    while at is not None and at.parent_kind == "subagent" and at.parent is not None and len(found) < DEEPEST:
        found.append(at.parent)
        at = await log.listing(at.parent)
    return tuple(found)


@get("/api/search", operation_id="search", tags=["search"])
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
