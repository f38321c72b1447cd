"""Rewriting history: only at rest, never on a guess, and nothing half done comes in from elsewhere."""

import pytest
from msgspec.structs import replace

from palaver.core.decide.decide import decide
from palaver.schema.commands import (
    Command,
    EditMessage,
    Regenerate,
    RemoveMessage,
    RestoreMessages,
    RetryFrom,
    TruncateMessages,
)
from palaver.schema.content import as_content
from palaver.schema.events import MessageAdded, MessageRemoved, MessageTruncated, ToolFinished, TurnStarted
from palaver.schema.view import Message, State, TextBlock, ThinkingBlock, ToolBlock
from tests.unit.core.stage import (
    after,
    already,
    asked,
    at_rest,
    called,
    events,
    facts,
    finished,
    kinds,
    refusal,
    said,
    waiting_after_restart,
    working,
)

REWRITING: list[Command] = [
    EditMessage(message="m1", content="x"),
    RemoveMessage(message="m1"),
    TruncateMessages(from_index=0),
    RetryFrom(index=0, content="x"),
    Regenerate(),
    RestoreMessages(messages=()),
]


@pytest.mark.parametrize("command", REWRITING, ids=lambda command: type(command).__name__)
def test_history_is_not_changed_under_a_running_agent(command: Command) -> None:
    assert refusal(working(), command).code == "conflict"


def test_edit_changes_the_words_alone() -> None:
    state = after(*events(at_rest(), EditMessage(message="m1", content="Better")), state=at_rest())
    assert state.messages[0].edited
    assert state.messages[0].blocks == (TextBlock(index=0, text="Better"),)
    assert state.turn is None


def test_edit_with_regenerate_drops_what_followed_and_answers_again() -> None:
    decision = events(at_rest(), EditMessage(message="m1", content="Better", regenerate=True))
    assert kinds(decision) == ["MessageEdited", "MessageTruncated", "TurnStarted"]
    started = decision[-1]
    assert isinstance(started, TurnStarted)
    assert (started.trigger.kind, started.trigger.messages) == ("regenerate", ("m1",))
    assert [known.id for known in after(*decision, state=at_rest()).messages] == ["m1"]


def test_edit_with_regenerate_is_for_ones_own_messages() -> None:
    assert refusal(at_rest(), EditMessage(message="m2", content="x", regenerate=True)).code == "invalid"


def test_edit_and_remove_of_an_unknown_message_are_refused() -> None:
    assert refusal(at_rest(), EditMessage(message="nobody", content="x")).code == "not_found"
    assert refusal(at_rest(), RemoveMessage(message="nobody")).code == "not_found"
    assert refusal(at_rest(), EditMessage(message="m1", content=" ")).code == "invalid"


@pytest.mark.parametrize(
    "command", [EditMessage(message="m2", content="x"), RemoveMessage(message="m2"), TruncateMessages(from_index=0)]
)
def test_rewriting_a_message_whose_call_waits_ends_the_waiting(command: Command) -> None:
    state = waiting_after_restart()
    rewritten = after(*events(state, command), state=state)
    assert rewritten.status == "idle"
    assert rewritten.requests[0].status == "superseded"


def test_edit_of_another_message_leaves_what_waits() -> None:
    state = waiting_after_restart()
    assert kinds(decide(state, EditMessage(message="m1", content="x"), facts())) == ["MessageEdited"]


def test_remove_takes_the_calls_and_their_results_along() -> None:
    done = ToolFinished(turn="t1", call="a", ok=True, output="out")
    state = after(*asked(), *called("a"), done, *said("m3"), finished())
    removed = events(state, RemoveMessage(message="m2"))
    assert [(event.message, event.index) for event in removed if isinstance(event, MessageRemoved)] == [("m2", 1)]
    left = after(*removed, state=state)
    assert [known.id for known in left.messages] == ["m1", "m3"]
    assert not any(isinstance(block, ToolBlock) for known in left.messages for block in known.blocks)


@pytest.mark.parametrize("index", [-1, 3])
def test_index_outside_the_history_is_refused(index: int) -> None:
    assert refusal(at_rest(), TruncateMessages(from_index=index)).code == "invalid"
    assert refusal(at_rest(), RetryFrom(index=index, content="x")).code == "invalid"


def test_truncate_at_the_end_changes_nothing() -> None:
    assert already(at_rest(), TruncateMessages(from_index=2)).note == "There was nothing from that index on."


