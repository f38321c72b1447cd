"""From the pieces of an answer to events."""

import itertools

from palaver.backends.api.collect import DELTA_CHARS, SERVED_BYTES, Collector, parse_arguments
from palaver.backends.api.provider import (
    Began,
    CitationPiece,
    ExtraPiece,
    ModelEvent,
    ServerPiece,
    Stopped,
    TextPiece,
    ThinkingPiece,
    ToolPiece,
    UsageSeen,
    join_pieces,
)
from palaver.schema.base import Usage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    CitationAdded,
    KnownEvent,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolInputDelta,
)

STOP = Stopped("stop", "end_turn")


def collector(replaces: str | None = None) -> Collector:
    numbers = itertools.count(1)
    return Collector(
        message="m",
        model="asked",
        provider="p@host",
        new_id=lambda: f"call-{next(numbers)}",
        now_ms=lambda: 1000,
        replaces=replaces,
    )


def collected(*pieces: ModelEvent) -> list[KnownEvent]:
    answer = collector()
    events = [event for piece in pieces for event in answer.take(piece)]
    return [*events, *answer.finish()]


def test_answer_begins_with_its_first_piece() -> None:
    answer = collector(replaces="old")
    assert answer.take(Began("served")) == []
    assert answer.take(UsageSeen(Usage(input_tokens=1))) == []
    assert not answer.started
    assert answer.take(TextPiece(0, "a")) == [
        AnswerStarted(message="m", model="served", replaces="old"),
        TextDelta(message="m", block=0, text="a"),
    ]


def test_blocks_are_numbered_in_order_and_finished_once() -> None:
    events = collected(
        ThinkingPiece(0, "hm"),
        ThinkingPiece(0, "", "sig"),
        TextPiece(1, "a"),
        TextPiece(1, "b"),
        ToolPiece(2, "t1", "read", "{}"),
        TextPiece(3, "c"),
        STOP,
    )
    assert events == [
        AnswerStarted(message="m", model="asked"),
        ThinkingDelta(message="m", block=0, text="hm"),
        ThinkingFinished(message="m", block=0, text="hm", signature="sig", provider={"by": "p@host"}, duration_ms=0),
        TextDelta(message="m", block=1, text="a"),
        TextDelta(message="m", block=1, text="b"),
        TextFinished(message="m", block=1, text="ab"),
        ToolInputDelta(message="m", block=2, call="call-1", name="read", text="{}"),
        TextDelta(message="m", block=3, text="c"),
        TextFinished(message="m", block=3, text="c"),
        ToolCalled(message="m", block=2, call="call-1", name="read", input={}, provider={"by": "p@host", "id": "t1"}),
        AnswerFinished(message="m", finish_reason="tool_calls", model="asked"),
    ]


def test_thinking_that_is_kept_secret_keeps_its_data() -> None:
    (finished,) = [
        event for event in collected(ThinkingPiece(0, "", None, "x+/=")) if isinstance(event, ThinkingFinished)
    ]
    assert finished.redacted
    assert finished.provider == {"by": "p@host", "data": "x+/="}


def test_thinking_without_words_keeps_its_signature() -> None:
    events = collected(ThinkingPiece(0, ""), ThinkingPiece(0, "", "sig"), TextPiece(1, "a"))
    assert isinstance(events[1], ThinkingFinished)
    assert (events[1].text, events[1].signature) == ("", "sig")


def thoughts(*pieces: ModelEvent) -> list[tuple[int, str, str | None]]:
    """As they stand at the end: the latest of each block."""
    finished = [event for event in collected(*pieces) if isinstance(event, ThinkingFinished)]
    latest = {event.block: (event.block, event.text, event.signature) for event in finished}
    return [latest[block] for block in sorted(latest)]


