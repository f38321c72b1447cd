"""What each command does in each state: the one table of the eight states, and the ways between them.

`decide` asks it first, so what it refuses here is refused everywhere; `tests/unit/core/decide/test_admission.py` walks it whole.
Every other status word of every face is derived from these eight.

A request may outlive its turn (a plan, or an approval after a restart): then the state is `waiting_user_input` with
nothing running, which takes input like `idle` does. The table calls that `waiting_at_rest`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from palaver.schema import commands
from palaver.schema.commands import Order
from palaver.schema.view import State, Status

Situation = Status | Literal["waiting_at_rest"]

Word = Literal["starts", "queues", "applies", "nothing", "refused"]
"""`starts` a turn, `queues` behind the running one, `applies` at once, does `nothing` (and says so), or is `refused`."""


@dataclass(frozen=True, slots=True)
class Admission:
    word: Word
    why: str = ""
    """For the person who is refused."""


STARTS, QUEUES, APPLIES, NOTHING = Admission("starts"), Admission("queues"), Admission("applies"), Admission("nothing")
AT_WORK = Admission("refused", "The agent is working. Stop it first, then change the history.")
"""`queues` instead, for a command that says so (`when_busy`)."""
NONE_WAITS = Admission("refused", "No tool waits for a decision.")
NO_EDITOR = Admission("refused", "No tool waits for a result from the editor.")

AT_REST: tuple[Situation, ...] = ("idle", "completed", "error", "waiting_at_rest")
IN_TURN: tuple[Situation, ...] = ("generating", "executing_tools", "paused", "waiting_ide", "waiting_user_input")
SITUATIONS: tuple[Situation, ...] = (*AT_REST, *IN_TURN)


def _row(at_rest: Admission, in_turn: Admission, **others: Admission) -> dict[Situation, Admission]:
    row: dict[Situation, Admission] = {**dict.fromkeys(AT_REST, at_rest), **dict.fromkeys(IN_TURN, in_turn)}
    for situation in SITUATIONS:
        row[situation] = others.get(situation, row[situation])
    return row


ADMISSION: Mapping[type[Order], Mapping[Situation, Admission]] = {
    commands.SendMessage: _row(STARTS, QUEUES),
    commands.Deliver: _row(STARTS, QUEUES),
    # An answer that somebody waits for is only recorded; any other begins a turn.
    commands.ReturnExchange: _row(STARTS, QUEUES),
    commands.Regenerate: _row(STARTS, AT_WORK),
    commands.RetryFrom: _row(STARTS, AT_WORK),
    commands.EditMessage: _row(APPLIES, AT_WORK),
    commands.RemoveMessage: _row(APPLIES, AT_WORK),
    commands.TruncateMessages: _row(APPLIES, AT_WORK),
    commands.RestoreMessages: _row(APPLIES, AT_WORK),
    commands.Fill: _row(APPLIES, AT_WORK),
    commands.Interrupt: _row(NOTHING, APPLIES, waiting_at_rest=APPLIES),
    commands.StopTurn: _row(NOTHING, APPLIES),
    commands.YieldTurn: _row(NOTHING, APPLIES),
    # An agent from elsewhere speaks whenever it likes; nothing begins and nothing waits for it.
    commands.PostAnswer: _row(APPLIES, APPLIES),
    commands.AskFirst: _row(APPLIES, APPLIES),
    commands.DecideTools: _row(NONE_WAITS, NONE_WAITS, paused=APPLIES, waiting_at_rest=STARTS),
    # These name what they are about, and are answered by what became of it: any state may hold it.
    commands.ResolveRequest: _row(APPLIES, APPLIES, waiting_at_rest=STARTS),
    commands.ReturnToolResult: _row(NO_EDITOR, APPLIES),
    commands.EditQueued: _row(APPLIES, APPLIES),
    commands.RemoveQueued: _row(APPLIES, APPLIES),
    commands.StopProcess: _row(APPLIES, APPLIES),
    commands.RemoveGrant: _row(APPLIES, APPLIES),
    # At once and never queued, whatever the agent does.
    commands.SetParams: _row(APPLIES, APPLIES),
    commands.UpdateConversation: _row(APPLIES, APPLIES),
    commands.SetDraft: _row(APPLIES, APPLIES),
    commands.ClearDraft: _row(APPLIES, APPLIES),
    commands.DeleteConversation: _row(APPLIES, APPLIES),
}


def situation(state: State) -> Situation:
    if state.status == "waiting_user_input" and state.turn is None:
        return "waiting_at_rest"
    return state.status


def admission(state: State, command: Order) -> Admission:
    admitted = ADMISSION[type(command)][situation(state)]
    patient = isinstance(command, commands.Rewriting) and command.when_busy == "queue"
    held = isinstance(command, commands.SendMessage) and command.held
    return QUEUES if held or (admitted is AT_WORK and patient) else admitted


TRANSITIONS: Mapping[Status, frozenset[Status]] = {
    "idle": frozenset({"generating"}),
    "completed": frozenset({"generating"}),
    "error": frozenset({"generating"}),
    "generating": frozenset(
        {"idle", "executing_tools", "completed", "waiting_user_input", "waiting_ide", "paused", "error"}
    ),
    "executing_tools": frozenset(
        {"generating", "completed", "waiting_user_input", "idle", "paused", "waiting_ide", "error"}
    ),
    "paused": frozenset({"generating", "executing_tools", "idle", "waiting_ide", "waiting_user_input", "error"}),
    "waiting_ide": frozenset({"generating", "executing_tools", "idle", "paused", "waiting_user_input", "error"}),
    "waiting_user_input": frozenset(
        {"generating", "executing_tools", "idle", "completed", "paused", "waiting_ide", "error"}
    ),
}
"""From one event to the next, as the contract's diagram has them.

More than the diagram: calls of one batch may run, ask and wait for the editor side by side, so those three lead to each
other; a restart ends the turn of a paused conversation and leaves its requests to be answered.
"""
