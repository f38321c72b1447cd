"""Commands that change the history and wait for the agent: queued in order, carried out at rest, left out with a reason."""

import dataclasses
from itertools import count

import msgspec
import pytest
from msgspec.structs import replace

from palaver.core.decide.decide import acceptance_of, body_hash, decide
from palaver.core.decide.decision import Refusal
from palaver.core.decide.facts import Facts
from palaver.core.decide.next_step import continue_queue
from palaver.core.next import boundary_items, next_items
from palaver.core.queue import words_of
from palaver.core.settle import settle
from palaver.schema.commands import (
    EditMessage,
    EditQueued,
    Fill,
    Order,
    Regenerate,
    RemoveMessage,
    RemoveQueued,
    RestoreMessages,
    RetryFrom,
    Rewriting,
    SendMessage,
    TruncateMessages,
)
from palaver.schema.content import as_content
from palaver.schema.events import ConversationUpdated, KnownEvent, MessageAdded, QueueAdded, QueueRemoved, ToolFinished
from palaver.schema.view import Message, Parent, State, TextBlock
from tests.unit.core.stage import NOW_MS, after, asked, called, facts, finished, kinds, said, stopped, texts, wondered

_numbers = count(1)


def told() -> Facts:
    """With ids that no two commands share."""
    return dataclasses.replace(facts(), new_id=lambda: f"n{next(_numbers)}")


def done(state: State, command: Order) -> State:
    decision = decide(state, command, told())
    assert isinstance(decision, list), decision
    return after(*decision, state=state)


def waiting(state: State, *commands: Rewriting | SendMessage) -> State:
    """With these asked for in turn, by one who lets them wait."""
    for command in commands:
        state = done(state, command if isinstance(command, SendMessage) else replace(command, when_busy="queue"))
    return state


def next_events(state: State) -> list[KnownEvent]:
    return continue_queue(state, told())


def drained(state: State) -> State:
    """Until a turn runs or nothing is ready, as the owner does it."""
    for _ in range(20):
        if not next_items(state):
            return state
        state = after(*next_events(state), state=state)
    raise AssertionError("it does not come to an end")


def over(state: State) -> State:
    """The running turn ends, and the queue goes on."""
    assert state.turn is not None
    return drained(after(finished(state.turn.id), state=state))


def history() -> State:
    """Two questions with their answers, and a third that is being answered: m1 m2 m3 m4 m5."""
    first = [*asked(), *said(), finished()]
    second = [*asked("t2", "m3"), *said("m4", "Well", "t2"), finished("t2")]
    return after(*first, *second, *asked("t3", "m5"))


def ids(state: State) -> list[str]:
    return [message.id for message in state.messages]


def notices(state: State) -> list[str]:
    return [text for text, message in zip(texts(state), state.messages, strict=True) if message.event_kind == "notice"]


# -- into the queue


@pytest.mark.parametrize(
    "command",
    [
        EditMessage(message="m1", content="Changed"),
        RemoveMessage(message="m1"),
        TruncateMessages(from_index=2),
        RetryFrom(index=2, content="Again"),
        Regenerate(),
        RestoreMessages(messages=()),
        Fill(messages=()),
    ],
    ids=lambda command: type(command).__name__,
)
def test_command_waits_as_it_was_asked_and_reads_back_from_a_snapshot(command: Rewriting) -> None:
    state = waiting(history(), command)
    item = state.queue[0]
    assert item.command is not None
    assert (item.content, item.delivery, item.trigger) == ((), "turn", "message")
    assert msgspec.convert(item.command, Rewriting) == command
    assert words_of(item)
    stored = msgspec.json.decode(msgspec.json.encode(state), type=State)
    assert stored == state


def test_command_that_does_not_say_it_may_wait_is_refused_as_before() -> None:
    decision = decide(history(), TruncateMessages(from_index=0), facts())
    assert isinstance(decision, Refusal)
    assert decision.code == "conflict"


def test_answer_to_a_queued_command_names_its_item() -> None:
    command = TruncateMessages(from_index=0, when_busy="queue", client_request_id="r")
    decision = decide(history(), command, facts())
    assert isinstance(decision, list)
    added = decision[0]
    assert isinstance(added, QueueAdded)
    assert (added.client_request_id, added.body_hash) == ("r", body_hash(command))
    answer = acceptance_of("c", [replace(added, seq=7)])
    assert (answer.id, answer.queued, answer.seq) == (added.item, True, 7)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (TruncateMessages(from_index=-1), "invalid"),
        (RetryFrom(index=-1, content="x"), "invalid"),
        (RetryFrom(index=0, content=" "), "invalid"),
        (EditMessage(message="m1", content=""), "invalid"),
        (EditMessage(message="nobody", content="x"), "not_found"),
        (RemoveMessage(message="nobody"), "not_found"),
        (
            Fill(messages=(Message(id="x", role="user", seq=1, updated_seq=1, ts=1, data="x" * (300 << 10)),)),
            "too_large",
        ),
    ],
)
def test_command_that_can_never_apply_is_refused_at_once(command: Rewriting, code: str) -> None:
    decision = decide(history(), replace(command, when_busy="queue"), facts())
    assert isinstance(decision, Refusal)
    assert decision.code == code


