"""What a log tells of exchanges between agents, for the tests that look at one."""

from typing import Any

from palaver.core.exchanges import find
from palaver.schema.events import ExchangeReturned, TurnStarted
from palaver.schema.view import State

Events = list[Any]


def of(events: Events, kind: type[Any]) -> Events:
    return [event for event in events if isinstance(event, kind)]


def callbacks(events: Events) -> Events:
    return [event for event in of(events, TurnStarted) if event.trigger.kind == "callback"]


def out(state: State, exchange: str = "x") -> str:
    found = find(state, exchange, "out")
    assert found is not None
    return found.status


def statuses(events: Events) -> list[str]:
    return [event.status for event in of(events, ExchangeReturned)]


def is_answered(state: State) -> bool:
    return any(known.direction == "in" and known.finished_at for known in state.exchanges)
