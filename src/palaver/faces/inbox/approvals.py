"""Asking a person before an agent's call at its inbox runs: the call waits for the answer, whoever gives it and wherever.

Called by the policy. The request is one like every other: in every snapshot, answerable from every face the moment it is
announced. It lives as long as the call: a caller that goes away takes it back.
"""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from palaver.conversation.requests import with_expiry
from palaver.errors import PalaverError
from palaver.faces.inbox.caller import Visit
from palaver.faces.server import ServerParts, origin_for
from palaver.feed.feed import Snapshot
from palaver.feed.frames import Frame
from palaver.journal import Journal
from palaver.schema.base import Origin
from palaver.schema.commands import AskFirst, ResolveRequest
from palaver.schema.events import RequestOpened, RequestResolved, decode_event
from palaver.schema.view import State
from palaver.tools.base import Proposal
from palaver.tools.proposal import visible

logger = Journal(__name__)

TAKE_BACK_S = 5.0
"""Ample for one append; who went away waits for nothing."""


async def ask_person(
    server: ServerParts, visit: Visit, state: State, tool: str, arguments: Mapping[str, Any], proposal: Proposal
) -> RequestResolved:
    """How it ended. The request is on disk and announced before this waits."""
    record = server.agents.agent(state.agent, state.project or str(server.directory.home))
    params = {**server.defaults.params, **(record.params if record else {}), **state.params}
    request = server.ids.new()
    expiring = with_expiry(RequestOpened(request=request, kind="approval"), params, server.clock.now_ms())
    order = AskFirst(
        request=request,
        tool=tool,
        input=dict(arguments),
        agent=visit.caller.name,
        hash=proposal.hash,
        title=f"{visit.caller.name}: {proposal.title}",
        preview=visible(proposal.match) if proposal.match else None,
        expires_at=expiring.expires_at,
    )
    origin = origin_of_agent(visit)
    accepted = await server.directory.command(visit.conversation, order, origin)
    try:
        return await _answer(server, visit.conversation, request, accepted.seq)
    except asyncio.CancelledError:
        await asyncio.shield(_withdraw(server, visit.conversation, request, origin))
        raise


def origin_of_agent(visit: Visit) -> Origin:
    return origin_for(visit.caller, "inbox", visit.client, visit.caller.name)


async def _answer(server: ServerParts, conversation: str, request: str, after: int) -> RequestResolved:
    async with aclosing(server.feed.subscribe(conversation, after)) as items:
        async for item in items:
            match item:
                case Frame():
                    for event in map(decode_event, item.body.splitlines()):
                        if isinstance(event, RequestResolved) and event.request == request:
                            return event
                case Snapshot():
                    if answer := _find_answer(await server.directory.state(conversation), request):
                        return answer
                case _:
                    continue
    raise AssertionError("a feed ends only with its reader")


def _find_answer(state: State, request: str) -> RequestResolved | None:
    for known in state.requests:
        if known.id == request and known.resolution is not None:
            ended = known.resolution
            return RequestResolved(
                request=request, status=ended.status, verdict=ended.verdict, then=ended.then, text=ended.text
            )
    return None


async def _withdraw(server: ServerParts, conversation: str, request: str, origin: Origin) -> None:
    answer = ResolveRequest(request=request, verdict="deny", text="The caller went away.")
    try:
        async with asyncio.timeout(TAKE_BACK_S):
            await server.directory.command(conversation, answer, origin)
    except (PalaverError, TimeoutError) as failure:
        logger.info("a request of a caller that went away stays open", request=request, reason=str(failure))


def folder_of(server: ServerParts, state: State) -> Path:
    return Path(state.project) if state.project else server.directory.home
