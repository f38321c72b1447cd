"""Requests in the view: how one is opened and resolved, and how many of the resolved ones stay to be seen.

Called by evolve alone. Pure: who may answer what is `decide.py`.
"""

from msgspec.structs import replace

from palaver.schema.events import RequestOpened, RequestResolved
from palaver.schema.view import Request, Resolution

KEEP_RESOLVED = 32
"""Resolved requests that stay in view: enough for every late decider to be told, bounded so that a view stays small."""


def request_of(event: RequestOpened) -> Request:
    return Request(
        id=event.request,
        kind=event.kind,
        ts=event.ts,
        turn=event.turn,
        call=event.call,
        agent=event.agent,
        tool=event.tool,
        input=event.input,
        hash=event.hash,
        title=event.title,
        risk=event.risk,
        sandbox=event.sandbox,
        preview=event.preview,
        scopes=event.scopes,
        offers=event.offers,
        questions=event.questions,
        plan=event.plan,
        expires_at=event.expires_at,
    )


def with_resolved(requests: tuple[Request, ...], request: Request, event: RequestResolved) -> tuple[Request, ...]:
    resolution = Resolution(
        status=event.status,
        ts=event.ts,
        verdict=event.verdict,
        then=event.then,
        scope=event.scope,
        offer=event.offer,
        answers=event.answers,
        text=event.text,
        input=event.input,
        by=event.origin,
    )
    resolved = replace(request, status=event.status, resolution=resolution)
    return keep_latest([resolved if known is request else known for known in requests])


def keep_latest(requests: list[Request]) -> tuple[Request, ...]:
    """Open ones always stay; of the others the latest."""
    surplus = sum(1 for known in requests if known.status != "open") - KEEP_RESOLVED
    kept: list[Request] = []
    for known in requests:
        if known.status != "open" and surplus > 0:
            surplus -= 1
        else:
            kept.append(known)
    return tuple(kept)
