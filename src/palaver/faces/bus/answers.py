"""What waits for a person, and answering it: questions, permissions and plans. The first answer is the answer."""

from collections.abc import Sequence
from typing import Any, Literal

from litestar import get
from litestar.params import FromQuery, JSONBody
from msgspec import Struct

from palaver.core.state import find_request
from palaver.errors import CallerError, Gone, Invalid, NotFound
from palaver.faces.bus.chat import FACE, BusRequest
from palaver.faces.bus.questions import answer_to, payload
from palaver.faces.bus.views import names_of
from palaver.faces.http.json_route import json_post
from palaver.faces.server import Server, ServerParts, origin_of
from palaver.schema.base import Id, Shown
from palaver.schema.commands import Answer, ResolveRequest
from palaver.schema.view import Listing, Request, RequestKind

LOOKED_THROUGH = 500
"""Conversations that are looked through for a request that is over: those that changed since it was made."""

Kind = Literal["question", "permission", "plan"]
KINDS: dict[RequestKind, Kind] = {"question": "question", "approval": "permission", "plan": "plan"}


class Waiting(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question, a permission or a plan, with what a client shows of it."""

    id: str
    kind: Kind
    session_id: str
    agent_id: str
    run_id: str | None
    project_root: str | None
    created_at: int
    expires_at: int | None = None
    title: str | None = None
    question_id: str | None = None
    questions: list[dict[str, Any]] | None = None
    permission: dict[str, Any] | None = None
    plan: dict[str, Any] | None = None


class Pending(Shown):
    items: list[Waiting]


class Status(Shown):
    status: Literal["ok", "approved", "rejected", "edited"]


class GivenAnswer(Struct, frozen=True, kw_only=True):
    """The answer to one question. Free words alone may leave `selected` out; that and nothing else is no answer."""

    question_index: int
    selected: tuple[str, ...] | None = None
    custom_text: str | None = None


class Response(Struct, frozen=True, kw_only=True):
    question_id: str
    answers: tuple[GivenAnswer, ...] | None = None


class PlanAnswer(Struct, frozen=True, kw_only=True):
    project_root: str | None = None
    agent_id: Id | None = None
    session_id: Id | None = None
    clear_context: bool | None = None


class PlanEdit(Struct, frozen=True, kw_only=True):
    text: str
    project_root: str | None = None
    agent_id: Id | None = None
    session_id: Id | None = None


# -- what waits


@get("/api/pending", operation_id="bus_pending", tags=["bus"])
async def pending(
    server: Server, project_root: FromQuery[str | None] = None, session_id: FromQuery[str | None] = None
) -> Pending:
    """Every open question, permission and plan, oldest first."""
    found = await _waiting(server, project_root, session_id)
    return Pending(items=[_item(row, request) for row, request in found])


async def _waiting(
    server: ServerParts, project_root: str | None, session: str | None
) -> Sequence[tuple[Listing, Request]]:
    names = await names_of(project_root) if project_root else None
    return [
        (row, request)
        for row, request in await server.directory.waiting()
        if session in (None, row.id) and (names is None or row.project in names)
    ]


def _item(row: Listing, request: Request) -> Waiting:
    return Waiting(
        id=request.id,
        kind=KINDS[request.kind],
        session_id=row.id,
        agent_id=request.agent or row.agent,
        run_id=request.turn,
        project_root=row.project,
        created_at=request.ts,
        expires_at=request.expires_at,
        **payload(request),
    )


# -- answering


@json_post("/api/ask-user-response", "bus_answer", "bus")
async def answer(data: JSONBody[Response], request: BusRequest, server: Server) -> Status:
    """Answer a question or a permission. Anything but one of its own options denies a permission and is refused for a
    question; an empty list of answers declines."""
    found = next((pair for pair in await server.directory.waiting() if pair[1].id == data.question_id), None)
    if found is None:
        raise await _not_waiting(server, data.question_id)
    row, asked = found
    if asked.kind == "plan":
        raise Invalid("A plan is answered with /api/plan/approve, /reject or /edit.")
    if asked.kind == "question" and data.answers is None:
        raise Invalid("`answers`: one for each question, or an empty list to leave it unanswered.")
    command = answer_to(asked, [_answer(place, one) for place, one in enumerate(data.answers or ())])
    accepted = await server.directory.command(row.id, command, origin_of(request, FACE))
    if not accepted.applied:
        raise Gone("It was answered before, has expired or was called off.", question_id=asked.id)
    return Status(status="ok")


def _answer(place: int, given: GivenAnswer) -> Answer:
    if given.selected is None and given.custom_text is None:
        raise Invalid(f"`answers[{place}]`: give `selected`, a list of the labels chosen, or `custom_text`.")
    return Answer(question_index=given.question_index, selected=given.selected or (), custom_text=given.custom_text)


async def _not_waiting(server: ServerParts, request: str) -> CallerError:
    """Gone, if it ever was: a request is kept in the view of its conversation for a while after its end."""
    made_at = _creation_time(request)
    if made_at is None:
        return NotFound("No such question.", question_id=request[:128])
    cursor: str | None = None
    for _ in range(LOOKED_THROUGH // 100):
        page = await server.log.list(limit=100, cursor=cursor, archived=None, children=True)
        for row in page.items:
            if row.updated_at < made_at:
                return NotFound("No such question.", question_id=request)
            if row.created_at <= made_at and find_request(await server.directory.state(row.id, tail=0), request):
                return Gone("It was answered before, has expired or was called off.", question_id=request)
        cursor = page.next_cursor
        if cursor is None:
            break
    return NotFound("No such question.", question_id=request)


def _creation_time(request: str) -> int | None:
    """Our ids begin with the moment they were made, in milliseconds."""
    digits = request[:8] + request[9:13]
    try:
        return int(digits, 16) if len(request) == len("00000000-0000-7000-8000-000000000000") else None
    except ValueError:
        return None


# -- plans


@json_post("/api/plan/approve", "bus_approve_plan", "bus")
async def approve(data: JSONBody[PlanAnswer], request: BusRequest, server: Server) -> Status:
    """Have the pending plan carried out. `clear_context`: without what was said before it."""
    row, plan = await _pending_plan(server, data.project_root, data.agent_id, data.session_id)
    given = {"clear_context": True} if data.clear_context else None
    await _resolve(server, row, ResolveRequest(request=plan.id, verdict="allow", input=given), request)
    return Status(status="approved")


@json_post("/api/plan/reject", "bus_reject_plan", "bus")
async def reject(data: JSONBody[PlanAnswer], request: BusRequest, server: Server) -> Status:
    """Drop the pending plan."""
    row, plan = await _pending_plan(server, data.project_root, data.agent_id, data.session_id)
    await _resolve(server, row, ResolveRequest(request=plan.id, verdict="deny"), request)
    return Status(status="rejected")


@json_post("/api/plan/edit", "bus_edit_plan", "bus")
async def edit(data: JSONBody[PlanEdit], request: BusRequest, server: Server) -> Status:
    """Say what the plan should be instead: the agent, still planning, takes it up and proposes again."""
    if not data.text.strip():
        raise Invalid("`text`: say what the plan should be.")
    row, plan = await _pending_plan(server, data.project_root, data.agent_id, data.session_id)
    await _resolve(server, row, ResolveRequest(request=plan.id, verdict="deny", text=data.text), request)
    return Status(status="edited")


async def _pending_plan(
    server: ServerParts, project_root: str | None, agent: str | None, session: str | None
) -> tuple[Listing, Request]:
    """The latest that waits."""
    found = [
        (row, request)
        for row, request in await _waiting(server, project_root, session)
        if request.kind == "plan" and agent in (None, request.agent or row.agent, row.agent)
    ]
    if not found:
        raise NotFound("No plan waits there.")
    return found[-1]


async def _resolve(server: ServerParts, row: Listing, answer: ResolveRequest, request: BusRequest) -> None:
    accepted = await server.directory.command(row.id, answer, origin_of(request, FACE))
    if not accepted.applied:
        raise NotFound("No plan waits there: somebody else was faster.")


ROUTES = [pending, answer, approve, reject, edit]
