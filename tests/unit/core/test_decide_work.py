"""Decisions on several calls at once, background processes, and what was always allowed."""

from palaver.core.next import process_ended
from palaver.core.settle import finish, reap, settle
from palaver.schema.commands import DecideTools, DeleteConversation, Interrupt, RemoveGrant, StopProcess, ToolDecision
from palaver.schema.events import (
    GrantAdded,
    KnownEvent,
    PlanUpdated,
    ProcessFinished,
    ProcessStarted,
    RequestResolved,
    TurnFinished,
    TurnStarted,
)
from palaver.schema.view import Plan, PlanItem, State
from tests.unit.core.stage import NOW_MS, after, already, asked, called, events, facts, kinds, refusal, said, wondered


def _paused() -> State:
    return after(*asked(), *called("a", "b", "c"), wondered("qa", "a"), wondered("qb", "b"), wondered("qc", "c"))


def _verdicts(decided: list[KnownEvent]) -> list[tuple[str, str | None, str]]:
    return [(one.request, one.verdict, one.then) for one in decided if isinstance(one, RequestResolved)]


# -- several calls at once


def test_all_waiting_calls_are_accepted_together() -> None:
    assert _verdicts(events(_paused(), DecideTools())) == [
        ("qa", "allow", "continue"),
        ("qb", "allow", "continue"),
        ("qc", "allow", "continue"),
    ]


def test_all_waiting_calls_are_rejected_together_and_the_turn_goes_on_unless_it_is_to_stop() -> None:
    denied = _verdicts(events(_paused(), DecideTools(accepted=False)))
    stopped = _verdicts(events(_paused(), DecideTools(accepted=False, then="stop")))
    assert {verdict[1:] for verdict in denied} == {("deny", "continue")}
    assert {verdict[1:] for verdict in stopped} == {("deny", "stop")}


def test_partial_decision_leaves_the_rest_waiting() -> None:
    state = _paused()
    some = (ToolDecision(call="a", accepted=True), ToolDecision(call="b", accepted=False))
    decided = events(state, DecideTools(decisions=some, then="stop"))
    assert _verdicts(decided) == [("qa", "allow", "continue"), ("qb", "deny", "stop")]
    left = after(*decided, state=state)
    assert left.status == "paused"
    assert [known.id for known in left.requests if known.status == "open"] == ["qc"]


def test_decision_on_a_call_that_does_not_wait_changes_nothing() -> None:
    some = (ToolDecision(call="a", accepted=True), ToolDecision(call="z", accepted=True))
    assert refusal(_paused(), DecideTools(decisions=some)).code == "not_found"


def test_decisions_after_a_restart_begin_the_turn_that_goes_on_with_the_rest_waiting() -> None:
    state = after(*settle(_resumable(), "restart", now=NOW_MS), state=_resumable())
    some = (ToolDecision(call="a", accepted=True), ToolDecision(call="b", accepted=False))
    *resolved, began = events(state, DecideTools(decisions=some, then="stop"), facts(resumable=True))
    assert _verdicts(resolved) == [("qa", "allow", "continue"), ("qb", "deny", "stop")]
    assert isinstance(began, TurnStarted)
    assert (began.trigger.kind, began.trigger.request) == ("request", "qa")
    assert {one.turn for one in resolved} == {began.turn}
    going_on = after(*resolved, began, state=state)
    assert going_on.status == "paused"
    assert [known.id for known in going_on.requests if known.status == "open"] == ["qc"]


def _resumable() -> State:
    waiting = (wondered("qa", "a"), wondered("qb", "b"), wondered("qc", "c"))
    return after(*asked(resumable=True), *called("a", "b", "c"), *waiting)


# -- background processes


def _with_process() -> State:
    return after(*asked(), ProcessStarted(turn="t1", process="p", command="make watch"))


def _at_rest(outcome: str = "completed") -> State:
    return after(*said(), TurnFinished(turn="t1", outcome=outcome), state=_with_process())  # type: ignore[arg-type]


