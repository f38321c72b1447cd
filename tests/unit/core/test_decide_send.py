"""Sending a message: a turn at once at rest, a place in the queue otherwise, and the bounds of both."""

import pytest
from msgspec.structs import replace

from palaver.core.decide.admission import admission
from palaver.core.decide.decide import decide
from palaver.core.decide.queue import QUEUE_ITEMS
from palaver.core.next import boundary_messages, next_turn
from palaver.schema.commands import EditQueued, SendMessage
from palaver.schema.content import ImagePart, ImageUrl, TextPart
from palaver.schema.events import (
    ConversationDeleted,
    ConversationUpdated,
    MessageAdded,
    QueueAdded,
    QueueEdited,
    RequestResolved,
    ToolFinished,
    TurnStarted,
)
from palaver.schema.view import State
from tests.unit.core.stage import (
    ADA,
    after,
    asked,
    at_rest,
    called,
    events,
    facts,
    finished,
    kinds,
    queued,
    refusal,
    waiting_after_restart,
    wondered,
    working,
)


def test_send_at_rest_begins_its_turn_in_the_same_step() -> None:
    decision = events(after(), SendMessage(content="Dig\nthe bed", mode="plan"))
    assert kinds(decision) == ["ConversationUpdated", "MessageAdded", "TurnStarted"]
    _, added, started = decision
    assert isinstance(added, MessageAdded)
    assert isinstance(started, TurnStarted)
    assert added.turn == started.turn
    assert started.trigger.messages == (added.message,)
    assert (started.agent, started.backend, started.model, started.mode) == ("default", "scripted", "demo", "plan")
    assert added.origin == ADA


def test_send_while_a_turn_runs_is_queued_with_all_it_asks_for() -> None:
    command = SendMessage(content="Later", delivery="boundary", priority=True, merge=True, agent="other", mode="plan")
    added = events(working(), command)[-1]
    assert isinstance(added, QueueAdded)
    assert (added.delivery, added.priority, added.merge) == ("boundary", True, True)
    assert (added.agent, added.mode) == ("other", "plan")


def test_send_at_rest_with_only_held_messages_does_not_wait_for_them() -> None:
    state = after(*asked(), queued("a"), finished())
    held = after(QueueEdited(item="a", version=2, held=True), state=state)
    assert kinds(decide(held, SendMessage(content="Now"), facts())) == [
        "ConversationUpdated",
        "MessageAdded",
        "TurnStarted",
    ]


@pytest.mark.parametrize("state", [at_rest(), working(), waiting_after_restart()], ids=lambda state: state.status)
def test_held_message_waits_until_it_is_let_go_also_at_rest(state: State) -> None:
    command = SendMessage(content="Not yet", delivery="boundary", held=True)
    decision = events(state, command)
    assert kinds(decision)[-2:] == ["QueueAdded", "QueueEdited"]
    assert admission(state, command).word == "queues"
    waits = after(*decision, state=state)
    assert [(item.id, item.held, item.delivery) for item in waits.queue] == [("new-1", True, "boundary")]
    assert [request.status for request in waits.requests] == [request.status for request in state.requests]
    assert next_turn(waits, facts()) == []
    assert boundary_messages(waits) == []
    released = after(*events(waits, EditQueued(item="new-1", held=False)), state=waits)
    assert bool(next_turn(released, facts())) is (state.turn is None)


def test_held_message_finds_no_room_in_a_full_queue_at_rest() -> None:
    held = SendMessage(content="More", held=True)
    full = after(*(event for at in range(QUEUE_ITEMS) for event in (queued(f"i{at}"), _held(f"i{at}"))))
    assert refusal(full, held).code == "busy"
    assert kinds(decide(full, replace(held, held=False), facts()))[-1] == "TurnStarted"


def _held(item: str) -> QueueEdited:
    return QueueEdited(item=item, version=2, held=True)


def test_send_at_rest_behind_a_ready_queue_keeps_the_order() -> None:
    state = after(*asked(), queued("a"), finished())
    assert kinds(decide(state, SendMessage(content="Second"), facts()))[-1] == "QueueAdded"


