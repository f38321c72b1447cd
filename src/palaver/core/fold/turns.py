"""A turn in the view: how it begins, what it does, how it ended.

Called by evolve alone. Pure.
"""

from msgspec.structs import replace

from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    ContextCompressed,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
    TurnStatus,
)
from palaver.schema.view import Turn, TurnSummary

SEEN_AT_REST = frozenset({"task", "failed"})
"""Outcomes that are the status of a conversation at rest."""


def turn_of(event: TurnStarted) -> Turn:
    return Turn(
        id=event.turn or "",
        agent=event.agent,
        backend=event.backend,
        model=event.model,
        started_at=event.ts,
        trigger=event.trigger,
        resumable=event.resumable,
        steerable=event.steerable,
        mode=event.mode,
    )


def busy_with(turn: Turn, event: TurnStatus) -> Turn:
    return replace(
        turn,
        activity=event.status,
        detail=event.detail,
        retry=event.retry,
        yielding=turn.yielding or event.yielding,
    )


def add_usage(turn: Turn, event: AnswerFinished | ContextCompressed) -> Turn:
    usage, cost_usd = turn.usage + (event.usage or Usage()), turn.cost_usd + (event.cost_usd or 0.0)
    return replace(turn, usage=usage, cost_usd=cost_usd)


def summary_of(turn: Turn, event: TurnFinished | TurnInterrupted) -> TurnSummary:
    finished = event if isinstance(event, TurnFinished) else None
    stopped = event if isinstance(event, TurnInterrupted) else None
    return TurnSummary(
        id=event.turn or "",
        outcome=finished.outcome if finished else "interrupted",
        ended_at=event.ts,
        stopped=stopped.reason if stopped else None,
        by=event.origin,
        error=finished.error if finished else None,
        summary=finished.summary if finished else None,
        duration_ms=event.duration_ms,
        mode=turn.mode,
    )


def without_outcome(summary: TurnSummary) -> TurnSummary:
    """A turn whose end was taken out of the history: it has been, and neither failed nor completed a task."""
    return replace(summary, outcome="completed", error=None, summary=None)
