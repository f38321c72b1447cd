"""What people always allow, for a conversation and beyond: seen in one place, and taken back."""

from hashlib import blake2b

import msgspec
from litestar import delete, get
from litestar.params import FromPath
from msgspec import structs

from palaver.approval.policy import why_not_lasting
from palaver.approval.standing_grants import StandingGrant
from palaver.core.state import find_request
from palaver.errors import NotFound
from palaver.faces.native.conversations import NativeRequest
from palaver.faces.server import Server, ServerParts, origin_of
from palaver.log.base import lines_after
from palaver.schema.base import Shown
from palaver.schema.commands import RemoveGrant
from palaver.schema.events import RequestResolved, decode_event
from palaver.schema.view import Grant, State

OF_CONVERSATION = "."
"""In the id of a grant for one conversation, between the conversation and what is allowed there. No other id holds it."""


class ListedGrant(StandingGrant):
    """`problem` says why this one counts no more."""

    problem: str | None = None


class GrantList(Shown):
    """`problem` says why what was allowed does not count at the moment."""

    items: tuple[ListedGrant, ...]
    problem: str | None


@get("/api/grants", operation_id="list_grants", tags=["requests"])
async def standing(server: Server) -> GrantList:
    """What was allowed, oldest first: for agents and projects, and for single conversations."""
    beyond = [known for known in server.standing.all() if _counts(known, server)]
    within = [await _grant_in(state, grant, server) for state, grant in await server.directory.grants()]
    items = sorted((*beyond, *within), key=lambda known: known.ts)
    return GrantList(items=tuple(map(_grant_info, items)), problem=server.standing.problem)


async def _grant_in(state: State, grant: Grant, server: ServerParts) -> StandingGrant:
    return StandingGrant(
        id=_id_in(state.conversation, grant),
        tool=grant.tool,
        scope=grant.scope,
        match=grant.match,
        decision=grant.decision,
        agent=grant.agent or state.agent,
        project=state.project,
        ts=grant.ts,
        conversation=state.conversation,
        request=grant.request,
        by=await _who_answered(state, grant.request, server) if grant.request else None,
    )


def _id_in(conversation: str, grant: Grant) -> str:
    covers = msgspec.json.encode((grant.tool, grant.match))
    return f"{conversation}{OF_CONVERSATION}{blake2b(covers, digest_size=8).hexdigest()}"


async def _who_answered(state: State, request: str, server: ServerParts) -> str | None:
    """Whose token. The view knows the latest answers; of older ones only the log still does."""
    known = find_request(state, request)
    if known is not None and known.resolution is not None:
        return known.resolution.by.user if known.resolution.by else None
    cursor = 0
    while segments := await server.log.read(state.conversation, cursor):
        for segment in segments:
            for line in lines_after(segment, cursor):
                if b'"request.resolved"' in line and request.encode() in line:
                    event = decode_event(line)
                    if isinstance(event, RequestResolved) and event.request == request:
                        return event.origin.user if event.origin else None
            cursor = segment.last
    return None


def _grant_info(grant: StandingGrant) -> ListedGrant:
    return ListedGrant(**structs.asdict(grant), problem=why_not_lasting(grant.match))


def _counts(grant: StandingGrant, server: ServerParts) -> bool:
    """Not once a person has taken the tool out of the agent's record."""
    if not grant.in_record:
        return True
    known = server.agents.book.known(grant.agent or "")
    return known is not None and known.record is not None and grant.tool in known.record.allowed_tools


@delete("/api/grants/{grant:str}", operation_id="remove_grant", tags=["requests"])
async def remove(grant: FromPath[str], request: NativeRequest, server: Server) -> None:
    """Take one back: such calls are asked for again, also in turns that run."""
    conversation, mark, _ = grant.partition(OF_CONVERSATION)
    if mark:
        state = await server.directory.state(conversation, tail=0)
        found = next((known for known in state.grants if _id_in(conversation, known) == grant), None)
        if found is None:
            raise NotFound("There is no such grant: it was taken back before.", grant=grant)
        order = RemoveGrant(tool=found.tool, match=found.match)
        await server.directory.command(conversation, order, origin_of(request, "native"))
        return
    known = server.standing.get(grant)
    if known is not None and known.in_record and _counts(known, server):
        await server.agents.book.disallow_tool(known.agent or "", known.tool)
    if not await server.standing.remove(grant):
        raise NotFound("There is no such grant: it was taken back before.", grant=grant)


ROUTES = [standing, remove]
