"""What the readers of all formats make of streams, also of the odd ones that other services send."""

from typing import Any

import msgspec
import pytest

from palaver.backends.api.anthropic import AnthropicReader
from palaver.backends.api.failure import Service
from palaver.backends.api.openai import OpenAiReader
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
)
from palaver.backends.api.responses import ResponsesReader
from palaver.errors import ProviderRefused, ProviderUnavailable
from palaver.schema.base import Usage

SERVICE = Service("https://host/v1")


def anthropic(*events: dict[str, Any]) -> list[ModelEvent]:
    reader = AnthropicReader(SERVICE)
    return [piece for event in events for piece in reader.read(msgspec.json.encode(event))]


def openai(*chunks: dict[str, Any]) -> list[ModelEvent]:
    reader = OpenAiReader(SERVICE)
    found = [piece for chunk in chunks for piece in reader.read(msgspec.json.encode(chunk))]
    return [piece for piece in found if not isinstance(piece, Began)]


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def test_anthropic_counts_cached_tokens_as_input_and_later_counts_as_the_whole() -> None:
    start = {"input_tokens": 3, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 7, "output_tokens": 1}
    events = anthropic(
        {"type": "message_start", "message": {"model": "m", "usage": start}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 20}},
    )
    assert events[0] == Began("m")
    assert events[-2] == UsageSeen(Usage(input_tokens=60, cached_tokens=50, output_tokens=20), written_tokens=7)
    assert events[-1] == Stopped("stop", "end_turn")


def test_anthropic_arguments_that_come_whole_are_taken() -> None:
    block = {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "a"}}
    assert anthropic({"type": "content_block_start", "index": 1, "content_block": block}) == [
        ToolPiece(1, "t", "read", '{"path":"a"}')
    ]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "ping"},
        {"type": "new_kind", "future": {"a": [1]}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {}}},
        {"type": "content_block_delta", "index": 0},
        {},
    ],
)
def test_anthropic_events_of_tomorrow_are_passed_over(event: dict[str, Any]) -> None:
    assert anthropic(event) == []


def test_anthropic_blocks_of_its_own_tools_come_whole_and_are_no_calls_of_ours() -> None:
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"url": "https://a.example"}]}
    events = anthropic(
        {"type": "content_block_start", "index": 0, "content_block": search},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"query":'}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '"roses"}'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": found},
        {"type": "content_block_stop", "index": 1},
    )
    assert events == [ServerPiece({**search, "input": {"query": "roses"}}), ServerPiece(found)]


def test_anthropic_citations_belong_to_their_block() -> None:
    delta = {"type": "citations_delta", "citation": {"url": "https://a.example"}}
    assert anthropic({"type": "content_block_delta", "index": 2, "delta": delta}) == [
        CitationPiece(2, {"url": "https://a.example"})
    ]


def test_anthropic_unknown_stop_reason_is_kept_by_its_word() -> None:
    assert anthropic({"type": "message_delta", "delta": {"stop_reason": "tired"}}) == [Stopped("other", "tired")]


def test_anthropic_error_in_a_stream_raises() -> None:
    with pytest.raises(ProviderUnavailable, match="busy"):
        anthropic({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})


def test_openai_reads_reasoning_under_either_name() -> None:
    assert openai(delta(reasoning_content="a"), delta(reasoning="b"), delta(content="c")) == [
        ThinkingPiece(-1, "a"),
        ThinkingPiece(-1, "b"),
        TextPiece(0, "c"),
    ]


def test_openai_thinking_after_other_words_is_a_new_thought() -> None:
    events = openai(delta(reasoning="a"), delta(content="b"), delta(reasoning="c"))
    assert [piece.index for piece in events if isinstance(piece, ThinkingPiece)] == [-1, -2]


def test_openai_details_of_a_gateway_keep_what_the_model_behind_it_checks() -> None:
    text = {"type": "reasoning.text", "text": "hm", "signature": "s+/=", "format": "anthropic", "index": 0}
    secret = {"type": "reasoning.encrypted", "data": "x+/=", "id": "r1", "index": 1}
    events = openai(delta(reasoning="hm", reasoning_details=[text]), delta(reasoning_details=[secret]))
    assert events == [
        ThinkingPiece(
            0, "hm", "s+/=", '{"type":"reasoning.text","format":"anthropic","index":0}', None, "reasoning.text"
        ),
        ThinkingPiece(
            1, "", None, '{"type":"reasoning.encrypted","id":"r1","index":1,"data":"x+/="}', "r1", "reasoning.encrypted"
        ),
    ]


def test_openai_calls_without_index_are_numbered_by_place() -> None:
    calls = [
        {"id": "a", "function": {"name": "read", "arguments": "{}"}},
        {"id": "b", "function": {"name": "list", "arguments": None}},
    ]
    assert openai(delta(tool_calls=calls)) == [ToolPiece(1, "a", "read", "{}"), ToolPiece(2, "b", "list", "")]


def test_openai_fields_of_the_services_own_are_passed_on() -> None:
    own = {"provider_specific_fields": {"a": 1}, "audio": None, "server_content_blocks": {}, "role": "assistant"}
    assert openai(delta(content="c", **own)) == [TextPiece(0, "c"), ExtraPiece({"provider_specific_fields": {"a": 1}})]


@pytest.mark.parametrize("levels", [40, 500])
def test_openai_fields_that_are_nested_too_deep_are_left_out(levels: int) -> None:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    assert openai(delta(content="c", deep=nested)) == [TextPiece(0, "c")]