def test_process_outlives_a_turn_that_simply_ends() -> None:
    assert [known.running for known in _at_rest().processes] == [True]


def test_stop_ends_the_processes_of_its_turn() -> None:
    decided = events(_with_process(), Interrupt())
    assert [event.end for event in decided if isinstance(event, ProcessFinished)] == ["stopped"]
    assert kinds(decided)[-1] == "TurnInterrupted"


def test_stop_spares_the_processes_of_earlier_turns() -> None:
    later = after(*asked("t2", "m9"), state=_at_rest())
    assert [event for event in events(later, Interrupt()) if isinstance(event, ProcessFinished)] == []


def test_process_is_stopped_by_hand_and_the_agent_is_told() -> None:
    state = _at_rest()
    decided = events(state, StopProcess(process="p"))
    assert kinds(decided) == ["ProcessFinished", "MessageAdded"]
    stopped = after(*decided, state=state)
    assert (stopped.processes[0].running, stopped.processes[0].end) == (False, "stopped")
    told = stopped.messages[-1]
    assert (told.role, told.hidden, told.event_kind) == ("event", True, "process_completed")
    assert already(stopped, StopProcess(process="p")).id == "p"
    assert refusal(stopped, StopProcess(process="z")).code == "not_found"


def test_end_of_a_process_is_told_and_starts_nothing() -> None:
    state = _at_rest()
    assert kinds(process_ended(state, state.processes[0], 0, "done", facts())) == ["ProcessFinished", "MessageAdded"]


def test_end_of_a_process_wakes_an_agent_that_yielded_its_turn() -> None:
    state = _at_rest("yielded")
    woken = process_ended(state, state.processes[0], 3, "failed", facts())
    assert kinds(woken) == ["ProcessFinished", "MessageAdded", "TurnStarted"]
    started = woken[-1]
    assert isinstance(started, TurnStarted)
    assert started.trigger.kind == "process"


def test_restart_ends_every_process_once() -> None:
    state = after(*settle(_with_process(), "restart", now=NOW_MS), state=_with_process())
    assert reap(state, facts().new_id) == []
    rested = _at_rest()
    reaped = after(*reap(rested, facts().new_id), state=rested)
    assert (reaped.processes[0].running, reaped.processes[0].end) == (False, "restart")
    assert reap(reaped, facts().new_id) == []


def test_deleting_ends_processes_of_every_turn() -> None:
    later = after(*asked("t2", "m9"), ProcessStarted(turn="t2", process="p2", command="top"), state=_at_rest())
    ended = [event.process for event in events(later, DeleteConversation()) if isinstance(event, ProcessFinished)]
    assert sorted(ended) == ["p", "p2"]


# -- grants and plans


def test_grant_is_taken_back() -> None:
    granted = after(GrantAdded(tool="shell", scope="conversation", match="ls"))
    assert len(granted.grants) == 1
    taken = after(*events(granted, RemoveGrant(tool="shell", match="ls")), state=granted)
    assert taken.grants == ()
    assert already(taken, RemoveGrant(tool="shell", match="ls")).note


def _executing() -> State:
    items = (PlanItem(title="Dig", status="done"), PlanItem(title="Sow", status="in_progress"), PlanItem(title="Rest"))
    return after(*asked(), *said(), PlanUpdated(turn="t1", plan=Plan(summary="Beds", items=items, status="executing")))


def test_stopped_plan_stays_approved() -> None:
    state = _executing()
    stopped = after(*settle(state, "user", now=NOW_MS), state=state)
    assert stopped.plan is not None
    assert stopped.plan.status == "approved"
    assert [item.status for item in stopped.plan.items] == ["done", "in_progress", "pending"]


def test_finished_plan_skips_what_was_left_undone() -> None:
    state = _executing()
    finished = after(*finish(state, TurnFinished(outcome="completed"), now=9), state=state)
    assert finished.plan is not None
    assert finished.plan.status == "completed"
    assert [item.status for item in finished.plan.items] == ["done", "skipped", "skipped"]
