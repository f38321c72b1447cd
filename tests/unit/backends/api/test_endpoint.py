"""Addresses as people write them, and failures as people must read them."""

import pytest

from palaver.backends.api.endpoint import with_version
from palaver.backends.api.failure import Service
from palaver.backends.api.settings import settings_of
from palaver.errors import AgentError, ProviderRefused, ProviderUnavailable


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1"),
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        ("http://localhost:11434/", "http://localhost:11434/v1"),
        ("http://localhost:1234/v1/", "http://localhost:1234/v1"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1"),
        ("https://api.deepseek.com/anthropic", "https://api.deepseek.com/anthropic/v1"),
        ("https://host/v1beta/openai/", "https://host/v1beta/openai"),
        ("https://host/api/paas/v4", "https://host/api/paas/v4"),
        ("https://host/v1/chat/completions", "https://host/v1"),
        ("https://host/v1/messages", "https://host/v1"),
        ("https://v2.host", "https://v2.host/v1"),
        (" https://host/vault ", "https://host/vault/v1"),
    ],
)
def test_address_is_taken_with_or_without_its_version(given: str, used: str) -> None:
    assert with_version(given) == used


SERVICE = Service("https://host/v1", secrets=("sk-secret",))


def refused(status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> AgentError:
    return SERVICE.refused(status, body, headers or {}, "m-1")


@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (401, b'{"error": {"message": "bad key sk-secret"}}', "not_logged_in", "bad key [key]"),
        (403, b"{}", "provider_refused", "Check the account"),
        (404, b'{"error": "no such model"}', "provider_refused", "'m-1'"),
        (400, b'{"error": {"message": "max_tokens: too big"}}', "provider_refused", "max_tokens: too big"),
        (400, b'{"error": {"code": "context_length_exceeded"}}', "provider_refused", "no longer fits"),
        (429, b'{"error": {"code": "insufficient_quota", "message": "x"}}', "provider_refused", "no credit"),
        (429, b'{"error": {"message": "too many tokens per minute"}}', "provider_unavailable", "429"),
        (529, b'{"type": "error", "error": {"type": "overloaded_error"}}', "provider_unavailable", "529"),
        (502, b"<html>Bad gateway</html>", "provider_unavailable", "Bad gateway"),
        (302, b"", "provider_refused", "elsewhere"),
        (418, b"[1]", "provider_refused", "418"),
        (400, b'"just text"', "provider_refused", "just text"),
    ],
)
def test_refusal_says_what_to_do(status: int, body: bytes, code: str, words: str) -> None:
    error = refused(status, body, {"location": "https://elsewhere"})
    assert error.code == code
    assert words in error.message
    assert "sk-secret" not in error.message


def test_refusal_carries_the_pause_the_service_asked_for() -> None:
    assert refused(429, b"", {"retry-after": "3"}).details["retry_after_s"] == 3.0


def test_long_words_of_a_service_are_cut() -> None:
    assert len(refused(500, b"x" * 10_000).message) < 600


@pytest.mark.parametrize(
    ("kind", "retried"), [("overloaded_error", True), ("", True), ("invalid_request_error", False)]
)
def test_failure_within_a_stream_is_retried_unless_it_would_come_again(kind: str, retried: bool) -> None:
    expected = ProviderUnavailable if retried else ProviderRefused
    assert isinstance(SERVICE.failed(kind, "words"), expected)


def test_settings_take_what_is_theirs_and_name_what_does_not_fit() -> None:
    settings = settings_of({"temperature": "0.5", "max_tokens": 10, "request_timeout_s": 3, "model": None})
    assert (settings.temperature, settings.max_tokens, settings.model) == (0.5, 10, None)
    with pytest.raises(ProviderRefused, match="temperature"):
        settings_of({"temperature": "hot"})
