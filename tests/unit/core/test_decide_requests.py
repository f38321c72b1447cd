"""Answering what waits for a person: the first answer counts, and one given after a restart goes on from there."""

import pytest

from palaver.core.decide.decide import Already, Refusal, decide
from palaver.schema.commands import Answer, ResolveRequest
from palaver.schema.events import (
    ConversationDeleted,
    ConversationUpdated,
    RequestOpened,
    RequestResolved,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
)
from palaver.schema.view import Offer, Plan, Question, State
from tests.unit.core.stage import (
    ADA,
    after,
    already,
    asked,
    called,
    events,
    facts,
    kinds,
    refusal,
    texts,
    tool,
    waiting_after_restart,
    wondered,
)

TWO = (Question(question="Which?"), Question(question="When?"))


def _paused() -> State:
    return after(*asked(), *called("a"), wondered("q", "a"))


def _questioned() -> State:
    return after(*asked(), RequestOpened(turn="t1", request="q", kind="question", questions=TWO))


def test_answer_is_recorded_with_all_that_was_said() -> None:
    command = ResolveRequest(
        request="q", verdict="allow", then="stop", scope="project", text="go", input={"command": "ls"}
    )
    decision = events(_paused(), command)
    assert kinds(decision) == ["RequestResolved"]
    resolved = decision[0]
    assert isinstance(resolved, RequestResolved)
    assert (resolved.status, resolved.verdict, resolved.then, resolved.scope) == (
        "answered",
        "allow",
        "stop",
        "project",
    )
    assert (resolved.text, resolved.input, resolved.origin, resolved.turn) == ("go", {"command": "ls"}, ADA, "t1")


def test_eight_racing_answers_apply_once_and_the_others_are_told() -> None:
    state, applied, told = _paused(), 0, 0
    for number in range(8):
        command = ResolveRequest(request="q", verdict="deny" if number else "allow", client_request_id=f"r{number}")
        match decide(state, command, facts()):
            case Already(note, request):
                told += 1
                assert (note, request) == ("It was answered before.", "q")
            case Refusal():
                raise AssertionError
            case applying:
                applied += 1
                state = after(*applying, state=state)
    assert (applied, told) == (1, 7)
    resolution = state.requests[0].resolution
    assert resolution is not None
    assert resolution.verdict == "allow"


def test_answer_to_a_cancelled_request_has_no_effect() -> None:
    state = after(RequestResolved(request="q", status="cancelled"), state=_paused())
    assert already(state, ResolveRequest(request="q", verdict="allow")).note == "It was cancelled before."


def test_answer_to_an_unknown_request_is_refused() -> None:
    assert refusal(_paused(), ResolveRequest(request="nobody", verdict="allow")).code == "not_found"


def test_approval_needs_a_verdict_and_a_scope_on_offer() -> None:
    assert refusal(_paused(), ResolveRequest(request="q", text="hm")).code == "invalid"
    refused = refusal(_paused(), ResolveRequest(request="q", verdict="allow", scope="agent"))
    assert refused.message == "This request can be granted for: once, project."


def test_lasting_approval_takes_up_one_of_the_offers() -> None:
    offers = (Offer(label="this", match="make"), Offer(label="all"))
    opened = RequestOpened(turn="t1", request="q", kind="approval", scopes=("once", "project"), offers=offers)
    state = after(*asked(), opened)
    resolved = events(state, ResolveRequest(request="q", verdict="allow", scope="project", offer=1))[0]
    assert isinstance(resolved, RequestResolved)
    assert resolved.offer == 1
    for wrong in (2, -1):
        refused = refusal(state, ResolveRequest(request="q", verdict="allow", scope="project", offer=wrong))
        assert (refused.code, "`offer`" in refused.message) == ("invalid", True)


def test_denial_needs_no_scope_on_offer() -> None:
    only_for_good = RequestOpened(turn="t1", request="q", kind="approval", scopes=("project",))
    assert kinds(decide(after(*asked(), only_for_good), ResolveRequest(request="q", verdict="deny"), facts())) == [
        "RequestResolved"
    ]


@pytest.mark.parametrize(
    "command",
    [
        ResolveRequest(request="q", answers=(Answer(question_index=1, selected=("Now",)),)),
        ResolveRequest(request="q", text="whatever"),
        ResolveRequest(request="q", input=0),
        ResolveRequest(request="q", verdict="deny"),
    ],
)
def test_question_takes_answers_words_or_a_no(command: ResolveRequest) -> None:
    assert kinds(decide(_questioned(), command, facts())) == ["RequestResolved"]


