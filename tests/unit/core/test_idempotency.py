"""One client request id, one effect, one answer: what the events carry, and what is read off them again."""

import pytest
from msgspec.structs import replace

from palaver.core.decide.decide import acceptance_of, body_hash, decide
from palaver.core.next import next_turn
from palaver.schema.commands import (
    Accepted,
    Command,
    DeleteConversation,
    EditMessage,
    EditQueued,
    Interrupt,
    Regenerate,
    RemoveMessage,
    RemoveQueued,
    ResolveRequest,
    RetryFrom,
    SendMessage,
    SetDraft,
    SetParams,
)
from palaver.schema.content import TextPart
from palaver.schema.events import (
    AnswerStarted,
    KnownEvent,
    MessageAdded,
    TurnStatus,
    UnknownEvent,
    decode_event,
    encode_event,
)
from palaver.schema.view import State
from tests.unit.core.stage import (
    after,
    asked,
    at_rest,
    called,
    events,
    facts,
    finished,
    queued,
    waiting_after_restart,
    wondered,
    working,
)


def _numbered(decision: list[KnownEvent], first: int) -> list[KnownEvent]:
    return [replace(event, seq=seq, conversation="c") for seq, event in enumerate(decision, first)]


def _stored(decision: list[KnownEvent]) -> list[KnownEvent]:
    """As a restarted server reads them."""
    read = [decode_event(encode_event(event)) for event in decision]
    return [event for event in read if not isinstance(event, UnknownEvent)]


QUEUED = after(*asked(), queued("a"))
SILENT = after(*asked(), AnswerStarted(turn="t1", message="m2"))
PAUSED = after(*asked(), *called("a"), wondered("q", "a"))


@pytest.mark.parametrize(
    ("state", "command", "expected"),
    [
        (after(), SendMessage(content="x"), Accepted(conversation="c", seq=13, id="new-1", turn="new-2")),
        (working(), SendMessage(content="x"), Accepted(conversation="c", seq=12, id="new-1", queued=True)),
        (at_rest(), SendMessage(content="x", held=True), Accepted(conversation="c", seq=13, id="new-1", queued=True)),
        (QUEUED, EditQueued(item="a", held=True), Accepted(conversation="c", seq=11, id="a")),
        (QUEUED, RemoveQueued(item="a"), Accepted(conversation="c", seq=11, id="a")),
        (PAUSED, Interrupt(), Accepted(conversation="c", seq=13, turn="t1")),
        (SILENT, Interrupt(), Accepted(conversation="c", seq=13, turn="t1")),
        (PAUSED, ResolveRequest(request="q", verdict="deny"), Accepted(conversation="c", seq=11, id="q")),
        (
            waiting_after_restart(),
            ResolveRequest(request="q", verdict="allow"),
            Accepted(conversation="c", seq=12, id="q", turn="new-1"),
        ),
        (waiting_after_restart(), Regenerate(), Accepted(conversation="c", seq=14, turn="new-1")),
        (at_rest(), EditMessage(message="m1", content="x"), Accepted(conversation="c", seq=11, id="m1")),
        (at_rest(), RemoveMessage(message="m2"), Accepted(conversation="c", seq=11, id="m2")),
        (at_rest(), RetryFrom(index=0, content="x"), Accepted(conversation="c", seq=13, id="new-1", turn="new-2")),
        (at_rest(), SetParams(patch={"a": 1}), Accepted(conversation="c", seq=11)),
        (QUEUED, DeleteConversation(), Accepted(conversation="c", seq=13, turn="t1")),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, State) else value.status,
)
def test_answer_is_the_same_first_and_on_every_repeat(state: State, command: Command, expected: Accepted) -> None:
    command = replace(command, client_request_id="r")
    made = _numbered(events(state, command), 11)
    assert acceptance_of("c", made) == expected
    assert acceptance_of("c", _stored(made), "r") == expected
    # Others' events in the same commit do not change it.
    before, behind = replace(TurnStatus(status="working"), seq=10), replace(made[-1], client_request_id="s", seq=99)
    assert acceptance_of("c", [before, *_stored(made), behind], "r") == expected


def test_answer_to_a_queued_message_is_the_same_once_its_turn_began_in_the_same_commit() -> None:
    resting = after(*asked(), queued("a", merge=True), finished())
    made = _numbered(events(resting, SendMessage(content="x", client_request_id="r", merge=True)), 11)
    begun = after(*made, state=resting)
    following = _numbered(next_turn(begun, facts()), made[-1].seq + 1)
    assert [event.client_request_id for event in following if isinstance(event, MessageAdded)] == [None, "r"]
    assert acceptance_of("c", [*made, *following], "r") == acceptance_of("c", made)


def test_every_event_of_a_command_carries_its_id_its_hash_and_who_asked() -> None:
    command = SendMessage(content="x", client_request_id="r")
    made = events(waiting_after_restart(), command)
    assert len(made) > 3
    assert {event.client_request_id for event in made} == {"r"}
    assert {event.body_hash for event in made} == {body_hash(command)}
    assert all(event.origin == facts().origin for event in made)


def test_command_without_an_id_claims_nothing() -> None:
    made = events(after(), SendMessage(content="x"))
    assert {(event.client_request_id, event.body_hash) for event in made} == {(None, None)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SendMessage(content="x"), SendMessage(content=(TextPart(text="x"),))),
        (SendMessage(content="x"), SendMessage(content="x", client_request_id="r", delivery="turn")),
        (SetParams(patch={"a": 1, "b": 2}), SetParams(patch={"b": 2, "a": 1})),
        (EditQueued(item="a", content="x"), EditQueued(item="a", content=(TextPart(text="x"),))),
        (RetryFrom(index=0, content="x"), RetryFrom(index=0, content=(TextPart(text="x"),))),
    ],
)
def test_hash_is_the_same_for_the_same_meaning(one: Command, other: Command) -> None:
    assert body_hash(one) == body_hash(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SendMessage(content="x"), SendMessage(content="y")),
        (SendMessage(content="x"), SendMessage(content="x", priority=True)),
        (SendMessage(content="x"), SetDraft(text="x")),
        (SetParams(patch={"a": None}), SetParams(patch={})),
        (ResolveRequest(request="q", verdict="allow"), ResolveRequest(request="q", verdict="deny")),
    ],
)
def test_hash_differs_for_another_meaning(one: Command, other: Command) -> None:
    assert body_hash(one) != body_hash(other)


def test_hash_does_not_change_from_release_to_release() -> None:
    # A repeat may come after an upgrade: what was hashed then must hash to the same now.
    assert body_hash(SendMessage(content="x")) == "edd8c39d9813dd2235b195b434c571d3"


def test_refusal_burns_no_id() -> None:
    refused = decide(after(), SendMessage(content="", client_request_id="r"), facts())
    assert not isinstance(refused, list)
    assert events(after(), SendMessage(content="x", client_request_id="r"))
