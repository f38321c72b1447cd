"""`settle(state, reason) → events`: closes whatever a turn left open.

Cancel, backend failure and crash recovery are this one function, so a conversation ends up in the same shape whatever
stopped it: half-written text kept and marked, one result for every call, no request without an end, then the turn's end.
The order is a promise to clients: partial text, tool results, requests, the interruption. An answer that said nothing
leaves the transcript. No event made here belongs to a turn that is over.
"""

from collections.abc import Callable
from typing import Literal

from msgspec.structs import replace

from palaver.core import exchanges
from palaver.core.fold.blocks import KEEP_OUTPUT_CHARS
from palaver.core.state import (
    OPEN_TOOL,
    between_steps,
    find_call,
    is_from_elsewhere,
    messages_of_turn,
    open_requests,
    open_tools,
    says_something,
)
from palaver.schema.base import Origin, Usage
from palaver.schema.content import as_content
from palaver.schema.errors import WireError
from palaver.schema.events import (
    AnswerFinished,
    KnownEvent,
    MessageAdded,
    MessageRemoved,
    PlanUpdated,
    ProcessFinished,
    RequestResolved,
    SubagentFinished,
    TextFinished,
    ThinkingFinished,
    ToolFinished,
    TurnFinished,
    TurnInterrupted,
)
from palaver.schema.view import (
    Message,
    Process,
    ProcessEnd,
    Request,
    State,
    Stopped,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    ToolError,
    Turn,
)

CANCELS: tuple[Stopped, ...] = ("user", "parent", "deleted")
"""Stops that a person or a parent asked for; every other one is a failure of the server, a program or a limit."""


def settle(
    state: State, reason: Stopped, *, now: int, origin: Origin | None = None, audio_end_ms: int | None = None
) -> list[KnownEvent]:
    """Everything needed to bring an active turn to rest. Empty when none is active: a stop is idempotent."""
    turn = state.turn
    if turn is None:
        return []
    # A restart leaves answerable what nothing has acted on yet: answering it later starts the turn that goes on.
    keeps = reason in ("restart", "shutdown") and turn.resumable and not works_for_another(state)
    answerable = _answerable(state) if keeps else set[str]()
    own = [process for process in state.processes if process.running and process.turn == turn.id]
    closed = _close(state, turn, answerable)
    return [
        *(map(_mark_cancelled, closed) if reason in CANCELS else closed),
        # Its background processes end with it: a stop stops everything that the turn began.
        *(ProcessFinished(turn=turn.id, process=process.id, end="stopped") for process in own),
        *_plan_put_down(state),
        # One that can still go on has not answered yet.
        *(() if answerable else exchanges.return_answer(state, "cancelled", None, now)),
        TurnInterrupted(
            turn=turn.id,
            reason=reason,
            origin=origin,
            usage=turn.usage,
            cost_usd=turn.cost_usd or None,
            duration_ms=max(0, now - turn.started_at),
            audio_end_ms=audio_end_ms,
        ),
    ]


def fail(state: State, error: WireError, *, now: int) -> list[KnownEvent]:
    """A backend failed: the same closing, and the turn ends as a failure that says why."""
    turn = state.turn
    if turn is None:
        return []
    failed = TurnFinished(
        turn=turn.id,
        outcome="failed",
        error=error,
        usage=turn.usage,
        cost_usd=turn.cost_usd or None,
        duration_ms=max(0, now - turn.started_at),
    )
    answer = exchanges.return_answer(state, "failed", error.message, now)
    return [*_close(state, turn, set()), *_plan_put_down(state), *answer, failed]


