"""What is left of a log after messages were removed, cut off or edited: the transcript as it stands, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from palaver.core.fold.evolve import fold
from palaver.faces.socket.memory import Memory
from palaver.faces.socket.projection import project
from palaver.faces.socket.rewrites import NOTED, Rewritten, rewrites_of
from palaver.faces.socket.sessions import is_list_news
from palaver.schema.content import as_content, plain_text
from palaver.schema.errors import WireError
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ConversationCreated,
    Event,
    KnownEvent,
    MessageAdded,
    MessageEdited,
    MessageRemoved,
    MessageTruncated,
    QueueAdded,
    QueueRemoved,
    RequestOpened,
    RequestResolved,
    TextDelta,
    TextFinished,
    ToolCalled,
    ToolFinished,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
    UnknownEvent,
    decode_event,
)
from palaver.schema.view import State, TextBlock, Trigger

GOLDEN = Path(__file__).parents[3] / "golden"
Frame = dict[str, Any]


def replayed(events: list[Event]) -> list[Frame]:
    """As the replay tells a log from its beginning."""
    rewritten, memory, frames = Rewritten(rewrites_of(filter(lambda e: isinstance(e, NOTED), events))), Memory(), []
    for event in events:
        left = rewritten.event(event)
        if left is not None and not isinstance(left, UnknownEvent) and not is_list_news(left):
            frames += project(left, memory)
    return frames


def log(*events: KnownEvent) -> list[Event]:
    whole = [ConversationCreated(), *events]
    return [replace(event, seq=seq, id=f"e{seq}", conversation="c") for seq, event in enumerate(whole, 1)]


def asked(message: str, text: str, **more: Any) -> KnownEvent:
    return MessageAdded(message=message, content=as_content(text), **more)


def run(turn: str, asking: str, *answers: str) -> list[KnownEvent]:
    """A turn: a message, then answers, each with a call between it and the next."""
    events: list[KnownEvent] = [
        asked(f"{turn}-q", asking, turn=turn),
        TurnStarted(turn=turn, agent="a", backend="b", trigger=Trigger(messages=(f"{turn}-q",))),
    ]
    for count, text in enumerate(answers):
        message, call = f"{turn}-a{count}", f"{turn}-k{count}"
        events += [
            AnswerStarted(turn=turn, message=message),
            TextDelta(turn=turn, message=message, block=0, text=text),
            TextFinished(turn=turn, message=message, block=0, text=text),
        ]
        if count < len(answers) - 1:
            events.append(ToolCalled(turn=turn, message=message, block=1, call=call, name="read"))
        events.append(AnswerFinished(turn=turn, message=message, finish_reason="stop"))
        if count < len(answers) - 1:
            events.append(ToolFinished(turn=turn, call=call, ok=True, output=f"{text} result"))
    return [*events, TurnFinished(turn=turn, outcome="completed")]


def texts(frames: list[Frame]) -> list[tuple[str, str]]:
    kinds = ("user_message", "text_block_done", "text_done", "message_queued")
    return [(frame["type"], frame["text"]) for frame in frames if frame["type"] in kinds]


FIRST = [("user_message", "one"), ("text_block_done", "First."), ("text_done", "First.")]
SECOND = [("user_message", "two"), ("text_block_done", "Second."), ("text_done", "Second.")]


def test_log_without_rewriting_is_told_as_it_is() -> None:
    events = log(*run("t1", "one", "First."), *run("t2", "two", "Second."))
    assert texts(replayed(events)) == [*FIRST, *SECOND]


def test_cleared_session_has_nothing_before_the_clear() -> None:
    cleared = (
        QueueAdded(item="i", content=as_content("never")),
        QueueRemoved(item="i", reason="cancelled"),
        *run("t1", "one", "First."),
        MessageTruncated(index=0),
    )
    assert replayed(log(*cleared)) == []
    assert texts(replayed(log(*cleared, *run("t2", "two", "Second.")))) == SECOND


def test_message_that_still_waits_is_told_after_a_clear() -> None:
    waits = QueueAdded(item="i", content=as_content("waits"))
    events = log(*run("t1", "one", "First."), waits, MessageTruncated(index=0))
    assert texts(replayed(events)) == [("message_queued", "waits")]


def test_removed_question_leaves_its_answer_and_takes_its_place_in_the_queue_along() -> None:
    events = log(
        QueueAdded(item="i", content=as_content("one")),
        QueueRemoved(item="i", reason="delivered"),
        asked("m1", "one", item="i"),
        *run("t2", "two", "Second."),
        MessageRemoved(message="m1", index=0),
    )
    assert texts(replayed(events)) == SECOND
    assert not [frame for frame in replayed(events) if frame["type"].startswith("message_")]


def test_removed_answer_takes_its_calls_along_and_its_part_of_the_text_of_the_run() -> None:
    turn = run("t1", "one", "First.", "Second.")
    frames = replayed(log(*turn, MessageRemoved(message="t1-a0", index=1)))
    assert texts(frames) == [("user_message", "one"), ("text_block_done", "Second."), ("text_done", "Second.")]
    assert "First." not in str(frames)
    whole = replayed(log(*turn, MessageRemoved(message="t1-a0", index=1), MessageRemoved(message="t1-a1", index=1)))
    assert [frame["type"] for frame in whole] == ["user_message"]


def test_run_that_is_cut_off_in_the_middle_still_ends() -> None:
    frames = replayed(log(*run("t1", "one", "First.", "Second."), MessageTruncated(index=2)))
    assert texts(frames) == FIRST
    assert [frame["type"] for frame in frames].count("tool_result") == 1


def test_answer_that_is_given_again_takes_the_place_of_the_one_before() -> None:
    again = run("t2", "unused", "Better.")[1:]
    started = replace(again[0], trigger=Trigger(kind="regenerate", messages=("t1-q",)))
    events = log(*run("t1", "one", "First."), MessageTruncated(index=1), started, *again[1:])
    better = [("user_message", "one"), ("text_block_done", "Better."), ("text_done", "Better.")]
    assert texts(replayed(events)) == better


def test_edited_messages_are_told_as_they_are_now() -> None:
    events = log(
        *run("t1", "one", "First.", "Second."),
        MessageEdited(message="t1-q", content=as_content("ONE")),
        MessageEdited(message="t1-a1", content=as_content("SECOND.")),
    )
    frames = replayed(events)
    assert texts(frames) == [
        ("user_message", "ONE"),
        ("text_block_done", "First."),
        ("text_block_done", "SECOND."),
        ("text_done", "First.\n\nSECOND."),
    ]
    assert "Second." not in str(frames)


def test_run_without_an_answer_goes_with_what_it_was_begun_with() -> None:
    failed = [
        *run("t1", "one")[:-1],
        TurnFinished(turn="t1", outcome="failed", error=WireError(code="x", message="No.")),
    ]
    assert [frame["type"] for frame in replayed(log(*failed))] == ["user_message", "error", "text_done"]
    assert replayed(log(*failed, MessageRemoved(message="t1-q", index=0))) == []


def test_empty_answer_that_a_cancelled_run_removes_itself_is_no_rewriting() -> None:
    stopped = [
        *run("t1", "one")[:-1],
        AnswerStarted(turn="t1", message="m"),
        MessageRemoved(turn="t1", message="m", index=1),
        TurnInterrupted(turn="t1", reason="user"),
    ]
    assert [frame["type"] for frame in replayed(log(*stopped))] == ["user_message", "output_cancelled"]
    later = log(*stopped, *run("t2", "two", "Second."), MessageRemoved(message="t2-q", index=1))
    assert [frame["type"] for frame in replayed(later)][:2] == ["user_message", "output_cancelled"]


def test_requests_of_removed_calls_go_along() -> None:
    events = log(
        *run("t1", "one", "First.", "Second."),
        RequestOpened(request="r", kind="approval", call="t1-k0", tool="read"),
        RequestResolved(request="r", status="answered", verdict="allow"),
        MessageRemoved(message="t1-a0", index=1),
    )
    assert not [frame for frame in replayed(events) if frame["type"].startswith("interaction")]


@pytest.mark.parametrize("name", ["rewritten", "talk", "tools", "branched", "retried", "interrupted"])
def test_replay_shows_the_messages_of_the_view_and_no_others(name: str) -> None:
    events = [decode_event(line) for line in (GOLDEN / f"{name}.jsonl").read_bytes().splitlines()]
    if events[0].seq != 1:
        pytest.skip("begins in the middle")
    state, frames = fold(State(), events), replayed(events)
    left = {message.id: message for message in state.messages}
    assert {frame["messageId"] for frame in frames if "messageId" in frame and "block" in frame} <= left.keys()
    told = {frame["messageId"]: frame["text"] for frame in frames if frame["type"] == "user_message"}
    shown = {
        message.id: plain_text(as_content("\n".join(one.text for one in message.blocks if isinstance(one, TextBlock))))
        for message in state.messages
        if message.role == "user" and not message.hidden
    }
    assert told == shown