def test_command_about_a_queued_message_may_wait_behind_it() -> None:
    state = waiting(history(), SendMessage(content="Later"))
    message = state.queue[0].id
    state = over(waiting(state, EditMessage(message=message, content="Sooner")))
    assert texts(state)[-1] == "Later"
    assert texts(over(state))[-1] == "Sooner"


def test_full_queue_takes_no_command_either() -> None:
    state = history()
    for _ in range(50):
        state = waiting(state, Regenerate())
    decision = decide(state, Regenerate(when_busy="queue"), facts())
    assert isinstance(decision, Refusal)
    assert decision.code == "busy"


def test_priority_command_stands_before_the_others_and_joins_no_running_turn() -> None:
    state = waiting(history(), SendMessage(content="a"), Regenerate(priority=True))
    assert [item.priority for item in state.queue] == [True, False]
    assert boundary_items(state) == []


def test_queued_command_is_held_moved_and_taken_back_but_not_reworded() -> None:
    state = waiting(history(), SendMessage(content="a"), Regenerate())
    item = state.queue[1].id
    reworded = decide(state, EditQueued(item=item, content="b"), facts())
    assert isinstance(reworded, Refusal)
    state = done(state, EditQueued(item=item, before=state.queue[0].id))
    assert state.queue[0].id == item
    state = done(state, EditQueued(item=item, held=True))
    assert [known.id for known in next_items(after(finished("t3"), state=state))] == [state.queue[1].id]
    assert item not in [known.id for known in done(state, RemoveQueued(item=item)).queue]


# -- out of it


def test_commands_and_messages_leave_the_queue_in_their_order() -> None:
    state = waiting(
        history(),
        TruncateMessages(from_index=2),
        EditMessage(message="m1", content="Changed"),
        SendMessage(content="Then"),
        RemoveMessage(message="m1"),
    )
    state = over(state)
    assert texts(state) == ["Changed", "Hi", "Then"]
    assert len(state.queue) == 1
    state = over(state)
    assert (texts(state), state.turn, state.queue) == (["Hi", "Then"], None, ())


def test_index_counts_the_messages_as_they_are_when_its_turn_comes() -> None:
    state = over(waiting(history(), TruncateMessages(from_index=1), RetryFrom(index=1, content="Again")))
    assert texts(state) == ["Hello", "Again"]
    assert state.turn is not None


def test_flat_index_counts_results_of_tools_when_its_turn_comes() -> None:
    """m1, m2 with the results of a and b, m3: the fifth entry is m3."""
    worked = [*called("a", "b"), *(ToolFinished(turn="t1", call=call, ok=True, output="x") for call in "ab")]
    state = after(*asked(), *worked, finished(), *asked("t2", "m3"))
    assert ids(over(waiting(state, TruncateMessages(from_index=4, flat=True)))) == ["m1", "m2"]
    assert ids(over(waiting(state, TruncateMessages(from_index=3, flat=True)))) == ["m1"]
    assert ids(over(waiting(state, TruncateMessages(from_index=2)))) == ["m1", "m2"]
    beyond = over(waiting(state, RetryFrom(index=6, content="x", flat=True)))
    assert notices(beyond) == ["“Try again from message 7: x” was left out: `index` lies between 0 and 5."]


def test_command_that_begins_a_turn_lets_the_rest_wait_behind_it() -> None:
    state = over(waiting(history(), Regenerate(), SendMessage(content="Then")))
    assert state.turn is not None
    assert state.turn.trigger.kind == "regenerate"
    assert [words_of(item) for item in state.queue] == ["Then"]


def test_carried_out_command_is_known_by_its_request_id_without_claiming_it_again() -> None:
    command = RetryFrom(index=0, content="Again", when_busy="queue", client_request_id="r")
    made = next_events(after(finished("t3"), state=done(history(), command)))
    assert kinds(made) == ["QueueRemoved", "MessageTruncated", "MessageAdded", "TurnStarted"]
    assert {(event.client_request_id, event.body_hash) for event in made[1:]} == {("r", None)}


