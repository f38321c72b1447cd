"""What waits for a person: how it is asked for from elsewhere, and what an answer to it comes to.

Called by decide. At rest an answer begins the turn that goes on.
"""

from msgspec.structs import replace

from palaver.core import exchanges
from palaver.core.decide.admission import NONE_WAITS
from palaver.core.decide.decision import Already, Decision, Refusal
from palaver.core.decide.facts import Facts
from palaver.core.decide.history import cut
from palaver.core.next import start_turn
from palaver.core.params import MODES
from palaver.core.state import find_request, is_from_elsewhere, open_requests
from palaver.schema.base import Scope
from palaver.schema.commands import AskFirst, DecideTools, Order, ResolveRequest
from palaver.schema.content import TextPart
from palaver.schema.events import (
    ConversationUpdated,
    KnownEvent,
    MessageAdded,
    PlanUpdated,
    RequestOpened,
    RequestResolved,
    TurnStarted,
)
from palaver.schema.view import Plan, Request, State, Trigger

ASKED_FROM_ELSEWHERE = 8
"""Calls of agents elsewhere that wait for a person at once: they leave room for those who work here."""


ONLY_ONCE_DENIED = Refusal(
    "invalid",
    "A denial counts for this call alone: leave `scope` out. To forbid such calls from now on, add a rule with the decision "
    "`deny_continue` to the conversation's `policy`, to the agent's, or to the server's.",
)


def ask_first(state: State, command: AskFirst) -> Decision:
    if find_request(state, command.request) is not None:
        return Already("It was asked before.", id=command.request)
    if sum(is_from_elsewhere(known) for known in open_requests(state)) >= ASKED_FROM_ELSEWHERE:
        return Refusal("busy", "Too many calls wait for a decision already. Wait until some are decided.")
    opened = RequestOpened(
        request=command.request,
        kind="approval",
        agent=command.agent,
        tool=command.tool,
        input=command.input,
        hash=command.hash,
        title=command.title,
        preview=command.preview,
        expires_at=command.expires_at,
    )
    return [opened]


def resolve(state: State, command: ResolveRequest, facts: Facts) -> Decision:
    request = find_request(state, command.request)
    if request is None:
        return Refusal("not_found", "No such request in this conversation.")
    if request.status != "open":
        return Already(f"It was {request.status} before.", id=request.id)
    if refusal := _no_answer_to(request, command):
        return refusal
    scope = _scope_of(request, command, facts)
    # At rest, the turn that asked was ended by a restart (or by its plan): the answer begins the one that goes on.
    # Who asked from elsewhere goes on there.
    elsewhere = is_from_elsewhere(request)
    turn = None if elsewhere else state.turn.id if state.turn else facts.new_id()
    resolved = RequestResolved(
        turn=turn,
        request=request.id,
        status="answered",
        verdict=command.verdict,
        then=command.then,
        scope=scope,
        asked_scope=command.scope if scope != command.scope else None,
        offer=command.offer,
        answers=command.answers,
        text=command.text,
        input=command.input,
    )
    if state.turn is not None or turn is None:
        return [resolved]
    if request.kind == "plan":
        return [resolved, *_plan_answered(state, request, command, turn, facts)]
    return [resolved, _continue_turn(state, turn, request.id, facts)]


def _scope_of(request: Request, command: ResolveRequest, facts: Facts) -> Scope:
    """As far as a yes reaches. Beyond the conversation it changes what agents may do, which takes a token that may."""
    if facts.origin is None or not facts.origin.human_token or command.scope not in ("agent", "project"):
        return command.scope
    return "conversation" if "conversation" in request.scopes else "once"


def _continue_turn(state: State, turn: str, request: str, facts: Facts) -> TurnStarted:
    """The turn that goes on from where a restart cut one, in its mode."""
    cut = state.last_turn if state.last_turn and state.last_turn.outcome == "interrupted" else None
    trigger = exchanges.continue_trigger(state, Trigger(kind="request", request=request))
    return start_turn(turn, trigger, facts, cut.mode if cut else None)


