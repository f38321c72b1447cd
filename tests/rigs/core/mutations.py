"""Bugs that someone might make in the core, one at a time, each with the promise it breaks.

Used by `test_core_machine.py`: a rig that does not notice these would not notice the next one either. A mutation is given
the real function and returns the broken one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from palaver.core import exchanges, next, settle
from palaver.core.decide import decide, restore
from palaver.core.decide import requests as resolving
from palaver.core.decide import turn as stopping
from palaver.core.fold import blocks, evolve, requests
from palaver.schema.commands import Command
from palaver.schema.events import (
    Event,
    KnownEvent,
    MessageAdded,
    MessageRemoved,
    RequestOpened,
    RequestResolved,
    TextDelta,
    ToolFinished,
    TurnInterrupted,
    TurnStatus,
)
from palaver.schema.view import Block, QueueItem, Request, State, TextBlock, ToolBlock

Real = Callable[..., Any]

_DRAFT: Any = vars(evolve)["_Draft"]


@dataclass(frozen=True, slots=True)
class Mutation:
    name: str
    where: Any
    attribute: str
    broken: Callable[[Real], Real]
    breaks: str
    """The promise, as the rig names it."""


def _always(value: object) -> Real:
    def broken(*_: object) -> object:
        return value

    return broken


def _a_status_is_not_counted(real: Real) -> Real:
    def apply(draft: Any, event: Event) -> None:
        if not isinstance(event, TurnStatus):
            real(draft, event)

    return apply


def _status_lags_behind(real: Real) -> Real:
    """The status depends on where a batch ends: one by one and all at once differ."""

    def status_of(state: State) -> str:
        return state.status if state.seq % 2 else real(state)

    return status_of


def _late_words_count(real: Real) -> Real:
    def text_grown(known: Block | None, event: TextDelta) -> Block:
        if isinstance(known, TextBlock):
            return replace(known, text=known.text + event.text)
        grown: Block = real(known, event)
        return grown

    return text_grown


def _every_body_looks_the_same(real: Real) -> Real:
    return _always("same")


def _commands_leave_no_mark(real: Real) -> Real:
    def stamped(events: list[KnownEvent], *_: object) -> list[KnownEvent]:
        return events

    return stamped


def _delivered_and_still_queued(real: Real) -> Real:
    def delivery(item: QueueItem, turn: str) -> list[KnownEvent]:
        return [event for event in real(item, turn) if isinstance(event, MessageAdded)]

    return delivery


def _boundary_messages_wait_for_ever(real: Real) -> Real:
    def next_items(state: State) -> list[QueueItem]:
        return [item for item in real(state) if item.delivery == "turn" and not item.priority]

    return next_items


def _held_messages_slip_into_a_turn(real: Real) -> Real:
    def boundary_items(state: State) -> list[QueueItem]:
        items: list[QueueItem] = real(replace(state, queue=tuple(replace(item, held=False) for item in state.queue)))
        return items

    return boundary_items


def _a_stop_holds_only_the_first(real: Real) -> Real:
    def all_held(state: State, held: bool) -> list[KnownEvent]:
        edits: list[KnownEvent] = real(state, held)
        return edits[:1] if held else edits

    return all_held


def _commands_join_a_running_turn(real: Real) -> Real:
    def joins(item: QueueItem) -> bool:
        return item.command is not None or bool(real(item))

    return joins


def _history_changes_under_a_running_agent(real: Real) -> Real:
    """The table lets through what it refuses while the agent works."""

    def admission(state: State, command: Command) -> Any:
        return real(replace(state, turn=None, status="idle"), command)

    return admission


def _turns_end_with_calls_open(real: Real) -> Real:
    def finish(*arguments: object, **named: object) -> list[KnownEvent]:
        return [event for event in real(*arguments, **named) if not isinstance(event, ToolFinished)]

    return finish


def _calls_are_left_open(real: Real) -> Real:
    return _always(())


def _restored_calls_are_left_open(real: Real) -> Real:
    def at_rest(block: Block, new_id: object) -> Block:
        return block

    return at_rest


def _calls_start_over(real: Real) -> Real:
    """A request about a running call sends it back to waiting, so that it would be started again."""

    def waiting(tool: ToolBlock, event: RequestOpened) -> ToolBlock:
        return replace(tool, status="waiting", request=event.request)

    return waiting


def _every_request_looks_open(real: Real) -> Real:
    def find_request(state: State, request: str) -> Request | None:
        known: Request | None = real(state, request)
        return replace(known, status="open") if known else None

    return find_request


def _old_requests_leave_the_view(real: Real) -> Real:
    def bounded(requests: list[Request]) -> tuple[Request, ...]:
        return tuple(real(requests)[-2:])

    return bounded


def _a_restart_forgets_who_waits(real: Real) -> Real:
    return _always(set[str]())


def _interruption_first(real: Real) -> Real:
    def settled(*arguments: Any, **named: Any) -> list[KnownEvent]:
        return sorted(real(*arguments, **named), key=lambda event: not isinstance(event, TurnInterrupted))

    return settled


def _requests_before_results(real: Real) -> Real:
    def closed(*arguments: Any) -> list[KnownEvent]:
        return sorted(real(*arguments), key=lambda event: not isinstance(event, RequestResolved))

    return closed


def _requests_end_in_the_turn_that_asked(real: Real) -> Real:
    def closed(state: State, *arguments: Any) -> Sequence[KnownEvent]:
        asked_in = {known.id: known.turn for known in state.requests}
        return [replace(event, turn=asked_in[event.request]) for event in real(state, *arguments)]

    return closed


def _empty_answers_stay(real: Real) -> Real:
    def close_answers(*arguments: object) -> list[KnownEvent]:
        return [event for event in real(*arguments) if not isinstance(event, MessageRemoved)]

    return close_answers


def _turns_end_without_an_answer(real: Real) -> Real:
    return _always([])


MUTATIONS = (
    Mutation("a status is not counted", _DRAFT, "apply", _a_status_is_not_counted, "I1"),
    Mutation("the status lags behind", evolve, "status_of", _status_lags_behind, "I4"),
    Mutation("late words count", blocks, "text_grown", _late_words_count, "I4"),
    Mutation("every body looks the same", decide, "body_hash", _every_body_looks_the_same, "I9"),
    Mutation("commands leave no mark", decide, "_stamp", _commands_leave_no_mark, "I9"),
    Mutation("delivered and still queued", next, "delivery", _delivered_and_still_queued, "I10|I11"),
    Mutation("boundary messages wait for ever", next, "next_items", _boundary_messages_wait_for_ever, "I11"),
    Mutation("held messages slip into a turn", next, "boundary_items", _held_messages_slip_into_a_turn, "I11"),
    Mutation("a stop holds only the first", stopping, "all_held", _a_stop_holds_only_the_first, "I11"),
    Mutation("commands join a running turn", next, "_joins_a_running_turn", _commands_join_a_running_turn, "I10"),
    Mutation("history changes under an agent", decide, "admission", _history_changes_under_a_running_agent, "I12"),
    Mutation("turns end with calls open", settle, "finish", _turns_end_with_calls_open, "I13"),
    Mutation("calls are left open", settle, "_close_tools", _calls_are_left_open, "I13"),
    Mutation("restored calls are left open", restore, "_at_rest", _restored_calls_are_left_open, "I13"),
    Mutation("calls start over", blocks, "waiting", _calls_start_over, "I13|I14"),
    Mutation("every request looks open", resolving, "find_request", _every_request_looks_open, "I16"),
    Mutation("old requests leave the view", requests, "keep_latest", _old_requests_leave_the_view, "I17"),
    Mutation("a restart forgets who waits", settle, "_answerable", _a_restart_forgets_who_waits, "I17"),
    Mutation("the interruption comes first", settle, "settle", _interruption_first, "I20|settle"),
    Mutation("requests end before results", settle, "_close", _requests_before_results, "settle"),
    Mutation("requests end in the old turn", settle, "_close_requests", _requests_end_in_the_turn_that_asked, "I20"),
    Mutation("turns end without an answer", exchanges, "return_answer", _turns_end_without_an_answer, "exchange"),
    Mutation("empty answers stay", settle, "_close_answers", _empty_answers_stay, "settle"),
)
