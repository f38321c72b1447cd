"""What runs next: which queued messages begin a turn together, which join the running one, and which must wait."""

from palaver.core.next import boundary_items, boundary_messages, next_items, next_turn
from palaver.schema.content import as_content
from palaver.schema.events import (
    ConversationDeleted,
    KnownEvent,
    MessageAdded,
    QueueEdited,
    QueueRemoved,
    TurnStarted,
)
from palaver.schema.view import State
from tests.unit.core.stage import ADA, after, asked, called, facts, finished, kinds, queued, stopped, wondered


def _resting(*items: KnownEvent) -> State:
    return after(*asked(), *items, finished())


def _next(state: State) -> list[str]:
    return [item.id for item in next_items(state)]


def test_next_is_nothing_while_a_turn_runs_or_the_queue_is_empty() -> None:
    assert _next(after(*asked(), queued("a"))) == []
    assert _next(_resting()) == []
    assert next_turn(_resting(), facts()) == []


def test_next_is_nothing_once_deleted() -> None:
    assert _next(_resting(queued("a"), ConversationDeleted())) == []


def test_next_takes_one_message_a_turn() -> None:
    assert _next(_resting(queued("a"), queued("b"))) == ["a"]


def test_next_takes_messages_that_agreed_to_share_a_turn_up_to_the_first_that_did_not() -> None:
    state = _resting(queued("a", merge=True), queued("b", merge=True), queued("c"), queued("d", merge=True))
    assert _next(state) == ["a", "b"]
    assert _next(_resting(queued("a"), queued("b", merge=True))) == ["a"]


def test_next_passes_over_held_messages() -> None:
    held = QueueEdited(item="a", version=2, held=True)
    state = _resting(queued("a"), queued("b", merge=True), queued("c", merge=True), held)
    assert _next(state) == ["b", "c"]
    assert _next(_resting(queued("a"), held)) == []


def test_next_takes_boundary_messages_together_when_no_turn_came_to_join() -> None:
    state = _resting(queued("a", delivery="boundary"), queued("b"), queued("c", delivery="boundary"))
    assert _next(state) == ["a", "c"]


def test_next_takes_priority_messages_first_and_together() -> None:
    assert _next(_resting(queued("a"), queued("p", priority=True), queued("q", priority=True))) == ["p", "q"]


def test_next_never_mixes_agents_or_modes() -> None:
    merging = [queued("a", merge=True), queued("b", merge=True, mode="plan"), queued("c", merge=True)]
    assert _next(_resting(*merging)) == ["a"]
    boundary = [
        queued("a", delivery="boundary", agent="x"),
        queued("b", delivery="boundary", agent="y"),
        queued("c", delivery="boundary", agent="x", mode="plan"),
        queued("d", delivery="boundary", agent="x"),
    ]
    assert _next(_resting(*boundary)) == ["a", "d"]


def test_next_turn_delivers_each_message_and_then_begins() -> None:
    state = _resting(
        queued("a", merge=True, mode="plan", origin=ADA, client_request_id="r", body_hash="h"),
        queued("b", merge=True, mode="plan"),
    )
    events = next_turn(state, facts())
    assert kinds(events) == ["QueueRemoved", "MessageAdded", "QueueRemoved", "MessageAdded", "TurnStarted"]
    removed, added, *_, started = events
    assert isinstance(removed, QueueRemoved)
    assert isinstance(added, MessageAdded)
    assert isinstance(started, TurnStarted)
    assert (removed.item, removed.reason) == ("a", "delivered")
    assert (added.message, added.item, added.content, added.origin) == ("a", "a", as_content("a"), ADA)
    # Its sender knows it again by its id; the command itself was answered when it was queued.
    assert (added.client_request_id, added.body_hash) == ("r", None)
    assert (started.trigger.messages, started.mode) == (("a", "b"), "plan")
    assert {event.turn for event in events} == {started.turn}


def test_next_turn_supersedes_what_a_restart_left_waiting() -> None:
    state = after(*asked(resumable=True), *called("a"), wondered("q", "a"), queued("x"), stopped())
    assert kinds(next_turn(state, facts()))[:2] == ["ToolFinished", "RequestResolved"]


def test_boundary_delivers_into_the_running_turn_in_order() -> None:
    state = after(
        *asked(),
        queued("a"),
        queued("b", delivery="boundary"),
        queued("c", delivery="boundary"),
        queued("p", priority=True),
    )
    events = boundary_messages(state)
    assert [event.message for event in events if isinstance(event, MessageAdded)] == ["p", "b", "c"]
    assert {event.turn for event in events} == {"t1"}
    delivered = after(*events, state=state)
    assert [item.id for item in delivered.queue] == ["a"]
    assert boundary_messages(delivered) == []


def test_boundary_leaves_what_is_held_or_meant_for_another_agent_or_mode() -> None:
    state = after(
        *asked(mode="plan"),
        queued("held", delivery="boundary"),
        QueueEdited(item="held", version=2, held=True),
        queued("other agent", delivery="boundary", agent="other"),
        queued("other mode", delivery="boundary", mode="auto"),
        queued("same", delivery="boundary", agent="default", mode="plan"),
        queued("any", delivery="boundary"),
    )
    assert [item.id for item in boundary_items(state)] == ["same", "any"]


def test_boundary_without_a_turn_delivers_nothing() -> None:
    assert boundary_messages(_resting(queued("a", delivery="boundary"))) == []