def finish(state: State, event: TurnFinished, *, now: int) -> list[KnownEvent]:
    """A backend says its turn is over: whatever it forgot to close is closed first. A proposed plan stays to be answered."""
    turn = state.turn
    if turn is None:
        return []
    plans = {known.id for known in open_requests(state) if known.kind == "plan" and event.outcome == "plan"}
    stays = plans | _requests_from_elsewhere(state)
    usage = turn.usage if event.usage == Usage() else event.usage
    cost_usd = event.cost_usd if event.cost_usd is not None else turn.cost_usd or None
    ended = replace(event, turn=turn.id, usage=usage, cost_usd=cost_usd)
    carried_out = event.outcome in ("completed", "task")
    failure = event.error.message if event.outcome == "failed" and event.error else None
    said = failure or exchanges.answer_of(state, turn.id) or event.summary
    return [
        *_close(state, turn, stays),
        *(_plan_finished(state) if carried_out else _plan_put_down(state)),
        *exchanges.return_answer(state, "failed" if event.outcome == "failed" else "complete", said, now),
        ended,
    ]


def end_yielding_turn(state: State, *, now: int) -> list[KnownEvent]:
    """The end of a turn that was told to yield, as soon as nothing of it is half done. Nothing before that."""
    if state.turn is None or not state.turn.yielding or not between_steps(state):
        return []
    return finish(state, TurnFinished(outcome="yielded"), now=now)


def reap(state: State, new_id: Callable[[], str]) -> list[KnownEvent]:
    """Background processes that nobody runs any more: they ended with the server that had started them."""
    return [
        event
        for process in state.processes
        if process.running
        for event in process_over(
            process, "restart", None, f"Process {process.id} ({process.command}) ended with the server.", new_id()
        )
    ]


def process_over(process: Process, end: ProcessEnd, exit_code: int | None, text: str, message: str) -> list[KnownEvent]:
    """The end of a background process, and the hidden word that tells the agent of it."""
    return [
        ProcessFinished(process=process.id, exit_code=exit_code, end=end),
        MessageAdded(
            message=message,
            role="event",
            hidden=True,
            event_kind="process_completed",
            content=as_content(text),
            data={"process": process.id, "command": process.command, "exit_code": exit_code, "end": end},
        ),
    ]


def _plan_finished(state: State) -> list[KnownEvent]:
    """What a finished plan left undone was skipped."""
    plan = state.plan
    if plan is None or plan.status != "executing":
        return []
    items = tuple(item if item.status == "done" else replace(item, status="skipped") for item in plan.items)
    return [PlanUpdated(plan=replace(plan, items=items, status="completed"))]


def _plan_put_down(state: State) -> list[KnownEvent]:
    """Nobody carries it out at the moment; it stays approved, to be gone on with."""
    if state.plan is None or state.plan.status != "executing":
        return []
    return [PlanUpdated(plan=replace(state.plan, status="approved"))]


def supersede(state: State) -> list[KnownEvent]:
    """New input arrived at rest while requests of an ended turn were open: they give way, each with a reason."""
    over = exchanges.call_off(state, "Something else was asked of the agent before it could go on.")
    return [*_close_tools(state, set()), *_close_requests(state, _requests_from_elsewhere(state), "superseded"), *over]


def withdraw(state: State) -> list[KnownEvent]:
    """A stop at rest: what an ended turn left open for a person to answer is called off."""
    over = exchanges.call_off(state, "It was stopped before it could go on.")
    return [*_close_tools(state, set()), *_close_requests(state, set()), *over]


def expire(state: State, request: Request) -> list[KnownEvent]:
    """Nobody answered in time: a denial, never a silent yes. At rest nobody else will give its call a result."""
    turn = state.turn.id if state.turn else None
    resolved = RequestResolved(turn=turn, request=request.id, status="expired", verdict="deny")
    tool = find_call(state, request.call) if request.call and turn is None else None
    last = [known.id for known in open_requests(state)] == [request.id]
    over = exchanges.call_off(state, "Nobody answered what it asked in time.") if last else []
    if tool is None or tool.status not in OPEN_TOOL:
        return [resolved, *over]
    error = ToolError(code="interaction_timeout", message="Nobody answered in time; it was not run.")
    return [ToolFinished(turn=turn, call=tool.call, ok=False, error=error, effect="none"), resolved, *over]


