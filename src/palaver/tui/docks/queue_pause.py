"""A queue that stands still because somebody stopped the agent and kept what waited: whether it does, and what is said of it.

Used by the queue strip and by whoever edits one of its messages. The page's `view/dock/paused.ts`. Pure.
"""

from palaver.schema.view import State, TurnSummary
from palaver.tui.people import People
from palaver.tui.text import docks
from palaver.tui.text.safe import visible


def find_stopped_turn(state: State) -> TurnSummary | None:
    """The turn that a person stopped, as long as nothing runs after it."""
    last = state.last_turn
    return last if state.turn is None and last is not None and last.stopped == "user" else None


def is_paused(state: State, edited: str | None = None) -> bool:
    """One by one messages are held while they are edited. More at a time, or one after a stop, wait for a person's word.

    What is `edited` here is held by the edit, and says so itself.
    """
    held = sum(item.held for item in state.queue if item.id != edited)
    return held > (0 if find_stopped_turn(state) else 1)


def say_paused(state: State, people: People) -> str:
    stopped = find_stopped_turn(state)
    if stopped is None:
        return docks.Queue.HELD_ALL
    by = stopped.by
    if by is None or people.is_here(by):
        return docks.Queue.PAUSED
    return docks.Queue.paused_by(visible(by.user or "")) if people.is_anothers(by) else docks.Queue.PAUSED_ELSEWHERE