def test_thoughts_that_come_mixed_find_their_block_by_its_index() -> None:
    assert thoughts(
        ThinkingPiece(0, "a1 "),
        ThinkingPiece(1, "b1 "),
        ThinkingPiece(0, "a2"),
        TextPiece(2, "t"),
        ThinkingPiece(1, "b2"),
        ThinkingPiece(0, "", "sig-a"),
        ThinkingPiece(1, "", "sig-b"),
    ) == [(0, "a1 a2", "sig-a"), (1, "b1 b2", "sig-b")]


def test_thoughts_without_an_index_find_their_block_by_id_then_by_signature() -> None:
    by_id = (
        ThinkingPiece(None, "a", id="x"),
        ThinkingPiece(None, "b", id="y"),
        ThinkingPiece(None, "c", id="x"),
    )
    assert thoughts(*by_id) == [(0, "ac", None), (1, "b", None)]
    by_signature = (ThinkingPiece(None, "a", "s"), TextPiece(5, "t"), ThinkingPiece(None, "b", "s"))
    assert thoughts(*by_signature) == [(0, "ab", "s")]
    assert thoughts(ThinkingPiece(None, "a"), ThinkingPiece(None, "b")) == [(0, "ab", None)]


def test_thoughts_with_signatures_of_their_own_are_blocks_of_their_own() -> None:
    mixed = (ThinkingPiece(None, "a", "s1"), ThinkingPiece(None, "b", "s2"), ThinkingPiece(None, "c", "s1"))
    assert thoughts(*mixed) == [(0, "ac", "s1"), (1, "b", "s2")]
    signed_late = (ThinkingPiece(None, "a"), ThinkingPiece(None, "b", "s1"), ThinkingPiece(None, "c"))
    assert thoughts(*signed_late) == [(0, "abc", "s1")]
    assert thoughts(ThinkingPiece(None, "a", "s1"), ThinkingPiece(None, "", "s2")) == [(0, "a", "s2")]


def test_thoughts_of_another_kind_are_never_merged() -> None:
    assert thoughts(ThinkingPiece(0, "a", "s"), ThinkingPiece(0, "b", "s", kind="summary")) == [
        (0, "a", "s"),
        (1, "b", "s"),
    ]


def test_latest_signature_wins_and_none_takes_nothing_away() -> None:
    assert thoughts(ThinkingPiece(0, "a", "one"), ThinkingPiece(0, "", "two"), ThinkingPiece(0, "b")) == [
        (0, "ab", "two")
    ]


def test_thought_that_is_finished_is_said_again_only_when_it_grew() -> None:
    events = collected(ThinkingPiece(0, "a"), TextPiece(1, "b"))
    assert len([event for event in events if isinstance(event, ThinkingFinished)]) == 1


def test_attempt_that_was_counted_leaves_a_trace_and_an_uncounted_one_none() -> None:
    answer = collector()
    assert not answer.has_something
    answer.take(UsageSeen(Usage(input_tokens=7), 3))
    assert answer.has_something
    assert answer.written_tokens == 3
    assert answer.cut() == [
        AnswerStarted(message="m", model="asked"),
        AnswerFinished(message="m", finish_reason="cut", usage=Usage(input_tokens=7), model="asked", interrupted=True),
    ]


def test_arguments_in_fragments_make_one_call() -> None:
    events = collected(
        ToolPiece(5, "t1", "read"),
        ToolPiece(5, arguments='{"pa'),
        ToolPiece(6, "t2", "list"),
        ToolPiece(5, arguments='th":1}'),
    )
    calls = [event for event in events if isinstance(event, ToolCalled)]
    assert [(call.call, call.name, call.input) for call in calls] == [
        ("call-1", "read", {"path": 1}),
        ("call-2", "list", {}),
    ]


def test_calls_under_one_index_are_told_apart_by_their_ids() -> None:
    events = collected(ToolPiece(0, "t1", "read", "{}"), ToolPiece(0, "t2", "list", "{}"))
    assert [event.name for event in events if isinstance(event, ToolCalled)] == ["read", "list"]


