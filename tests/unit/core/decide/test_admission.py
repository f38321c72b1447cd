"""The table of the eight states, walked whole: every command in every state does what the table says, or is told why not."""

from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from msgspec.structs import replace

from palaver.core.decide.admission import ADMISSION, IN_TURN, SITUATIONS, TRANSITIONS, Situation, admission, situation
from palaver.core.decide.decide import Already, Decision, Refusal, decide
from palaver.core.fold.evolve import evolve
from palaver.schema import commands
from palaver.schema.commands import Answer, DeleteConversation, Order, Rewriting
from palaver.schema.content import as_content
from palaver.schema.events import (
    DraftSet,
    ExchangeSent,
    GrantAdded,
    KnownEvent,
    ProcessStarted,
    QueueAdded,
    QueueEdited,
    RequestOpened,
    TurnFinished,
    TurnStarted,
)
from palaver.schema.view import Message, Plan, Question, State, Status
from tests.rigs.core.machine import CoreMachine
from tests.unit.core.stage import after, asked, began, called, facts, said, wondered

COMMANDS: dict[type[Order], Order] = {
    commands.SendMessage: commands.SendMessage(content="Hello"),
    commands.EditQueued: commands.EditQueued(item="i1", content="Changed"),
    commands.RemoveQueued: commands.RemoveQueued(item="i1"),
    commands.Deliver: commands.Deliver(content="Hello", trigger="task"),
    commands.ReturnExchange: commands.ReturnExchange(exchange="x1", status="complete", response="Done"),
    commands.Interrupt: commands.Interrupt(),
    commands.StopTurn: commands.StopTurn(reason="parent"),
    commands.YieldTurn: commands.YieldTurn(),
    commands.PostAnswer: commands.PostAnswer(content="From afar"),
    commands.AskFirst: commands.AskFirst(request="from-afar", tool="chat_assistant_post"),
    commands.ResolveRequest: commands.ResolveRequest(request="q", verdict="allow", answers=(Answer(selected=("x",)),)),
    commands.DecideTools: commands.DecideTools(),
    commands.StopProcess: commands.StopProcess(process="p1"),
    commands.RemoveGrant: commands.RemoveGrant(tool="shell"),
    commands.UpdateConversation: commands.UpdateConversation(title="Roses"),
    commands.SetParams: commands.SetParams(patch={"temperature": 1}),
    commands.DeleteConversation: commands.DeleteConversation(),
    commands.EditMessage: commands.EditMessage(message="m1", content="Changed"),
    commands.RemoveMessage: commands.RemoveMessage(message="m1"),
    commands.TruncateMessages: commands.TruncateMessages(from_index=0),
    commands.RetryFrom: commands.RetryFrom(index=0, content="Again"),
    commands.Regenerate: commands.Regenerate(),
    commands.ReturnToolResult: commands.ReturnToolResult(call="e", content="42"),
    commands.RestoreMessages: commands.RestoreMessages(
        messages=(Message(id="x", role="user", seq=1, updated_seq=1, ts=1),)
    ),
    commands.Fill: commands.Fill(messages=(Message(id="x", role="user", seq=1, updated_seq=1, ts=1),)),
    commands.SetDraft: commands.SetDraft(text="Dear"),
    commands.ClearDraft: commands.ClearDraft(),
}

AROUND: tuple[KnownEvent, ...] = (
    # What commands may name, whatever the agent does: a held message, a process, a grant, a draft.
    QueueAdded(item="i1", content=as_content("Later")),
    QueueEdited(item="i1", version=2, held=True),
    ProcessStarted(process="p1", command="sleep 9"),
    GrantAdded(tool="shell", scope="conversation"),
    DraftSet(text="Hm"),
    ExchangeSent(exchange="x1", agent="b", to="c2", mode="async"),
)

PLAN = RequestOpened(turn="t1", request="q", kind="plan", plan=Plan(summary="Dig"))
QUESTION = RequestOpened(turn="t1", request="q", kind="question", questions=(Question(question="Which?"),))

STATES: dict[Situation, State] = {
    "idle": after(*asked(), *said(), TurnFinished(turn="t1", outcome="completed"), *AROUND),
    "completed": after(*asked(), *said(), TurnFinished(turn="t1", outcome="task"), *AROUND),
    "error": after(*asked(), *said(), TurnFinished(turn="t1", outcome="failed"), *AROUND),
    "waiting_at_rest": after(*asked(), *said(), PLAN, TurnFinished(turn="t1", outcome="plan"), *AROUND),
    "generating": after(*asked(), *AROUND),
    "executing_tools": after(*asked(), *called("a"), began("a"), *AROUND),
    "paused": after(*asked(), *called("a"), wondered("q", "a"), *AROUND),
    "waiting_ide": after(*asked(), *called("e"), began("e", grant="ide"), *AROUND),
    "waiting_user_input": after(*asked(), *said(), QUESTION, *AROUND),
}