def _plan_answered(
    state: State, request: Request, command: ResolveRequest, turn: str, facts: Facts
) -> list[KnownEvent]:
    """Yes: it is carried out, out of plan mode. No with words: it is revised, in plan mode. A plain no: it is dropped."""
    plan = request.plan
    trigger = exchanges.continue_trigger(state, Trigger(kind="request", request=request.id))
    if command.verdict == "allow" and plan is not None:
        chosen = command.input.get("mode") if isinstance(command.input, dict) else None
        usual = state.params.get("mode")
        mode = next((word for word in (chosen, usual) if word in MODES and word != "plan"), "ask")
        leave = [ConversationUpdated(params={"mode": mode})] if state.params.get("mode") == "plan" else []
        forgotten = cut(state, 0) if clears_context(command) else []
        text = f"The plan was approved. Carry it out.{_remark(command)}"
        return [
            *leave,
            *forgotten,
            PlanUpdated(turn=turn, plan=replace(plan, status="executing")),
            _word(turn, "plan_approved", text, facts, *([_in_words(plan)] if forgotten else [])),
            start_turn(turn, trigger, facts, mode),
        ]
    if command.text:
        text = f"The plan was not approved; revise it.{_remark(command)}"
        return [_word(turn, "plan_revised", text, facts), start_turn(turn, trigger, facts, "plan")]
    # Nothing runs, but the agent should know of it when it is spoken to next.
    dropped = "The plan was rejected and dropped."
    return [PlanUpdated(plan=None), _word(None, "plan_rejected", dropped, facts), *exchanges.call_off(state, dropped)]


def clears_context(command: Order) -> bool:
    """A plan is to be carried out without what was said before it."""
    given = command.input if isinstance(command, ResolveRequest) and command.verdict == "allow" else None
    return isinstance(given, dict) and given.get("clear_context") is True


def _in_words(plan: Plan) -> str:
    """For an agent that is shown nothing else of it. A part of its own: an agent's words, apart from the server's."""
    items = "\n".join(f"- {item.title}{f': {item.description}' if item.description else ''}" for item in plan.items)
    return f"{plan.summary}\n\n{plan.text or items}"


def _remark(command: ResolveRequest) -> str:
    return f" The person said: {command.text}" if command.text else ""


def _word(turn: str | None, kind: str, text: str, facts: Facts, *more: str) -> MessageAdded:
    """A word to the agent that the page shows in its own way."""
    content = tuple(TextPart(text=part) for part in (text, *more))
    return MessageAdded(turn=turn, message=facts.new_id(), role="event", content=content, hidden=True, event_kind=kind)


def decide_tools(state: State, command: DecideTools, facts: Facts) -> Decision:
    waiting = {known.call: known for known in open_requests(state) if known.kind == "approval" and known.call}
    if not waiting:
        return Refusal("conflict", NONE_WAITS.why)
    decisions = {decision.call: decision.accepted for decision in command.decisions}
    if not decisions:
        decisions = {call: command.accepted for call in waiting if call}
    if strange := [call for call in decisions if call not in waiting]:
        return Refusal("not_found", f"No such call waits for a decision: {', '.join(strange)}.")
    turn = state.turn.id if state.turn else facts.new_id()
    resolved: list[KnownEvent] = [
        RequestResolved(
            turn=turn,
            request=waiting[call].id,
            status="answered",
            verdict="allow" if accepted else "deny",
            then="continue" if accepted else command.then,
            text=command.text,
        )
        for call, accepted in decisions.items()
    ]
    if state.turn is not None:
        return resolved
    return [*resolved, _continue_turn(state, turn, waiting[next(iter(decisions))].id, facts)]


def _no_answer_to(request: Request, command: ResolveRequest) -> Refusal | None:
    """Why this does not answer the request, if it does not."""
    if request.kind != "question":
        if command.verdict is None:
            return Refusal("invalid", 'Say `"verdict": "allow"` or `"verdict": "deny"`.')
        if command.verdict == "allow" and request.kind == "approval" and command.scope not in request.scopes:
            return Refusal("invalid", f"This request can be granted for: {', '.join(request.scopes)}.")
        if command.verdict == "deny" and command.scope != "once":
            return ONLY_ONCE_DENIED
        if command.offer and not 0 <= command.offer < len(request.offers):
            return Refusal("invalid", "`offer` is the place of one of the request's `offers`, counted from 0.")
        return None
    if not (command.verdict or command.answers or command.text or command.input is not None):
        return Refusal("invalid", 'Give `answers` or a `text`, or say `"verdict": "deny"` to leave it unanswered.')
    if request.questions and any(not 0 <= answer.question_index < len(request.questions) for answer in command.answers):
        return Refusal("invalid", f"`question_index` lies between 0 and {len(request.questions) - 1}.")
    return None