def test_retry_drops_from_there_and_sends_anew() -> None:
    decision = events(at_rest(), RetryFrom(index=0, content="Again"))
    assert kinds(decision) == ["MessageTruncated", "MessageAdded", "TurnStarted"]
    assert kinds(decide(at_rest(), RetryFrom(index=2, content="And then"), facts())) == ["MessageAdded", "TurnStarted"]
    assert refusal(at_rest(), RetryFrom(index=0, content="")).code == "invalid"


def test_regenerate_answers_the_last_message_of_a_person_again_in_its_mode() -> None:
    event = MessageAdded(message="e", role="event", hidden=True, content=as_content("exit 0"))
    callback = MessageAdded(message="h", hidden=True, content=as_content("An answer came back."))
    state = after(*asked(mode="plan"), *said(), finished(), event, callback)
    truncated, started = events(state, Regenerate())
    assert isinstance(truncated, MessageTruncated)
    assert isinstance(started, TurnStarted)
    assert truncated.index == 1
    assert (started.trigger.messages, started.mode) == (("m1",), "plan")


def test_regenerate_without_a_message_is_refused() -> None:
    assert refusal(after(), Regenerate()).code == "conflict"


# -- with only the tail of the history loaded


@pytest.fixture
def tail() -> State:
    """The last message of four; the person's question before it is not loaded."""
    whole = after(*asked(), *said(), finished(), *asked("t2", "m3"), *said("m4", turn="t2"), finished("t2"))
    return replace(whole, messages=whole.messages[3:], offset=3)


@pytest.mark.parametrize("command", [EditMessage(message="m1", content="x"), RemoveMessage(message="m1"), Regenerate()])
def test_what_is_not_loaded_is_refused_rather_than_guessed(tail: State, command: Command) -> None:
    assert refusal(tail, command).details == {"offset": 3}


def test_truncate_before_the_tail_keeps_the_count(tail: State) -> None:
    cut = after(*events(tail, TruncateMessages(from_index=1)), state=tail)
    assert (cut.offset, cut.messages) == (1, ())
    again = after(*events(cut, RetryFrom(index=1, content="x")), state=cut)
    assert (again.offset, len(again.messages)) == (1, 1)


def test_restore_into_a_tail_is_refused(tail: State) -> None:
    empty = replace(tail, messages=())
    assert refusal(empty, RestoreMessages(messages=at_rest().messages)).code == "conflict"


# -- from elsewhere


def test_restore_gives_new_ids_and_keeps_blocks() -> None:
    source = at_rest().messages
    decision = events(after(), RestoreMessages(messages=source))
    assert [event.message for event in decision if isinstance(event, MessageAdded)] == ["new-1", "new-2"]
    restored = after(*decision)
    assert [known.blocks for known in restored.messages] == [known.blocks for known in source]
    assert [known.role for known in restored.messages] == ["user", "assistant"]


def test_restore_closes_what_was_under_way_there() -> None:
    blocks = (
        ThinkingBlock(index=0, text="hm", status="streaming"),
        TextBlock(index=1, text="half", status="streaming"),
        ToolBlock(index=2, call="a", name="shell", status="running", output="out"),
        ToolBlock(index=3, call="b", name="shell", status="waiting", request="q"),
        ToolBlock(index=4, call="c", name="shell", status="ok", output="done"),
    )
    state = after(*events(after(), RestoreMessages(messages=(_answer(blocks=blocks),))))
    thinking, text, running, waiting, done = state.messages[0].blocks
    assert isinstance(thinking, ThinkingBlock)
    assert isinstance(text, TextBlock)
    assert isinstance(running, ToolBlock)
    assert isinstance(waiting, ToolBlock)
    assert isinstance(done, ToolBlock)
    assert (thinking.status, text.status, done.output) == ("interrupted", "interrupted", "done")
    assert len({running.call, waiting.call, done.call, "a", "b", "c"}) == 6
    assert running.error is not None
    assert waiting.error is not None
    assert (running.status, running.output, running.error.message) == (
        "interrupted",
        "out",
        "Interrupted, effect unknown.",
    )
    assert (waiting.status, waiting.request) == ("interrupted", None)
    assert waiting.error.message == "Interrupted before it started; nothing was done."


def test_restore_leaves_out_attempts_that_were_taken_back() -> None:
    cut = _answer(status="superseded")
    assert already(after(), RestoreMessages(messages=(cut,))).note == "There was nothing to restore."
    assert kinds(decide(after(), RestoreMessages(messages=(cut, _answer())), facts())) == ["MessageAdded"]


def test_restore_only_fills_an_empty_conversation() -> None:
    assert refusal(at_rest(), RestoreMessages(messages=at_rest().messages)).code == "conflict"


def _answer(**fields: object) -> Message:
    return replace(Message(id="x", role="assistant", seq=1, updated_seq=1, ts=1), **fields)
