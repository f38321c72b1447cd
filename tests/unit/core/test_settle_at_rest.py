"""What a restart left waiting, closed at rest: by new input, by a stop, or because nobody answered."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from palaver.core.settle import expire, supersede, withdraw
from palaver.core.state import find_request, misses_a_call, shorten
from palaver.schema.events import (
    KnownEvent,
    MessageAdded,
    RequestOpened,
    RequestResolved,
    ToolFinished,
    TurnInterrupted,
)
from palaver.schema.view import State
from tests.unit.core.stage import after, asked, at_rest, called, kinds, tool, waiting_after_restart, wondered


@pytest.mark.parametrize(("close", "status"), [(supersede, "superseded"), (withdraw, "cancelled")])
def test_what_a_restart_left_is_closed_outside_of_any_turn(
    close: Callable[[State], list[KnownEvent]], status: str
) -> None:
    result, resolved = close(waiting_after_restart())
    assert isinstance(result, ToolFinished)
    assert isinstance(resolved, RequestResolved)
    assert (result.turn, resolved.turn) == (None, None)
    assert (result.call, resolved.status) == ("a", status)
    assert close(at_rest()) == []


def test_expiry_while_the_turn_waits_is_a_denial_for_the_turn_to_act_on() -> None:
    state = after(*asked(), *called("a"), wondered("q", "a"))
    request = find_request(state, "q")
    assert request is not None
    (resolved,) = expire(state, request)
    assert isinstance(resolved, RequestResolved)
    assert (resolved.status, resolved.verdict, resolved.turn) == ("expired", "deny", "t1")


def test_expiry_at_rest_gives_the_call_its_result() -> None:
    state = waiting_after_restart()
    request = find_request(state, "q")
    assert request is not None
    events = expire(state, request)
    assert kinds(events) == ["ToolFinished", "RequestResolved"]
    assert {event.turn for event in events} == {None}
    expired = after(*events, state=state)
    assert (expired.status, tool(expired, "a").status) == ("idle", "error")


def test_expiry_at_rest_of_a_question_without_a_call_only_ends_it() -> None:
    state = after(
        *asked(resumable=True),
        RequestOpened(turn="t1", request="q", kind="question"),
        TurnInterrupted(turn="t1", reason="restart"),
    )
    request = find_request(state, "q")
    assert request is not None
    assert kinds(expire(state, request)) == ["RequestResolved"]


def test_call_that_waits_is_never_forgotten_whatever_was_said_after_it() -> None:
    state = waiting_after_restart()
    for number in range(5):
        state = after(MessageAdded(message=f"p{number}", role="assistant"), state=state)
    short = shorten(state, 2)
    assert [message.id for message in short.messages] == ["m2", "p0", "p1", "p2", "p3", "p4"]
    assert short.offset == 1
    assert kinds(supersede(short)) == ["ToolFinished", "RequestResolved"]
    closed = after(*supersede(short), state=short)
    assert [message.id for message in shorten(closed, 2).messages] == ["p3", "p4"]
    assert (misses_a_call(short), misses_a_call(replace(short, messages=short.messages[1:], offset=2))) == (False, True)
