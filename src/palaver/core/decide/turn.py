"""What is asked of the running turn and of what it started: to stop, to yield, to take an editor's result.

Called by decide.
"""

from palaver.core.decide.decision import Already, Decision, Refusal
from palaver.core.decide.facts import Facts
from palaver.core.decide.queue import all_held
from palaver.core.settle import finish, process_over, settle, withdraw
from palaver.core.state import EDITOR_GRANT, OPEN_TOOL, between_steps, find_call, open_requests
from palaver.schema.commands import Interrupt, ReturnToolResult, StopProcess, StopTurn, YieldTurn
from palaver.schema.events import ToolFinished, TurnFinished, TurnStatus
from palaver.schema.view import State, ToolError

TOOL_RESULT_BYTES = 1 << 20
"""What an editor may send back for one call: as much as a message."""


def interrupt(state: State, command: Interrupt, facts: Facts) -> Decision:
    # Held before the turn ends: between its end and a later hold the next message would have begun.
    held = all_held(state, True) if command.hold_queue else []
    if state.turn is None:
        asked = command.turn is None or any(known.turn == command.turn for known in open_requests(state))
        return [*held, *(withdraw(state) if asked else [])] or Already("Nothing was running.")
    if command.turn and command.turn != state.turn.id:
        # It ended under the hand that stopped it, and what was to be kept from running has begun; the rest is kept.
        return held or Already("That turn had ended before.")
    return [*held, *settle(state, "user", now=facts.now, origin=facts.origin, audio_end_ms=command.audio_end_ms)]


def stop_turn(state: State, command: StopTurn, facts: Facts) -> Decision:
    if state.turn is None or command.turn not in (None, state.turn.id):
        return Already("That turn is over.")
    return settle(state, command.reason, now=facts.now, origin=facts.origin)


def yield_turn(state: State, command: YieldTurn, facts: Facts) -> Decision:
    turn = state.turn
    if turn is None or command.turn not in (None, turn.id):
        return Already("That turn is over.")
    if between_steps(state):
        return finish(state, TurnFinished(outcome="yielded"), now=facts.now)
    if turn.yielding:
        return Already("It is about to end.")
    return [TurnStatus(turn=turn.id, status=turn.activity, detail=turn.detail, retry=turn.retry, yielding=True)]


def stop_process(state: State, command: StopProcess, facts: Facts) -> Decision:
    process = next((known for known in state.processes if known.id == command.process), None)
    if process is None:
        return Refusal("not_found", "No such process in this conversation.")
    if not process.running:
        return Already("It was over before.", id=process.id)
    return process_over(
        process, "stopped", None, f"Process {process.id} ({process.command}) was stopped.", facts.new_id()
    )


def return_tool_result(state: State, command: ReturnToolResult) -> Decision:
    tool = find_call(state, command.call)
    if tool is None:
        return Refusal("not_found", "No such tool call in this conversation.")
    if tool.grant == EDITOR_GRANT and tool.status not in OPEN_TOOL:
        return Already("It had its result before.", id=tool.call)
    if state.turn is None or tool.grant != EDITOR_GRANT or tool.status != "running":
        return Refusal("conflict", "That tool does not wait for a result from the editor.")
    if len(command.content.encode()) > TOOL_RESULT_BYTES:
        return Refusal("too_large", f"A tool's result may hold {TOOL_RESULT_BYTES >> 20} MiB.")
    return [
        ToolFinished(
            turn=state.turn.id,
            call=command.call,
            ok=not command.failed,
            output="" if command.failed else command.content,
            error=ToolError(code="tool_error", message=command.content) if command.failed else None,
        )
    ]
