"""How a turn of the program ended, in our words."""

from typing import Any

import pytest

from palaver.backends.claude.results import (
    NOTHING_SPENT,
    Result,
    context_events,
    finish_call,
    redacted,
    text_of,
    usage_of,
)
from palaver.schema.base import Usage
from palaver.schema.events import ToolFinished, ToolOutputDelta
from palaver.tools.redact import Redactor


def result(**fields: Any) -> Result:
    return Result.of({"is_error": True, **fields})


@pytest.mark.parametrize(
    ("kind", "fields", "code"),
    [
        ("authentication_failed", {"result": "Invalid API key"}, "not_logged_in"),
        ("unknown", {"api_error_status": 401}, "not_logged_in"),
        ("unknown", {"api_error_status": 400, "result": "bad"}, "provider_refused"),
        ("overloaded", {"api_error_status": 529}, "provider_unavailable"),
        ("rate_limit", {"api_error_status": 429}, "provider_unavailable"),
        (None, {"errors": ["it broke"], "terminal_reason": "odd"}, "provider_unavailable"),
    ],
)
def test_failure_says_what_kind_it_is(kind: str | None, fields: dict[str, Any], code: str) -> None:
    assert result(**fields).error(kind).code == code


def test_failure_carries_the_programs_words() -> None:
    assert "it broke" in result(errors=["it broke"]).error(None).message


def test_limit_is_no_failure_of_the_service() -> None:
    assert result(subtype="error_max_turns").limited
    assert not result(terminal_reason="api_error").limited


def test_turn_it_began_by_itself_is_told_from_ours() -> None:
    assert Result.of({"origin": {"kind": "task-notification"}}).own
    assert not Result.of({"origin": {"kind": "human"}}).own
    assert not Result.of({}).own


def test_image_among_the_results_is_named() -> None:
    assert text_of([{"type": "text", "text": "a"}, {"type": "image"}]) == "a\n[image]"


def test_no_of_a_person_is_a_denial_even_where_the_program_calls_it_an_interruption() -> None:
    line = {"tool_result_meta": [{"id": "toolu_1", "non_execution_kind": "user-rejected"}]}
    block = {"tool_use_id": "toolu_1", "content": "no", "is_error": True}
    stopped, declined = finish_call("c", "Bash", block, line), finish_call("c", "Bash", block, line, denied=True)
    assert stopped.error is not None
    assert declined.error is not None
    assert (stopped.error.code, declined.error.code) == ("tool_interrupted", "tool_denied")
    assert {stopped.effect, declined.effect} == {"none"}
    untold = finish_call("c", "Bash", block, {}, denied=True)
    assert untold.error is not None
    assert untold.error.code == "tool_denied"


def test_cached_tokens_are_part_of_the_input() -> None:
    begun = usage_of({"input_tokens": 10, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 2})
    assert begun == Usage(input_tokens=42, cached_tokens=30)
    assert usage_of({"output_tokens": 7}, begun) == Usage(input_tokens=42, cached_tokens=30, output_tokens=7)


def test_window_is_measured_by_the_last_answer() -> None:
    line = {"modelUsage": {"m": {"contextWindow": 1000}}}
    (meter,) = context_events(line, "m", Usage(input_tokens=40, output_tokens=2))
    assert (meter.used_tokens, meter.window_tokens, meter.estimated) == (42, 1000, False)
    assert not context_events(line, "other", Usage(input_tokens=1))
    assert not context_events(line, "m", NOTHING_SPENT)


def test_secret_of_the_program_is_struck_from_what_its_tools_say() -> None:
    redactor = Redactor({"ANTHROPIC_API_KEY": "sk-ant-very-secret"})
    told = redacted(ToolFinished(call="c", ok=True, output="KEY=sk-ant-very-secret"), redactor)
    live = redacted(ToolOutputDelta(call="c", text="sk-ant-very-secret"), redactor)
    assert "very-secret" not in str(told)
    assert "very-secret" not in str(live)