NAMES_WHAT_IS_NOT_THERE: frozenset[tuple[type[Order], Situation]] = frozenset(
    {
        (commands.ResolveRequest, state)
        for state in SITUATIONS
        if state not in ("paused", "waiting_user_input", "waiting_at_rest")
    }
    | {(commands.ReturnToolResult, state) for state in SITUATIONS if state != "waiting_ide"}
    | {
        (commands.DecideTools, state) for state in SITUATIONS if state == "waiting_at_rest"
    }  # A plan waits here, no call.
    | {(fills, state) for fills in (commands.RestoreMessages, commands.Fill) for state in SITUATIONS}
    # Only an empty conversation can be filled.
)
"""Let through by the table, and refused because of what they name: nothing like it is in that state."""


def test_table_holds_every_command_in_every_state() -> None:
    assert set(ADMISSION) == set(get_args(Order)) == set(COMMANDS)
    assert all(set(row) == set(SITUATIONS) for row in ADMISSION.values())
    assert set(SITUATIONS) - {"waiting_at_rest"} == set(get_args(Status)) == set(TRANSITIONS)


@pytest.mark.parametrize("state", SITUATIONS)
def test_stage_is_set_for(state: Situation) -> None:
    assert situation(STATES[state]) == state


@pytest.mark.parametrize("state", SITUATIONS)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_command_in_state_does_what_the_table_says(command: type[Order], state: Situation) -> None:
    admitted = ADMISSION[command][state]
    decision = decide(STATES[state], COMMANDS[command], facts())
    if admitted.word != "refused" and (command, state) in NAMES_WHAT_IS_NOT_THERE:
        assert isinstance(decision, Refusal)
        assert decision.message != admitted.why
        return
    assert _word(decision) == admitted.word
    if isinstance(decision, Refusal):
        assert (decision.code, decision.message) == ("conflict", admitted.why)


@pytest.mark.parametrize("state", SITUATIONS)
@pytest.mark.parametrize("command", get_args(Rewriting), ids=lambda command: command.__name__)
def test_command_that_may_wait_is_queued_while_the_agent_works_and_applies_at_once_at_rest(
    command: type[Rewriting], state: Situation
) -> None:
    patient = replace(COMMANDS[command], when_busy="queue")
    decision = decide(STATES[state], patient, facts())
    if state in IN_TURN:
        assert _word(decision) == admission(STATES[state], patient).word == "queues"
    elif (command, state) not in NAMES_WHAT_IS_NOT_THERE:
        assert _word(decision) == ADMISSION[command][state].word


def _word(decision: Decision) -> str:
    match decision:
        case Refusal():
            return "refused"
        case Already():
            return "nothing"
        case _ if any(isinstance(event, TurnStarted) for event in decision):
            return "starts"
        case _ if any(isinstance(event, QueueAdded) for event in decision):
            return "queues"
        case _:
            return "applies"


def test_deleted_conversation_takes_no_command_but_its_deletion() -> None:
    gone = STATES["idle"]
    for event in _decided(gone, DeleteConversation()):
        gone = after(event, state=gone)
    for command in COMMANDS.values():
        decision = decide(gone, command, facts())
        if isinstance(command, DeleteConversation):
            assert isinstance(decision, Already)
        else:
            assert isinstance(decision, Refusal)
            assert decision.code == "gone"


def _decided(state: State, command: Order) -> list[KnownEvent]:
    decision = decide(state, command, facts())
    assert isinstance(decision, list)
    return decision


def test_every_way_between_states_that_any_log_takes_is_in_the_table() -> None:
    taken: set[tuple[Status, Status]] = set()

    class Watching(CoreMachine):
        def teardown(self) -> None:
            states = [State()]
            for event in self.owner.log:
                states.append(evolve(states[-1], event))
            ways = ((before.status, now.status) for before, now in pairwise(states))
            taken.update(way for way in ways if way[0] != way[1])
            super().teardown()

    run_state_machine_as_test(
        Watching,
        settings=settings(
            max_examples=40,
            stateful_step_count=40,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    strange = {(before, now) for before, now in taken if now not in TRANSITIONS[before]}
    assert strange == set()
    allowed = {(before, now) for before, ways in TRANSITIONS.items() for now in ways}
    assert len(taken) > len(allowed) // 2, "the machine no longer goes far enough to show anything"
