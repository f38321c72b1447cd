"""Requests in a terminal: what waits for a person in words, and the answer to it, from options or from the keyboard.

Called by `requests` and by `send`. The words of an agent are made visible to the last character before anybody judges them,
and nothing typed before the question appeared can answer it.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from palaver.cli.support.reading import ask_line, content_line, is_confirmed, show_to_end
from palaver.cli.support.resolve_id import short
from palaver.client.safe_text import one_line
from palaver.core.text.approval_text import approval_lines, folded_lines, offer_text, plan_lines
from palaver.errors import Conflict, Invalid
from palaver.schema.base import Scope
from palaver.schema.commands import Answer, ResolveRequest
from palaver.schema.view import Question, QuestionOption, Request

Word = Literal["allow", "always", "deny"]
LASTING: tuple[Scope, ...] = ("conversation", "agent", "project")
"""What `always` may mean, the narrowest first."""
WHERE = {"conversation": "in this conversation", "agent": "for this agent, everywhere", "project": "in this project"}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person said to a request."""

    word: Word | None = None
    note: str | None = None
    options: Sequence[str] = ()
    scope: Scope | None = None
    offer: int = 0
    stop: bool = False


def headline(request: Request) -> str:
    return one_line(request.title or request.tool or request.kind, 100)


def describe_request(request: Request) -> Iterator[str]:
    """All that a person needs to decide, line by line."""
    heading = headline(request)
    yield f"{request.kind}: {heading}"
    match request.kind:
        case "approval":
            lines = approval_lines(request.preview, request.input)
            yield from map(content_line, lines or folded_lines(request.title or ""))
            if request.risk:
                yield f"  risk: {offer_text(request.risk, None)}"
            for place, offer in enumerate(request.offers, 1):
                yield f"  always {place}: {offer_text(offer.label, offer.match)}"
        case "question":
            for number, question in enumerate(request.questions, 1):
                yield from _question(number, question, heading, len(request.questions))
        case "plan":
            lines = plan_lines(request.plan) if request.plan is not None else approval_lines(request.preview, None)
            # A summary that the heading has to its last letter.
            yield from map(content_line, lines[1:] if lines and lines[0].text == heading else lines)
        case _:
            assert_never(request.kind)


def _question(number: int, question: Question, heading: str, of: int) -> Iterator[str]:
    asked = f"{question.header}: {question.question}" if question.header else question.question
    if of > 1:
        yield f"  question {number} of {of}"
    # Most have one question, which is their heading too.
    if of > 1 or asked != heading:
        yield from map(content_line, folded_lines(asked))
    for place, option in enumerate(question.options, 1):
        yield from _option(place, option)


def _option(place: int, option: QuestionOption) -> Iterator[str]:
    """Its label behind its number; every other line of it behind a sign."""
    first, *rest = folded_lines(option.label)
    yield f"    {place}) {first.text}"
    for text in (option.description, option.preview):
        rest += folded_lines(text) if text else []
    yield from (f"     {content_line(line)}" for line in rest)


def became(request: Request) -> str:
    """How a request ended, and by whom."""
    resolution = request.resolution
    match request.status:
        case "open":
            return "open"
        case "expired":
            return "missed: it expired without an answer"
        case "cancelled":
            return "withdrawn"
        case "superseded":
            return "given up for a newer message"
        case "answered":
            verdict = {"allow": "allowed", "deny": "denied"}.get((resolution and resolution.verdict) or "", "answered")
            by = resolution.by if resolution else None
            return f"{verdict} by {one_line(by.user, 60)}" if by and by.user else verdict
        case _:
            assert_never(request.status)


def how_to_answer(request: Request, ids: Sequence[str] = ()) -> str:
    """The command that answers it."""
    begin = f"palaver requests answer {short(request.id, ids)}"
    match request.kind:
        case "approval":
            lasting = "allow|always|deny" if len(request.scopes) > 1 else "allow|deny"
            return f'{begin} {lasting} [--note "…"]'
        case "plan":
            return f'{begin} allow|deny [--note "what to change"]'
        case "question":
            return f"{begin} --option 1" if any(one.options for one in request.questions) else f'{begin} --note "…"'
        case _:
            assert_never(request.kind)


def resolution(request: Request, wish: Wish) -> ResolveRequest:
    """The answer as a command. Raises Invalid when it does not fit the request."""
    if request.kind == "question":
        return _question_resolution(request, wish)
    if wish.options:
        raise Invalid(f"--option answers a question, and this is {_article(request.kind)}. Say allow or deny.")
    if wish.word is None:
        raise Invalid(f"Say allow or deny: {how_to_answer(request)}")
    return ResolveRequest(
        request=request.id,
        verdict="deny" if wish.word == "deny" else "allow",
        scope=_scope(request, wish),
        offer=wish.offer,
        then="stop" if wish.stop else "continue",
        text=wish.note,
    )


