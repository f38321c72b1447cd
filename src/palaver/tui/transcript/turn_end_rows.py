"""How a turn ended, as a row, where it should be seen: it failed, was stopped or met a limit. Pure; called by the row book."""

from palaver.schema.view import Message, State, TurnSummary
from palaver.tui.transcript.message_rows import has_rows
from palaver.tui.transcript.rows import ErrorRow, InterruptedRow, Row


def end_of(message: Message, *, is_last: bool) -> Row | None:
    """The end of the turn that this message is the last of."""
    if message.ended is not None:
        return turn_end(message.ended, message, is_last=is_last)
    is_cut = message.role == "assistant" and message.status == "interrupted"
    return _row_of_interruption(message.id, message, None, is_last=False) if is_cut and not is_last else None


def turn_end(turn: TurnSummary, after: Message | None, *, is_last: bool) -> Row | None:
    if turn.outcome == "failed" and turn.error is not None:
        seq = after.seq if after else 0
        return ErrorRow(key=f"error:{turn.id}", seq=seq, ts=turn.ended_at, error=turn.error, turn=turn, is_last=is_last)
    if turn.outcome in ("interrupted", "limited"):
        return _row_of_interruption(turn.id, after, turn, is_last=is_last)
    return None


def _row_of_interruption(id: str, after: Message | None, turn: TurnSummary | None, *, is_last: bool) -> InterruptedRow:
    stopped = turn.stopped if turn else None
    if turn and stopped is None and turn.outcome == "limited":
        stopped = "limit"
    ts = turn.ended_at if turn else after.ts if after else 0
    seq = after.seq if after else 0
    return InterruptedRow(key=f"end:{id}", seq=seq, ts=ts, stopped=stopped, turn=turn, is_last=is_last)


def left_something(state: State, turn: str) -> bool:
    return any(message.turn == turn and has_rows(message) for message in reversed(state.messages))