def test_opaque_data_of_a_call_is_kept() -> None:
    (called,) = [event for event in collected(ToolPiece(0, "t", "read", "", {"s": 1})) if isinstance(event, ToolCalled)]
    assert called.provider == {"by": "p@host", "id": "t", "opaque": {"s": 1}}


def test_citation_is_added_to_the_text_it_came_with() -> None:
    answer = collector()
    answer.take(TextPiece(0, "a"))
    assert answer.take(CitationPiece(0, {"url": "x"})) == [CitationAdded(message="m", block=0, citation={"url": "x"})]
    assert answer.take(CitationPiece(1, {"url": "y"}))[-1] == CitationAdded(message="m", block=1, citation={"url": "y"})


def test_blocks_of_the_providers_own_stay_with_the_answer_and_make_no_call() -> None:
    block, long = (
        {"type": "server_tool_use", "id": "s"},
        {"type": "web_search_tool_result", "content": "x" * SERVED_BYTES},
    )
    events = collected(TextPiece(0, "a"), ServerPiece(block), TextPiece(1, "b"), ServerPiece(long), STOP)
    assert [type(event).__name__ for event in events].count("ToolCalled") == 0
    finished = events[-1]
    assert isinstance(finished, AnswerFinished)
    kept = finished.provider["trajectory"]["server_content_blocks"]
    assert kept[0] == block
    assert kept[1].keys() == {"type", "left_out_bytes"}


def test_fields_of_the_providers_own_are_merged_and_bounded() -> None:
    events = collected(
        TextPiece(0, "a"),
        ExtraPiece({"provider_specific_fields": {"x": 1, "y": 1}, "tier": "low"}),
        TextPiece(0, "b"),
        ExtraPiece({"provider_specific_fields": {"y": 2}, "tier": "high"}),
        ExtraPiece({"long": "x" * SERVED_BYTES}),
    )
    assert [event.text for event in events if isinstance(event, TextFinished)] == ["ab"]
    finished = events[-1]
    assert isinstance(finished, AnswerFinished)
    assert finished.provider == {"trajectory": {"provider_specific_fields": {"x": 1, "y": 2}, "tier": "high"}}


def test_cut_answer_keeps_its_text_marked_and_makes_no_call() -> None:
    answer = collector()
    for piece in (ToolPiece(0, "t", "read", "{"), TextPiece(1, "half"), UsageSeen(Usage(output_tokens=3))):
        answer.take(piece)
    assert answer.cut() == [
        TextFinished(message="m", block=1, text="half", interrupted=True),
        AnswerFinished(message="m", finish_reason="cut", usage=Usage(output_tokens=3), model="asked", interrupted=True),
    ]


def test_fragment_too_long_for_an_event_is_split() -> None:
    text = "x" * (DELTA_CHARS + 1)
    deltas = [event.text for event in collected(TextPiece(0, text)) if isinstance(event, TextDelta)]
    assert [len(delta) for delta in deltas] == [DELTA_CHARS, 1]


def test_arguments_that_are_not_json_stay_as_they_are() -> None:
    assert parse_arguments('{"a": ') == '{"a": '
    assert parse_arguments("") == {}
    assert parse_arguments(" \n") == {}
    assert parse_arguments("[" * 100_000) == "[" * 100_000


def test_pieces_that_arrive_together_are_joined_by_block() -> None:
    pieces: list[ModelEvent] = [
        TextPiece(0, "a"),
        TextPiece(0, "b"),
        ThinkingPiece(1, "c"),
        ThinkingPiece(1, "d"),
        ThinkingPiece(1, "", "sig"),
        ToolPiece(2, "t", "read", "{"),
        ToolPiece(2, arguments="}"),
        ToolPiece(2, "u", "read", "{}"),
        TextPiece(3, "e"),
    ]
    assert join_pieces(pieces) == [
        TextPiece(0, "ab"),
        ThinkingPiece(1, "cd"),
        ThinkingPiece(1, "", "sig"),
        ToolPiece(2, "t", "read", "{}"),
        ToolPiece(2, "u", "read", "{}"),
        TextPiece(3, "e"),
    ]