def _close(state: State, turn: Turn, left_open: set[str]) -> list[KnownEvent]:
    return [
        *_close_answers(state, turn.id),
        *_close_tools(state, left_open),
        *_close_requests(state, left_open),
        # Whoever works for this turn is stopped with it.
        *(
            SubagentFinished(turn=turn.id, subagent=child.conversation, outcome="cancelled", run=child.run)
            for child in state.subagents
            if child.status == "running"
        ),
        *exchanges.give_up(state, turn),
    ]


def _mark_cancelled(event: KnownEvent) -> KnownEvent:
    """Marked, so that a reader of the log in order knows a cancel from a failure before it reads the turn's end."""
    return (
        replace(event, cancelled=True) if isinstance(event, TextFinished | ThinkingFinished | ToolFinished) else event
    )


def works_for_another(state: State) -> bool:
    """A subagent: nobody would be there to take what it says later."""
    return state.parent is not None and state.parent.kind == "subagent"


def _answerable(state: State) -> set[str]:
    """Requests whose call nothing has started. A question or a plan without a call always qualifies."""
    waiting = {tool.call for _, tool in open_tools(state) if tool.status == "waiting"}
    return {known.id for known in open_requests(state) if known.call is None or known.call in waiting}


def _requests_from_elsewhere(state: State) -> set[str]:
    """What an agent elsewhere waits for goes on waiting whatever begins or ends here; a stop calls it off too."""
    return {known.id for known in open_requests(state) if is_from_elsewhere(known)}


# -- answers


def _close_answers(state: State, turn: str) -> list[KnownEvent]:
    events: list[KnownEvent] = []
    empty: list[Message] = []
    for message in messages_of_turn(state, turn):
        events.extend(_close_blocks(message, turn))
        if message.status == "streaming":
            events.append(AnswerFinished(turn=turn, message=message.id, finish_reason="interrupted", interrupted=True))
            if not any(says_something(block) for block in message.blocks):
                empty.append(message)
    # From the end, so that no removal moves the index of the next.
    places = {message.id: state.offset + place for place, message in enumerate(state.messages)} if empty else {}
    events.extend(MessageRemoved(turn=turn, message=one.id, index=places[one.id]) for one in reversed(empty))
    return events


def _close_blocks(message: Message, turn: str) -> list[KnownEvent]:
    events: list[KnownEvent] = []
    for block in message.blocks:
        match block:
            case TextBlock(status="streaming"):
                events.append(
                    TextFinished(turn=turn, message=message.id, block=block.index, text=block.text, interrupted=True)
                )
            case ThinkingBlock(status="streaming"):
                events.append(
                    ThinkingFinished(
                        turn=turn, message=message.id, block=block.index, text=block.text, interrupted=True
                    )
                )
            case _:
                pass
    return events


# -- calls and requests


def _close_tools(state: State, left_open: set[str]) -> list[KnownEvent]:
    turn = state.turn.id if state.turn else None
    return [
        result_of_interruption(tool, turn)
        for _, tool in open_tools(state)
        if not (tool.request in left_open and tool.status == "waiting")
    ]


def result_of_interruption(tool: ToolBlock, turn: str | None) -> ToolFinished:
    """The result of a call that will never have another. What ran may have done anything; what did not run did nothing."""
    ran = tool.status == "running"
    return ToolFinished(
        turn=turn,
        call=tool.call,
        ok=False,
        output=tool.output[-KEEP_OUTPUT_CHARS:],
        truncated=tool.truncated or len(tool.output) > KEEP_OUTPUT_CHARS,
        effect="unknown" if ran else "none",
        error=ToolError(
            code="tool_interrupted",
            message="Interrupted, effect unknown." if ran else "Interrupted before it started; nothing was done.",
        ),
    )


def _close_requests(
    state: State, left_open: set[str], status: Literal["cancelled", "superseded"] = "cancelled"
) -> list[KnownEvent]:
    turn = state.turn.id if state.turn else None
    return [
        RequestResolved(turn=turn, request=request.id, status=status)
        for request in open_requests(state)
        if request.id not in left_open
    ]