@pytest.mark.parametrize(
    "command",
    [
        ResolveRequest(request="q"),
        ResolveRequest(request="q", answers=(Answer(question_index=2),)),
        ResolveRequest(request="q", answers=(Answer(question_index=-1),)),
    ],
)
def test_question_never_takes_silence_or_an_answer_to_another(command: ResolveRequest) -> None:
    assert refusal(_questioned(), command).code == "invalid"


def test_answer_after_a_restart_begins_the_turn_that_goes_on() -> None:
    state = waiting_after_restart()
    assert (state.status, tool(state, "a").status) == ("waiting_user_input", "waiting")
    resolved, started = events(state, ResolveRequest(request="q", verdict="allow"), facts(resumable=True))
    assert isinstance(started, TurnStarted)
    assert (started.trigger.kind, started.trigger.request, started.resumable) == ("request", "q", True)
    # Recorded in the new turn: the one that asked is over.
    assert resolved.turn == started.turn
    going_on = after(resolved, started, state=state)
    assert (going_on.status, tool(going_on, "a").status) == ("generating", "called")


def test_answer_after_a_restart_goes_on_in_the_mode_of_the_turn_that_was_cut() -> None:
    cut = after(
        *asked(resumable=True, mode="plan"),
        RequestOpened(turn="t1", request="q", kind="question", questions=TWO),
        TurnInterrupted(turn="t1", reason="restart"),
    )
    started = events(cut, ResolveRequest(request="q", text="yes"))[-1]
    assert isinstance(started, TurnStarted)
    assert started.mode == "plan"


def test_approved_plan_leaves_plan_mode() -> None:
    planned = after(
        *asked(mode="plan"),
        RequestOpened(turn="t1", request="q", kind="plan", plan=Plan(summary="Dig")),
        TurnFinished(turn="t1", outcome="plan"),
    )
    assert planned.status == "waiting_user_input"
    decided = events(planned, ResolveRequest(request="q", verdict="allow"))
    assert kinds(decided) == ["RequestResolved", "PlanUpdated", "MessageAdded", "TurnStarted"]
    started = decided[-1]
    assert isinstance(started, TurnStarted)
    assert started.mode == "ask"
    going_on = after(*decided, state=planned)
    assert going_on.plan is not None
    assert going_on.plan.status == "executing"


def test_approved_plan_takes_the_chosen_mode_and_the_conversation_leaves_plan_mode() -> None:
    planned = after(ConversationUpdated(params={"mode": "plan"}), state=_planned())
    decided = events(planned, ResolveRequest(request="q", verdict="allow", input={"mode": "accept_edits"}))
    going_on = after(*decided, state=planned)
    assert going_on.turn is not None
    assert (going_on.turn.mode, going_on.params["mode"]) == ("accept_edits", "accept_edits")


def test_plan_refused_with_words_is_revised_in_plan_mode() -> None:
    decided = events(_planned(), ResolveRequest(request="q", verdict="deny", text="Smaller steps"))
    going_on = after(*decided, state=_planned())
    assert going_on.turn is not None
    assert going_on.turn.mode == "plan"
    assert "Smaller steps" in texts(going_on)[-1]


def test_rejected_plan_is_dropped_and_nothing_runs() -> None:
    decided = events(_planned(), ResolveRequest(request="q", verdict="deny"))
    dropped = after(*decided, state=_planned())
    assert (dropped.status, dropped.plan) == ("idle", None)


def _planned() -> State:
    return after(
        *asked(mode="plan"),
        RequestOpened(turn="t1", request="q", kind="plan", plan=Plan(summary="Dig")),
        TurnFinished(turn="t1", outcome="plan"),
    )


def test_second_answer_after_a_restart_joins_the_turn_that_the_first_began() -> None:
    two = after(
        *asked(resumable=True),
        *called("a", "b"),
        wondered("q-a", "a"),
        wondered("q-b", "b"),
        TurnInterrupted(turn="t1", reason="restart"),
    )
    going_on = after(*events(two, ResolveRequest(request="q-a", verdict="allow")), state=two)
    assert going_on.status == "paused"
    decision = events(going_on, ResolveRequest(request="q-b", verdict="deny"))
    assert kinds(decision) == ["RequestResolved"]
    assert going_on.turn is not None
    assert decision[0].turn == going_on.turn.id


def test_answer_in_a_deleted_conversation_is_refused_as_gone() -> None:
    state = after(ConversationDeleted(), state=waiting_after_restart())
    assert refusal(state, ResolveRequest(request="q", verdict="allow")).code == "gone"
