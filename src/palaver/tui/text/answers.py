"""How a request ended, in words: what was decided, and by whom. Pure.

Called by the request dock and by the rows of tools. The same words as the page's `view/dock/resolution.ts`.
"""

from palaver.schema.view import Request
from palaver.tui.people import People, face_of
from palaver.tui.text import docks, words
from palaver.tui.text.safe import visible


def say_resolution(request: Request, people: People) -> str:
    """How it ended: what was decided, and by whom."""
    return words.join(_decision(request), _who(request, people))


def _decision(request: Request) -> str:
    resolution, said = request.resolution, docks.Answered
    match request.status:
        case "open":
            return words.Tool.WAITING
        case "expired":
            return said.EXPIRED
        case "cancelled":
            return said.CANCELLED
        case "superseded":
            return said.SUPERSEDED
        case "answered":
            pass
    is_allowed = resolution is not None and resolution.verdict == "allow"
    is_denied = resolution is not None and resolution.verdict == "deny"
    if request.kind == "question":
        return said.SKIPPED if is_denied else said.QUESTION
    if request.kind == "plan":
        changes = resolution is not None and resolution.text
        return said.PLAN_APPROVED if is_allowed else said.PLAN_REVISED if changes else said.PLAN_REJECTED
    if resolution is None or not is_allowed:
        stops = resolution is not None and resolution.then == "stop"
        return _with_more(said.DENIED_STOP if stops else said.DENIED, resolution.text if resolution else None)
    is_lasting = resolution.scope != "once" and resolution.offer < len(request.offers)
    # What holds from now on is said, not only that something does.
    covers = request.offers[resolution.offer].label if is_lasting else None
    return _with_more(said.ALLOWED[resolution.scope], covers)


def _with_more(decision: str, more: str | None) -> str:
    return f"{decision}: {visible(more)}" if more else decision


def _who(request: Request, people: People) -> str | None:
    by = request.resolution.by if request.resolution else None
    if request.status != "answered" or by is None:
        return None
    if people.is_here(by):
        return docks.Answered.BY_YOU
    face = face_of(by)
    who = docks.Answered.by(visible(by.user or "")) if people.is_anothers(by) else docks.Answered.ELSEWHERE
    return words.join(who, words.via(face) if face else None)
