"""Answers in unusual shapes: told so that a client holds the same, whatever order things come in."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from palaver.core.fold.evolve import evolve
from palaver.core.settle import fail, settle
from palaver.faces.chats.projection import ChatsProjector
from palaver.faces.chats.snapshot import snapshot_frame
from palaver.schema.base import Strength, Usage
from palaver.schema.content import as_content
from palaver.schema.errors import WireError
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    CitationAdded,
    ContextCompressed,
    ConversationCreated,
    ConversationUpdated,
    KnownEvent,
    MessageAdded,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    TurnStatus,
)
from palaver.schema.view import State, Trigger
from tests.unit.faces.chats.client import ChatsClient, Json, frames_of

FAILURE = WireError(code="provider_unavailable", message="The service is away.", retryable=True)


class Followed:
    """A chat in the middle of a turn, and a client who follows it."""

    def __init__(self) -> None:
        self.state = State()
        self._fold(ConversationCreated())
        self.projector = ChatsProjector(self.state)
        self.client = ChatsClient()
        self.client.apply(frames_of(snapshot_frame(self.state, self.projector.seq))[0])
        self.heard: list[Json] = []
        self.hears(
            MessageAdded(message="m", content=as_content("Go"), turn="t"),
            TurnStarted(turn="t", agent="default", backend="b", trigger=Trigger(messages=("m",))),
            AnswerStarted(turn="t", message="a"),
        )

    def snapshot(self) -> Json:
        return frames_of(snapshot_frame(self.state, self.projector.seq))[0]

    def _fold(self, event: KnownEvent) -> tuple[KnownEvent, State]:
        numbered = replace(event, seq=self.state.seq + 1, conversation="c")
        before, self.state = self.state, evolve(self.state, numbered)
        return numbered, before

    def hears(self, *events: KnownEvent) -> list[Json]:
        """The frames of some events; after each the client holds what a snapshot shows."""
        told: list[Json] = []
        for event in events:
            numbered, before = self._fold(event)
            for one in (*self.projector.project(numbered, before, self.state), *self.projector.gathered()):
                (frame,) = frames_of(one.body)
                self.client.apply(frame)
                told.append(frame)
            assert self.client.messages == self.snapshot()["messages"], event
        self.heard += told
        return told

    def hears_at_once(self, *events: KnownEvent) -> list[Json]:
        """The frames of events that come together."""
        said = [one for event in events for one in self.projector.project(*self._step(event))]
        told = [frame for one in (*said, *self.projector.gathered()) for frame in frames_of(one.body)]
        for frame in told:
            self.client.apply(frame)
        assert self.client.messages == self.snapshot()["messages"]
        return told

    def _step(self, event: KnownEvent) -> tuple[KnownEvent, State, State]:
        numbered, before = self._fold(event)
        return numbered, before, self.state


def called(call: str, block: int) -> Sequence[KnownEvent]:
    return (
        ToolCalled(turn="t", message="a", block=block, call=call, name="list", input={}),
        ToolStarted(turn="t", call=call, grant="rule"),
        ToolFinished(turn="t", call=call, ok=True, output="a.txt"),
    )


def words(frames: Sequence[Json]) -> list[tuple[str, str]]:
    return [(op["op"], op.get("text", "")) for frame in frames for op in frame.get("ops", ())]


def test_fragment_after_an_empty_thought_is_parted_from_the_thought_before_it() -> None:
    chat = Followed()
    chat.hears(
        ThinkingDelta(turn="t", message="a", block=0, text="First."),
        ThinkingFinished(turn="t", message="a", block=0, text="First."),
        ThinkingDelta(turn="t", message="a", block=1, text=""),
        ThinkingDelta(turn="t", message="a", block=1, text="Second."),
    )
    assert chat.client.messages[-1]["reasoning_content"] == "First.\n\nSecond."


def test_text_that_ends_otherwise_than_it_streamed_is_told_whole() -> None:
    chat = Followed()
    chat.hears(TextDelta(turn="t", message="a", block=0, text="Almost"))
    told = chat.hears(TextFinished(turn="t", message="a", block=0, text="Something else"))
    assert [frame["type"] for frame in told] == ["message_updated"]
    assert chat.client.messages[-1]["content"] == "Something else"


def test_citation_of_an_earlier_text_is_told_in_its_place() -> None:
    chat = Followed()
    chat.hears(
        TextFinished(turn="t", message="a", block=0, text="One"),
        TextFinished(turn="t", message="a", block=1, text="Two"),
        CitationAdded(turn="t", message="a", block=1, citation={"url": "second"}),
        CitationAdded(turn="t", message="a", block=0, citation={"url": "first"}),
    )
    assert chat.client.messages[-1]["citations"] == [{"url": "first"}, {"url": "second"}]
    assert ("add_citation", "") in words(chat.heard)


def test_results_that_come_out_of_order_stand_in_the_order_of_their_calls() -> None:
    chat = Followed()
    first, second = called("c1", 0), called("c2", 1)
    chat.hears(first[0], second[0], AnswerFinished(turn="t", message="a", finish_reason="tool_calls"))
    chat.hears(first[1], second[1], second[2], first[2])
    assert [message.get("tool_call_id") for message in chat.client.messages[2:]] == ["c1", "c2"]
    added = [frame["index"] for frame in chat.heard if frame["type"] == "message_added"]
    assert added == [0, 1, 2, 2]


@pytest.mark.parametrize("end", ["stopped", "failed"])
def test_answer_that_breaks_off_after_a_call_ran_stays_as_a_whole(end: str) -> None:
    chat = Followed()
    chat.hears(TextFinished(turn="t", message="a", block=0, text="I look."), *called("c1", 1))
    chat.hears(*called("c2", 2)[:-1], TextDelta(turn="t", message="a", block=3, text="And I se"))
    assert len(chat.client.messages) == 3
    events = settle(chat.state, "user", now=1) if end == "stopped" else fail(chat.state, FAILURE, now=1)
    told = chat.hears(*events)
    reason = "abort" if end == "stopped" else "error"
    # What was seen stays where it was; the call that was cut has its result behind the answer.
    assert [frame["type"] for frame in told] == ["stream_finished", "message_added", "message_added", "runtime_updated"]
    assert told[0]["finish_reason"] == told[1]["message"]["finish_reason"] == reason
    assert [message["role"] for message in chat.client.messages] == ["user", "assistant", "tool", "tool"]
    assert [result["tool_failed"] for result in chat.client.messages[2:]] == [False, True]
    assert chat.client.messages[1]["content"] == "I look.\n\nAnd I se"
    error = "The service is away." if end == "failed" else None
    assert (told[-1]["state"], told[-1]["error"]) == ("idle" if end == "stopped" else "error", error)


def test_attempt_that_another_takes_the_place_of_is_removed() -> None:
    chat = Followed()
    chat.hears(TextDelta(turn="t", message="a", block=0, text="Half"))
    chat.hears(AnswerFinished(turn="t", message="a", finish_reason="cut", interrupted=True))
    told = chat.hears(AnswerStarted(turn="t", message="b", replaces="a"))
    assert [frame["type"] for frame in told] == ["stream_finished", "message_removed", "stream_started"]
    assert [message["message_id"] for message in chat.client.messages] == ["m", "b"]


def test_making_a_history_fit_is_shown_while_it_lasts() -> None:
    chat = Followed()
    (during,) = chat.hears(TurnStatus(turn="t", status="working", detail="compressing"))
    (after,) = chat.hears(TurnStatus(turn="t", status="thinking"))
    assert (during["is_compressing"], after["is_compressing"]) == (True, False)
    assert (during["compression_strength"], after["compression_strength"]) == ("absent", "absent")
    assert during.keys() >= {"compression_phase", "compression_reason"}
    assert "compression_phase" not in after


def test_strength_of_a_compression_is_how_far_it_had_to_go() -> None:
    chat = Followed()
    strengths: tuple[Strength, ...] = ("low", "high", "medium")
    for strength in strengths:
        chat.hears(
            ContextCompressed(turn="t", stage="shorten", strength=strength, before_tokens=9, after_tokens=5, horizon=1)
        )
    told = [frame["compression_strength"] for frame in chat.heard if frame["type"] == "runtime_updated"]
    # The history stays compressed as strongly as it once had to be.
    assert told[-2:] == ["low", "high"]
    assert chat.client.runtime["compression_strength"] == "high"


def test_usage_and_the_reason_are_told_with_the_end() -> None:
    chat = Followed()
    told = chat.hears(
        TextDelta(turn="t", message="a", block=0, text="Done"),
        TextFinished(turn="t", message="a", block=0, text="Done"),
        AnswerFinished(turn="t", message="a", finish_reason="stop", usage=Usage(input_tokens=3, output_tokens=1)),
        TurnFinished(turn="t", outcome="completed"),
    )
    assert [frame["type"] for frame in told] == [
        "stream_delta",
        "stream_delta",
        "stream_finished",
        "message_added",
        "runtime_updated",
    ]
    assert chat.client.messages[-1]["usage"]["total_tokens"] == 4


def test_operations_of_events_that_come_together_are_one_frame() -> None:
    chat = Followed()
    told = chat.hears_at_once(
        ThinkingDelta(turn="t", message="a", block=0, text="Let "),
        ThinkingDelta(turn="t", message="a", block=0, text="me see."),
        ThinkingFinished(turn="t", message="a", block=0, text="Let me see.", signature="s"),
        TextDelta(turn="t", message="a", block=1, text="It "),
        TextDelta(turn="t", message="a", block=1, text="is."),
    )
    assert [frame["type"] for frame in told if frame["type"] != "runtime_updated"] == ["stream_delta"]
    assert words(told) == [
        ("append_reasoning", "Let me see."),
        ("set_thinking_blocks", ""),
        ("append_content", "It is."),
    ]


def test_what_else_happens_parts_the_operations_before_it_from_those_after() -> None:
    chat = Followed()
    told = chat.hears_at_once(
        TextDelta(turn="t", message="a", block=0, text="One"),
        ConversationUpdated(title="Tale", title_source="user"),
        TextDelta(turn="t", message="a", block=0, text=", two"),
        AnswerFinished(turn="t", message="a", finish_reason="stop"),
    )
    kinds = [frame["type"] for frame in told]
    assert kinds[:4] == ["stream_delta", "thread_updated", "stream_delta", "stream_finished"]
    assert [frame["seq"] for frame in told] == [told[0]["seq"] + place for place in range(len(told))]


def test_blocks_of_the_providers_own_are_added_one_by_one() -> None:
    chat = Followed()
    blocks = [{"type": "server_tool_use", "id": "s"}, {"type": "web_search_tool_result", "tool_use_id": "s"}]
    kept = {"trajectory": {"server_content_blocks": blocks}}
    told = chat.hears(
        TextFinished(turn="t", message="a", block=0, text="Found it."),
        AnswerFinished(turn="t", message="a", finish_reason="stop", provider=kept),
    )
    ops = [op for frame in told for op in frame.get("ops", ()) if op["op"] == "add_server_content_block"]
    assert ops == [{"op": "add_server_content_block", "block": block} for block in blocks]
    assert chat.client.messages[-1]["server_content_blocks"] == blocks