def test_openai_nulls_and_absent_parts_are_nothing() -> None:
    assert openai(delta(content=None, tool_calls=None, role="assistant"), {"choices": []}, {}) == []


def test_openai_usage_counts_what_was_cached_and_reasoned() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    assert openai({"choices": [], "usage": usage}) == [
        UsageSeen(Usage(input_tokens=9, output_tokens=4, cached_tokens=5, reasoning_tokens=2))
    ]


def test_openai_end_marker_ends_and_only_a_finish_reason_makes_whole() -> None:
    reader = OpenAiReader(SERVICE)
    reader.read(b" [DONE]")
    assert (reader.ended, reader.stopped) == (True, False)


@pytest.mark.parametrize("error", ["out of memory", {"message": "out of memory", "code": 500}])
def test_openai_error_in_a_stream_raises(error: Any) -> None:
    with pytest.raises(ProviderUnavailable, match="out of memory"):
        openai({"error": error})


def test_openai_refused_request_in_a_stream_is_final() -> None:
    with pytest.raises(ProviderRefused):
        openai({"error": {"message": "no", "type": "invalid_request_error"}})


# -- Responses


def responses(*events: dict[str, Any]) -> list[ModelEvent]:
    reader = ResponsesReader(SERVICE)
    return [piece for event in events for piece in reader.read(msgspec.json.encode(event))]


def test_responses_parts_of_a_summary_are_paragraphs_of_one_thought() -> None:
    kind = "response.reasoning_summary_text.delta"
    found = responses(
        {"type": kind, "output_index": 2, "summary_index": 0, "delta": "a"},
        {"type": kind, "output_index": 2, "summary_index": 0, "delta": "b"},
        {"type": kind, "output_index": 2, "summary_index": 1, "delta": "c"},
        {"type": kind, "output_index": 2, "summary_index": 1, "delta": "d"},
    )
    assert {piece.index for piece in found if isinstance(piece, ThinkingPiece)} == {2000}
    assert "".join(piece.text for piece in found if isinstance(piece, ThinkingPiece)) == "ab\n\ncd"


def test_responses_reasoning_is_kept_as_the_very_bytes_that_came() -> None:
    item = b'{ "id" : "rs_1", "type":"reasoning","summary":[], "encrypted_content":"\\u0061+/=" , "new": 1.50 }'
    frame = b'{"type":"response.output_item.done","output_index":0,"item":' + item + b"}"
    (piece,) = ResponsesReader(SERVICE).read(frame)
    assert isinstance(piece, ThinkingPiece)
    assert piece.data == item.decode()


def test_responses_reasoning_without_its_encrypted_half_is_only_words() -> None:
    item = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    assert responses({"type": "response.output_item.done", "output_index": 0, "item": item}) == []


def test_responses_arguments_come_in_fragments_or_whole() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "read", "arguments": ""}
    added = {"type": "response.output_item.added", "output_index": 1, "item": call}
    done = {"type": "response.output_item.done", "output_index": 1, "item": {**call, "arguments": '{"a":1}'}}
    piece = {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"a":1}'}
    assert responses(added, piece, done) == [ToolPiece(1000, "c", "read"), ToolPiece(1000, arguments='{"a":1}')]
    assert responses(added, done) == [ToolPiece(1000, "c", "read"), ToolPiece(1000, "c", "read", '{"a":1}')]


def test_responses_refusal_is_said_as_text() -> None:
    assert responses({"type": "response.refusal.delta", "output_index": 0, "delta": "No."}) == [TextPiece(0, "No.")]


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "refusal"), ("tired", "other")]
)
def test_responses_incomplete_answers_say_why(reason: str, finish: str) -> None:
    response = {"incomplete_details": {"reason": reason}, "usage": {"input_tokens": 3, "output_tokens": 2}}
    found = responses({"type": "response.incomplete", "response": response})
    assert found[0] == UsageSeen(Usage(input_tokens=3, output_tokens=2))
    assert isinstance(found[1], Stopped)
    assert (found[1].reason, found[1].word) == (finish, reason)


def test_responses_usage_counts_what_was_cached_and_reasoned() -> None:
    usage = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 2},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 3},
    }
    found = responses({"type": "response.completed", "response": {"usage": usage}})
    assert found == [
        UsageSeen(Usage(input_tokens=9, output_tokens=4, cached_tokens=5, reasoning_tokens=3), 2),
        Stopped("stop", "completed"),
    ]


@pytest.mark.parametrize(
    ("event", "failure", "reason"),
    [
        ({"type": "error", "code": "server_error", "message": "oops"}, ProviderUnavailable, None),
        ({"type": "error", "error": {"type": "rate_limit_exceeded", "message": "oops"}}, ProviderUnavailable, None),
        (
            {"type": "response.failed", "response": {"error": {"code": "invalid_prompt", "message": "flagged"}}},
            ProviderRefused,
            "content",
        ),
        (
            {"type": "response.failed", "response": {"error": {"code": "insufficient_quota", "message": "pay"}}},
            ProviderRefused,
            "no_credit",
        ),
    ],
)
def test_responses_failures_in_a_stream_raise(
    event: dict[str, Any], failure: type[Exception], reason: str | None
) -> None:
    with pytest.raises(failure) as raised:
        responses(event)
    assert getattr(raised.value, "details", {}).get("reason") == reason


@pytest.mark.parametrize(
    "event",
    [{}, {"type": "response.queued"}, {"type": "response.output_item.done", "item": {"type": "web_search_call"}}],
)
def test_responses_events_of_tomorrow_are_passed_over(event: dict[str, Any]) -> None:
    assert responses(event) == []
