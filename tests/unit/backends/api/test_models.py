"""What is known of models by their names."""

import pytest

from palaver.backends.api.models import (
    is_sold_only,
    reasons,
    takes_budget,
    takes_effort,
    takes_sampling,
    window_tokens,
)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-3-5-sonnet-latest", 200_000),
        ("claude-sonnet-4-20250514", 200_000),
        ("claude-haiku-4-5-20251001", 200_000),
        ("claude-opus-4-6", 1_000_000),
        ("claude-sonnet-5", 1_000_000),
        ("anthropic/claude-sonnet-4.5", 200_000),
        ("us.anthropic.claude-opus-4-7-v1:0", 1_000_000),
        ("gpt-4o-mini", 128_000),
        ("gpt-5", 400_000),
        ("gpt-5.4", 1_000_000),
        ("gpt-5.4-mini", 400_000),
        ("gpt-5.3-chat-latest", 128_000),
        ("o3-mini", 200_000),
        ("openai/gpt-oss-120b", 131_072),
        ("google/gemini-3.5-flash", 1_000_000),
        ("llama-3.3-70b", None),
        ("scripted-1", None),
    ],
)
def test_window_is_known_by_family_or_not_at_all(model: str, tokens: int | None) -> None:
    assert window_tokens(model) == tokens


@pytest.mark.parametrize(
    ("model", "budget", "effort", "sampling"),
    [
        ("claude-sonnet-4-5", True, False, True),
        ("claude-opus-4-6", True, True, True),
        ("claude-opus-4-7", False, True, False),
        ("claude-haiku-5-5", False, True, False),
        ("house", True, True, True),
    ],
)
def test_settings_a_model_takes(model: str, budget: bool, effort: bool, sampling: bool) -> None:
    assert (takes_budget(model), takes_effort(model), takes_sampling(model)) == (budget, effort, sampling)


def test_models_of_openai_that_reason() -> None:
    assert [reasons(model) for model in ("gpt-5.4", "o4-mini", "openai/gpt-6-sol")] == [True] * 3
    assert [reasons(model) for model in ("gpt-4o", "gpt-5-chat-latest", "gpt-oss-20b", "olmo", "house")] == [False] * 5


def test_only_models_that_nobody_can_run_have_a_price_everywhere() -> None:
    assert [is_sold_only(model) for model in ("claude-sonnet-5", "gpt-5", "x/gemini-3")] == [True] * 3
    assert [is_sold_only(model) for model in ("gpt-oss-20b", "llama3", "qwen3")] == [False] * 3
