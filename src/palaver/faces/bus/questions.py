"""Whatever waits for a person, as the bus asks it: questions as they are, a permission as a question with fixed options.

Pure, both ways: `question_of` says it, `answer_to` reads what came back. A question takes its own options and free words, and
refuses the rest. A permission is only given by one of its own options; anything else denies.
"""

from collections.abc import Sequence
from typing import Any

from palaver.core.text.approval_text import approval_text
from palaver.errors import Invalid
from palaver.faces.bus.frames import Json
from palaver.schema.base import Scope
from palaver.schema.commands import Answer, ResolveRequest
from palaver.schema.view import Plan, Question, Request

ALLOW_ONCE = "Allow once"
ALLOW_SESSION = "Allow for this session"
ALLOW_ALWAYS = "Always allow"
DENY = "Deny"
HEADER = "Permission"
ONLY_ONCE = "This can only be allowed call by call: it will be asked again."


def question_of(request: Request) -> Json:
    """The data of an `ask_user` event, and of a row of what is pending."""
    if request.kind == "question":
        return {"question_id": request.id, "questions": [_question(one) for one in request.questions]}
    permission = {
        "question": request.title or f"May {request.agent or 'the agent'} use {request.tool or 'this tool'}?",
        "header": HEADER,
        "options": _options(request),
        "multi_select": False,
    }
    return {
        "question_id": request.id,
        "questions": [permission],
        "permission": {"tool": request.tool or "", "input": request.input},
    }


def _question(question: Question) -> Json:
    options = [
        {"label": one.label, **_input_of(description=one.description, preview=one.preview)} for one in question.options
    ]
    return {
        "question": question.question,
        "header": question.header,
        "options": options,
        "multi_select": question.multi_select,
    }


def _options(request: Request) -> list[Json]:
    covered = request.offers[-1].label if request.offers else ""
    session = f"Unasked until this session ends: {covered}." if _scope(request, ALLOW_SESSION) != "once" else ONLY_ONCE
    always = f"Unasked from now on: {covered}." if _scope(request, ALLOW_ALWAYS) != "once" else ONLY_ONCE
    return [
        {"label": ALLOW_ONCE, **_input_of(preview=approval_text(request.preview, request.input) or None)},
        {"label": ALLOW_SESSION, "description": session},
        {"label": ALLOW_ALWAYS, "description": always},
        {"label": DENY, "description": "It is not run; the agent is told so and goes on."},
    ]


def _input_of(**fields: str | None) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _scope(request: Request, chosen: str) -> Scope:
    """As far as this request can be granted; never further than was chosen."""
    wanted: tuple[Scope, ...] = ()
    if chosen == ALLOW_SESSION:
        wanted = ("conversation",)
    elif chosen == ALLOW_ALWAYS:
        wanted = ("agent", "project", "conversation")
    lasting = [scope for scope in wanted if scope in request.scopes] if request.offers else []
    return lasting[0] if lasting else "once"


def answer_to(request: Request, answers: Sequence[Answer]) -> ResolveRequest:
    """Raises Invalid for what is no answer to a question: it decides nothing, and the question stays open."""
    if request.kind == "question":
        _check(request.questions, answers)
        # This contract has no word for leaving a question alone but to answer none of it.
        return ResolveRequest(request=request.id, verdict=None if answers else "deny", answers=tuple(answers))
    chosen = answers[0].selected if len(answers) == 1 and answers[0].question_index == 0 else ()
    said = answers[0].custom_text if answers else None
    word = _match_label(chosen[0]) if len(chosen) == 1 else None
    if word is None or word == DENY:
        return ResolveRequest(request=request.id, verdict="deny", text=said)
    scope = _scope(request, word)
    # The whole of what may be covered, as the option's description said.
    offer = len(request.offers) - 1 if scope != "once" else 0
    return ResolveRequest(request=request.id, verdict="allow", scope=scope, offer=offer)


def _check(questions: Sequence[Question], answers: Sequence[Answer]) -> None:
    seen: set[int] = set()
    for place, answer in enumerate(answers):
        name, index = f"`answers[{place}]", answer.question_index
        if not 0 <= index < len(questions):
            raise Invalid(f"{name}.question_index` lies between 0 and {len(questions) - 1}.")
        if index in seen:
            raise Invalid(f"{name}.question_index`: question {index} has an answer before this one.")
        seen.add(index)
        question = questions[index]
        offered = [option.label for option in question.options]
        if strange := [label for label in answer.selected if label not in offered]:
            raise Invalid(f"{name}.selected`: “{strange[0][:80]}” was not offered, but {_list_labels(offered)}.")
        if len(answer.selected) > 1 and not question.multi_select:
            raise Invalid(f"{name}.selected`: only one option can be selected here.")


def _list_labels(labels: Sequence[str]) -> str:
    return ", ".join(f"“{label}”" for label in labels) or "only free words (`custom_text`)"


def _match_label(label: str) -> str | None:
    words = {word.casefold(): word for word in (ALLOW_ONCE, ALLOW_SESSION, ALLOW_ALWAYS, DENY)}
    return words.get(label.strip().casefold())


def plan_data(plan: Plan) -> Json:
    items: list[Json] = [
        {"title": item.title, **_input_of(description=item.description), "status": item.status} for item in plan.items
    ]
    return {"summary": plan.summary, "items": items, "status": plan.status, **_input_of(plan_text=plan.text)}


def payload(request: Request) -> Json:
    """What a client that opens late must show of it."""
    match request.kind:
        case "plan":
            known: dict[str, Any] = {"plan": plan_data(request.plan)} if request.plan else {}
            return {"title": request.title, **known}
        case "question" | "approval":
            return question_of(request)