def test_send_supersedes_what_an_ended_turn_left_waiting() -> None:
    decision = events(waiting_after_restart(), SendMessage(content="Never mind"))
    result, resolved = decision[0], decision[1]
    assert isinstance(result, ToolFinished)
    assert isinstance(resolved, RequestResolved)
    assert (result.call, result.ok, result.effect) == ("a", False, "none")
    assert (resolved.request, resolved.status) == ("q", "superseded")
    # The turn that asked is over: nothing of it may appear any more.
    assert {event.turn for event in decision} <= {None, "new-2"}


def test_send_does_not_touch_requests_of_the_running_turn() -> None:
    state = after(*asked(), *called("a"), wondered("q", "a"))
    assert kinds(decide(state, SendMessage(content="And this"), facts()))[-1] == "QueueAdded"


def test_send_to_a_deleted_conversation_is_refused_as_gone() -> None:
    assert refusal(after(ConversationDeleted()), SendMessage(content="Hello?")).code == "gone"


# -- the title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("\n  Dig the bed  \nand more", "Dig the bed"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
    ],
)
def test_send_titles_a_conversation_by_its_first_words(text: str, title: str) -> None:
    updated = events(after(), SendMessage(content=text))[0]
    assert isinstance(updated, ConversationUpdated)
    assert (updated.title, updated.title_source) == (title, "auto")


def test_send_titles_a_conversation_once() -> None:
    titled = after(ConversationUpdated(title="First", title_source="auto"))
    assert kinds(decide(titled, SendMessage(content="Second"), facts())) == ["MessageAdded", "TurnStarted"]


def test_send_of_an_image_alone_leaves_the_title_for_later() -> None:
    image = ImagePart(image_url=ImageUrl(url="/api/blobs/x"))
    assert kinds(decide(after(), SendMessage(content=(image,)), facts())) == ["MessageAdded", "TurnStarted"]


# -- bounds


@pytest.mark.parametrize("content", ["", " \n\t", (), (TextPart(text=" "), TextPart(text=""))])
def test_send_of_nothing_is_refused(content: str | tuple[TextPart, ...]) -> None:
    assert refusal(after(), SendMessage(content=content)).code == "invalid"


def test_send_takes_a_mebibyte_and_refuses_a_byte_more() -> None:
    # Counted in bytes: three a sign here.
    fits = "薔" * 349_525 + "x"
    assert len(fits.encode()) == 1 << 20
    assert "TurnStarted" in kinds(decide(at_rest(), SendMessage(content=fits), facts()))
    refused = refusal(at_rest(), SendMessage(content=fits + "x"))
    assert refused.code == "too_large"
    assert refused.details == {"limit_bytes": 1 << 20, "size_bytes": (1 << 20) + 1}


def test_send_takes_ten_attachments_and_refuses_eleven() -> None:
    images = tuple(ImagePart(image_url=ImageUrl(url=f"/api/blobs/{number}")) for number in range(11))
    assert "TurnStarted" in kinds(decide(at_rest(), SendMessage(content=images[:10]), facts()))
    assert refusal(at_rest(), SendMessage(content=images)).code == "too_large"


def test_queue_takes_fifty_messages_and_refuses_the_next() -> None:
    almost = after(*asked(), *(queued(f"i{number}") for number in range(49)))
    full = after(queued("i49"), state=almost)
    assert kinds(decide(almost, SendMessage(content="50"), facts()))[-1] == "QueueAdded"
    refused = refusal(full, SendMessage(content="51"))
    assert refused.code == "busy"
    assert refused.details == {"queue_size": 50}


def test_queue_takes_a_mebibyte_and_refuses_a_byte_more() -> None:
    big = after(*asked(), queued("a", content=(TextPart(text="x" * ((1 << 20) - 3)),)))
    assert kinds(decide(big, SendMessage(content="xyz"), facts()))[-1] == "QueueAdded"
    assert refusal(big, SendMessage(content="xyzz")).code == "busy"


def test_queued_message_is_delivered_once_and_under_its_id() -> None:
    state = after(*asked(), *events(working(), SendMessage(content="Later", client_request_id="r")), finished())
    begun = next_turn(state, facts())
    assert kinds(begun) == ["QueueRemoved", "MessageAdded", "TurnStarted"]
    running = after(*begun, state=state)
    assert running.queue == ()
    assert next_turn(running, facts()) == []
    delivered = running.messages[-1]
    assert (delivered.id, delivered.client_request_id) == (state.queue[0].id, "r")
