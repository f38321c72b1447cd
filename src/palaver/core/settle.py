"""`settle(state, reason) → events`: closes whatever a turn left open.

Cancel, backend failure and crash recovery are this one function, so a conversation ends up in the same shape whatever
stopped it: half-written text kept and marked, one result for every call, no request without an end, then the turn's end.
The order is a promise to clients: partial text, tool results, requests, the interruption.
"""

from typing import Literal

from palaver.core.state import messages_of_turn, open_requests, open_tools
from palaver.schema.base import Origin
from palaver.schema.errors import WireError
from palaver.schema.events import (
    AnswerFinished,
    KnownEvent,
    RequestResolved,
    TextFinished,
    ThinkingFinished,
    ToolFinished,
    TurnFinished,
    TurnInterrupted,
)
from palaver.schema.view import Message, State, Stopped, TextBlock, ThinkingBlock, ToolBlock, ToolError


def settle(
    state: State, reason: Stopped, *, now: int, origin: Origin | None = None, audio_end_ms: int | None = None
) -> list[KnownEvent]:
    """Everything needed to bring an active turn to rest. Empty when none is active: a stop is idempotent."""
    turn = state.turn
    if turn is None:
        return []
    # A restart leaves answerable what nothing has acted on yet: answering it later starts the turn that goes on.
    answerable = _answerable(state) if reason in ("restart", "shutdown") and turn.resumable else set[str]()
    events = [*_close_answers(state, turn.id), *_close_tools(state, answerable), *_close_requests(state, answerable)]
    events.append(
        TurnInterrupted(
            turn=turn.id,
            reason=reason,
            origin=origin,
            usage=turn.usage,
            duration_ms=max(0, now - turn.started_at),
            audio_end_ms=audio_end_ms,
        )
    )
    return events


def fail(state: State, error: WireError, *, now: int) -> list[KnownEvent]:
    """A backend failed: the same closing, and the turn ends as a failure that says why."""
    turn = state.turn
    if turn is None:
        return []
    return [
        *_close_answers(state, turn.id),
        *_close_tools(state, set()),
        *_close_requests(state, set()),
        TurnFinished(
            turn=turn.id,
            outcome="failed",
            error=error,
            usage=turn.usage,
            duration_ms=max(0, now - turn.started_at),
        ),
    ]


def supersede(state: State) -> list[KnownEvent]:
    """New input arrived at rest while requests of an ended turn were open: they give way, each with a reason."""
    return [*_close_tools(state, set()), *_close_requests(state, set(), "superseded")]


def _answerable(state: State) -> set[str]:
    """Requests whose call nothing has started. A question or a plan without a call always qualifies."""
    waiting = {tool.call for _, tool in open_tools(state) if tool.status == "waiting"}
    return {known.id for known in open_requests(state) if known.call is None or known.call in waiting}


def _close_answers(state: State, turn: str) -> list[KnownEvent]:
    events: list[KnownEvent] = []
    for message in messages_of_turn(state, turn):
        if message.status == "streaming":
            events.extend(_close_answer(message, turn))
    return events


def _close_answer(message: Message, turn: str) -> list[KnownEvent]:
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
    events.append(AnswerFinished(turn=turn, message=message.id, finish_reason="interrupted", interrupted=True))
    return events


def _close_tools(state: State, answerable: set[str]) -> list[KnownEvent]:
    return [
        interrupted_result(tool, state.turn.id if state.turn else message.turn)
        for message, tool in open_tools(state)
        if not (tool.request in answerable and tool.status == "waiting")
    ]


def interrupted_result(tool: ToolBlock, turn: str | None) -> ToolFinished:
    """The result of a call that will never have another. What ran may have done anything; what did not run did nothing."""
    ran = tool.status == "running"
    return ToolFinished(
        turn=turn,
        call=tool.call,
        ok=False,
        output=tool.output,
        effect="unknown" if ran else "none",
        error=ToolError(
            code="tool_interrupted",
            message="Interrupted, effect unknown." if ran else "Interrupted before it started; nothing was done.",
        ),
    )


def _close_requests(
    state: State, answerable: set[str], status: Literal["cancelled", "superseded"] = "cancelled"
) -> list[KnownEvent]:
    return [
        RequestResolved(turn=request.turn, request=request.id, status=status)
        for request in open_requests(state)
        if request.id not in answerable
    ]


def finish(state: State, event: TurnFinished) -> list[KnownEvent]:
    """A backend says its turn is over: whatever it forgot to close is closed first. A proposed plan stays to be answered."""
    turn = state.turn
    if turn is None:
        return []
    plans = {known.id for known in open_requests(state) if known.kind == "plan" and event.outcome == "plan"}
    return [*_close_answers(state, turn.id), *_close_tools(state, set()), *_close_requests(state, plans), event]
