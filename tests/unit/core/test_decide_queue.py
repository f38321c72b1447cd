"""Changing what waits: edit, hold, move, prefer and remove queued messages, until they are delivered."""

from typing import Any

import pytest

from palaver.core.decide.decide import decide
from palaver.core.next import next_items
from palaver.schema.commands import Command, EditQueued, RemoveQueued
from palaver.schema.content import TextPart, as_content
from palaver.schema.events import QueueEdited, QueueRemoved
from palaver.schema.view import State
from tests.unit.core.stage import after, already, asked, events, facts, kinds, queued, refusal, stopped


@pytest.fixture
def state() -> State:
    return after(*asked(), queued("a"), queued("b"), queued("p", priority=True))


def _order(state: State, *commands: Command) -> list[str]:
    for command in commands:
        state = after(*events(state, command), state=state)
    return [item.id for item in state.queue]


def test_edit_changes_the_words_and_counts_the_version(state: State) -> None:
    edited = events(state, EditQueued(item="a", content="better"))[0]
    assert isinstance(edited, QueueEdited)
    assert (edited.version, edited.content) == (2, as_content("better"))
    again = after(edited, state=state)
    assert [
        event.version for event in events(again, EditQueued(item="a", held=True)) if isinstance(event, QueueEdited)
    ] == [3]


def test_edit_moves_before_another_or_to_the_end(state: State) -> None:
    assert _order(state, EditQueued(item="b", before="a")) == ["p", "b", "a"]
    assert _order(state, EditQueued(item="b", before="p")) == ["b", "p", "a"]
    assert _order(state, EditQueued(item="a", before="")) == ["p", "b", "a"]
    assert _order(state, EditQueued(item="p", before="")) == ["a", "b", "p"]


def test_edit_of_priority_moves_to_its_kind(state: State) -> None:
    assert _order(state, EditQueued(item="b", priority=True)) == ["p", "b", "a"]
    assert _order(state, EditQueued(item="p", priority=False)) == ["a", "b", "p"]


def test_priority_goes_behind_its_kind_also_where_order_was_changed_by_hand(state: State) -> None:
    moved = after(*events(state, EditQueued(item="a", before="p")), queued("q", priority=True), state=state)
    assert [item.id for item in moved.queue] == ["a", "p", "q", "b"]


@pytest.mark.parametrize("command", [EditQueued(item="a"), EditQueued(item="a", before="a")])
def test_edit_that_changes_nothing_leaves_no_event(state: State, command: EditQueued) -> None:
    assert already(state, command).id == "a"


@pytest.mark.parametrize(
    "command",
    [
        EditQueued(item="gone", held=True),
        EditQueued(item="a", before="gone"),
        RemoveQueued(item="gone"),
        RemoveQueued(item="m1"),
    ],
)
def test_change_of_what_is_not_queued_is_refused(state: State, command: Command) -> None:
    assert refusal(state, command).code == "not_found"


def test_edit_to_nothing_is_refused(state: State) -> None:
    assert refusal(state, EditQueued(item="a", content=" ")).code == "invalid"


def test_edit_cannot_outgrow_the_queue() -> None:
    half = (TextPart(text="x" * (1 << 19)),)
    full = after(*asked(), queued("a", content=half), queued("b", content=half))
    assert kinds(decide(full, EditQueued(item="a", content="y" * (1 << 19)), facts())) == ["QueueEdited"]
    assert refusal(full, EditQueued(item="a", content="y" * ((1 << 19) + 1))).code == "busy"
    assert refusal(full, EditQueued(item="a", content="y" * ((1 << 20) + 1))).code == "too_large"


def test_all_are_held_and_let_go_together_in_their_order(state: State) -> None:
    held = after(*events(state, EditQueued(item="b", held=True)), state=state)
    paused = events(held, EditQueued(held=True))
    assert [(event.item, event.version) for event in paused if isinstance(event, QueueEdited)] == [("p", 2), ("a", 2)]
    state = after(*paused, stopped(), state=held)
    assert (next_items(state), state.turn) == ([], None)
    released = after(*events(state, EditQueued(held=False)), state=state)
    assert [(item.id, item.held) for item in released.queue] == [("p", False), ("a", False), ("b", False)]
    assert [item.id for item in next_items(released)] == ["p"]


def test_messages_that_share_a_turn_still_do_when_all_are_let_go() -> None:
    state = after(queued("a", merge=True), queued("b", merge=True))
    paused = after(*events(state, EditQueued(held=True)), state=state)
    released = after(*events(paused, EditQueued(held=False)), state=paused)
    assert [item.id for item in next_items(released)] == ["a", "b"]


@pytest.mark.parametrize("held", [None, False])
def test_all_that_are_as_asked_stay_without_an_event(state: State, held: bool | None) -> None:
    assert already(state, EditQueued(held=held)).note == "unchanged"


@pytest.mark.parametrize("change", [{"content": "x"}, {"priority": True}, {"before": ""}])
def test_change_of_all_but_holding_is_refused(state: State, change: dict[str, Any]) -> None:
    assert refusal(state, EditQueued(held=True, **change)).code == "invalid"


def test_remove_withdraws_a_message_for_good(state: State) -> None:
    removed = events(state, RemoveQueued(item="a"))[0]
    assert isinstance(removed, QueueRemoved)
    assert removed.reason == "cancelled"
    assert refusal(after(removed, state=state), RemoveQueued(item="a")).code == "not_found"
