"""Requests as interactions of this contract: what is asked, in which scopes it can be granted, what shape an answer has.

Pure. Called by `project` for what is shown and by `carrying_out` for what comes back.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from palaver.core.text.approval_text import approval_text
from palaver.errors import Invalid
from palaver.faces.socket.frame_types import Json
from palaver.schema.base import Scope
from palaver.schema.commands import Answer
from palaver.schema.view import Question, Request

ApprovalScope = Literal["once", "session", "always"]

SCOPES: dict[ApprovalScope, Scope] = {"once": "once", "session": "conversation", "always": "agent"}


def interaction(request: Request) -> Json:
    """What both `interaction_request` and `interaction_resolved` say of it."""
    shown: Json = {
        "callId": request.call or "",
        "interactionId": request.id,
        "interactionType": "input" if request.kind == "question" else "approval",
        "prompt": prompt_of(request),
    }
    if request.tool:
        shown["toolName"] = request.tool
    if request.kind == "question":
        shown["inputSchema"] = input_schema(request.questions)
        return shown
    shown["approvalScopes"] = [word for word, scope in SCOPES.items() if scope in request.scopes]
    if preview := approval_text(request.preview, request.input):
        shown["preview"] = preview
    return shown


def prompt_of(request: Request) -> str:
    match request.kind:
        case "question":
            return "\n".join(one.question for one in request.questions) or request.title or ""
        case "plan":
            return request.plan.summary if request.plan else request.title or ""
        case "approval":
            return request.title or f"Use {request.tool or 'a tool'}?"


def input_schema(questions: Sequence[Question]) -> Json:
    """One property a question. Options are suggestions: a person may always answer in words of their own."""
    properties: Json = {}
    for name, question in zip(_names(questions), questions, strict=True):
        one: Json = {"type": "string"}
        if question.options:
            one["examples"] = [option.label for option in question.options]
        shape: Json = {"type": "array", "items": one} if question.multi_select else one
        title = {"title": question.header} if question.header else {}
        properties[name] = {**shape, **title, "description": question.question}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _names(questions: Sequence[Question]) -> list[str]:
    return ["answer"] if len(questions) == 1 else [f"answer_{number}" for number in range(1, len(questions) + 1)]


def answers_of(questions: Sequence[Question], given: Any) -> tuple[Answer, ...]:
    """What was filled in, by question. A bare text or list answers the first question."""
    names = _names(questions)
    filled: Mapping[str, Any] = given if isinstance(given, dict) else {names[0]: given}
    if strange := [name for name in filled if name not in names]:
        raise Invalid(f"`input` has no {', '.join(strange)}; its schema names {', '.join(names)}.")
    answers = tuple(
        _answer(place, question, filled[name])
        for place, (name, question) in enumerate(zip(names, questions, strict=True))
        if filled.get(name) is not None
    )
    if not answers:
        raise Invalid(f"`input`: fill in {' or '.join(names)}; the action `cancel` leaves it unanswered.")
    return answers


def _answer(place: int, question: Question, given: Any) -> Answer:
    chosen = [str(one) for one in given] if isinstance(given, list) else [_text(given)]
    labels = {option.label for option in question.options}
    own = [one for one in chosen if one not in labels]
    return Answer(
        question_index=place,
        selected=tuple(one for one in chosen if one in labels),
        custom_text="; ".join(own) or None,
    )


def _text(given: Any) -> str:
    return given if isinstance(given, str) else msgspec.json.encode(given, enc_hook=str).decode()