def _scope(request: Request, wish: Wish) -> Scope:
    if wish.word != "always":
        return "once"
    if wish.scope is not None:
        return wish.scope
    offered = next((scope for scope in LASTING if scope in request.scopes), None)
    if offered is None:
        raise Invalid("This can only be allowed once. Say allow.")
    return offered


def _question_resolution(request: Request, wish: Wish) -> ResolveRequest:
    if wish.word == "deny":
        return ResolveRequest(request=request.id, verdict="deny", text=wish.note)
    if not wish.options:
        if wish.note is None:
            raise Invalid(f"This is a question: {how_to_answer(request)}")
        return ResolveRequest(request=request.id, answers=(Answer(custom_text=wish.note),), text=wish.note)
    selected: dict[int, list[str]] = {}
    for option in wish.options:
        index, label = _select(request.questions, option)
        selected.setdefault(index, []).append(label)
    for index, labels in selected.items():
        if len(labels) > 1 and not request.questions[index].multi_select:
            raise Invalid(f"Only one option can be chosen: {one_line(request.questions[index].question)}")
    answers = [Answer(question_index=index, selected=tuple(labels)) for index, labels in sorted(selected.items())]
    return ResolveRequest(request=request.id, answers=tuple(answers), text=wish.note)


def _select(questions: Sequence[Question], option: str) -> tuple[int, str]:
    """`2` or a label for the first question, `3:2` or `3:label` for the third."""
    number, colon, rest = option.partition(":")
    index, wanted = 0, option
    if colon and number.isdecimal() and 1 <= int(number) <= len(questions):
        index, wanted = int(number) - 1, rest.strip()
    labels = [one.label for one in questions[index].options] if questions else []
    for label in labels:
        if label.casefold() == wanted.casefold():
            return index, label
    if wanted.isdecimal() and 1 <= int(wanted) <= len(labels):
        return index, labels[int(wanted) - 1]
    there = ", ".join(f"{place}) {one_line(label, 40)}" for place, label in enumerate(labels, 1)) or "no options"
    raise Invalid(f"“{wanted}” is none of the options: {there}. Words of your own go into --note.")


# -- from the keyboard


async def ask(request: Request) -> ResolveRequest:
    """Asks in the terminal until the answer fits. Raises EOFError when it is left without one (Ctrl-D)."""
    await show_to_end(describe_request(request))
    while True:
        line = await ask_line(_prompt(request))
        if not line:
            raise EOFError
        try:
            return resolution(request, _parse_line(request, line.strip()))
        except Invalid as problem:
            print(problem.message, file=sys.stderr)


async def confirm(request: Request) -> None:
    """Shows what would be allowed and asks whether it is meant. Raises Conflict unless the answer is yes."""
    question = "Send this answer?" if request.kind == "question" else "Allow this?"
    if not await is_confirmed(describe_request(request), question):
        raise Conflict("Nothing was answered.")


def _prompt(request: Request) -> str:
    match request.kind:
        case "approval":
            return f"Allow? y yes{_lasting(request)}, n no, or say what to do instead: "
        case "plan":
            return "Go on with this plan? y yes, n no, or say what to change: "
        case "question":
            return "Your answer (a number, or words; empty leaves it unanswered): "
        case _:
            assert_never(request.kind)


def _lasting(request: Request) -> str:
    """What `always` means when nothing else is said: the narrowest offer in the narrowest place."""
    where = next((scope for scope in LASTING if scope in request.scopes), None)
    if where is None:
        return ""
    offer = request.offers[0] if request.offers else None
    what = f"{offer_text(offer.label, offer.match)}, " if offer else ""
    return f", a always ({what}{WHERE[where]})"


def _parse_line(request: Request, line: str) -> Wish:
    if request.kind == "question":
        if not line:
            return Wish("deny")
        return Wish(options=line.replace(",", " ").split()) if _names_options(request, line) else Wish(note=line)
    match line.casefold():
        case "y" | "yes":
            return Wish("allow")
        case "a" | "always":
            return Wish("always")
        case "" | "n" | "no":
            return Wish("deny")
        case _:
            return Wish("deny", note=line)


def _names_options(request: Request, line: str) -> bool:
    words = line.replace(",", " ").replace(":", " ").split()
    return all(word.isdecimal() for word in words) and any(one.options for one in request.questions)


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