def test_command_that_no_longer_applies_leaves_the_queue_with_its_reason_and_blocks_nothing() -> None:
    state = waiting(
        history(),
        TruncateMessages(from_index=1),
        RemoveMessage(message="m4"),
        TruncateMessages(from_index=9),
        SendMessage(content="Then"),
    )
    state = after(finished("t3"), state=state)
    state = after(*next_events(state), state=state)
    removed, notice = next_events(state)
    assert isinstance(removed, QueueRemoved)
    assert (removed.reason, removed.why) == ("cancelled", "No such message in this conversation.")
    assert isinstance(notice, MessageAdded)
    assert (notice.role, notice.event_kind, notice.hidden) == ("event", "notice", False)
    state = drained(state)
    assert [text for text in texts(state) if "left out" not in text] == ["Hello", "Then"]
    assert notices(state) == [
        "“Remove a message” was left out: No such message in this conversation.",
        "“Truncate from message 10” was left out: `from_index` lies between 0 and 2.",
    ]


def test_command_with_nothing_to_do_leaves_the_queue_without_a_word() -> None:
    state = waiting(history(), TruncateMessages(from_index=5))
    assert kinds(next_events(after(finished("t3"), state=state))) == ["QueueRemoved"]


def test_command_that_this_release_does_not_know_is_left_out() -> None:
    strange = QueueAdded(item="i", content=(), command={"type": "sing", "song": 1})
    state = over(after(strange, state=history()))
    assert state.queue == ()
    assert notices(state) == ["“Sing” was left out: this release does not know it."]


def test_queue_goes_on_with_a_command_after_a_stop_and_after_a_restart() -> None:
    state = waiting(history(), TruncateMessages(from_index=0))
    for reason in ("user", "restart"):
        settled = after(*settle(state, reason, now=NOW_MS), state=state)
        assert (drained(settled).messages, drained(settled).queue) == ((), ())


def test_decision_that_pauses_for_nobody_is_superseded_when_the_history_changes() -> None:
    """A restart left an approval open; what waited behind it takes the message with the call away."""
    paused = after(*asked(resumable=True), *called("a"), wondered("q", "a"))
    state = drained(after(stopped(), state=waiting(paused, TruncateMessages(from_index=0))))
    assert (state.messages, [known.status for known in state.requests]) == ((), ["superseded"])


# -- removing with a new answer, filling


def test_removed_message_is_answered_around() -> None:
    state = after(finished("t3"), state=history())
    state = done(state, RemoveMessage(message="m3", regenerate=True))
    assert ids(state) == ["m1", "m2", "m4", "m5"]
    assert state.turn is not None
    assert state.turn.trigger.messages == ("m5",)
    only = after(*asked(), *said(), finished())
    assert isinstance(decide(only, RemoveMessage(message="m1", regenerate=True), facts()), Refusal)


def test_fill_says_what_was_said_elsewhere_at_its_time_and_keeps_what_was_chosen_here() -> None:
    brought = Message(id="theirs", role="user", seq=1, updated_seq=1, ts=77, blocks=(TextBlock(index=0, text="Once"),))
    parent = Parent(conversation="p", kind="branch", root="p")
    fill = Fill(messages=(brought,), title="Tale", project="folder", params={"mode": "plan", "a": 1}, parent=parent)
    empty = after(ConversationUpdated(params={"mode": "ask"}))
    made = decide(empty, fill, facts())
    assert isinstance(made, list)
    assert kinds(made) == ["ConversationUpdated", "MessageAdded", "ConversationUpdated"]
    assert [event.ts for event in made] == [0, 77, 0]
    state = after(*made, state=empty)
    assert (ids(state), texts(state)) == (["theirs"], ["Once"])
    assert (state.title, state.project, state.parent, state.params) == (
        "Tale",
        "folder",
        parent,
        {"mode": "ask", "a": 1},
    )
    assert ids(done(empty, replace(fill, new_ids=True))) != ["theirs"]
    assert isinstance(decide(state, fill, facts()), Refusal)
    assert isinstance(decide(empty, Fill(messages=()), facts()), Refusal)


def test_fill_waits_behind_what_empties_the_conversation() -> None:
    brought = Message(id="x", role="user", seq=1, updated_seq=1, ts=1, blocks=(TextBlock(index=0, text="Once"),))
    state = over(waiting(history(), TruncateMessages(from_index=0), Fill(messages=(brought,))))
    assert texts(state) == ["Once"]


def test_fill_is_the_same_command_whatever_it_found() -> None:
    one = Fill(messages=(), title="a", digest="d", client_request_id="r")
    assert body_hash(one) == body_hash(replace(one, title="b")) == "d"


def test_words_of_what_waits_say_what_will_happen() -> None:
    state = waiting(
        history(),
        TruncateMessages(from_index=2),
        RetryFrom(index=0, content=as_content("Again")),
        EditMessage(message="m1", content="Changed"),
    )
    assert [words_of(item) for item in state.queue] == [
        "Truncate from message 3",
        "Try again from message 1: Again",
        "Edit a message: Changed",
    ]
