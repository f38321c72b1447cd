"""When a failed model call is tried again, and after how long."""

import pytest

from palaver.backends.api.retry import RetryPolicy, retry_after_s
from palaver.errors import AgentError, NotLoggedIn, ProviderRefused, ProviderUnavailable, StreamCut, TimedOut

POLICY = RetryPolicy(attempts=4, first_pause_s=1, longest_pause_s=3, longest_asked_pause_s=60)


def test_pauses_double_up_to_the_longest_and_end_with_the_attempts() -> None:
    error = ProviderUnavailable("busy")
    assert [POLICY.pause_s(error, attempt, 1.0) for attempt in (1, 2, 3, 4)] == [1.0, 2.0, 3.0, None]


def test_chance_moves_a_pause_between_half_and_whole() -> None:
    error = ProviderUnavailable("busy")
    assert POLICY.pause_s(error, 2, 0.0) == 1.0
    assert POLICY.pause_s(error, 2, 0.5) == 1.5


@pytest.mark.parametrize(("asked_s", "pause_s"), [(5, 5.0), (0, 0.0), (3600, 60.0), (-1, 0.0)])
def test_pause_the_service_asked_for_is_taken_up_to_the_cap(asked_s: float, pause_s: float) -> None:
    assert POLICY.pause_s(ProviderUnavailable("busy", retry_after_s=asked_s), 1, 0.3) == pause_s


def test_unreachable_address_is_given_up_sooner() -> None:
    error = ProviderUnavailable("nobody", unreachable=True)
    assert POLICY.pause_s(error, 2, 1.0) is not None
    assert POLICY.pause_s(error, 3, 1.0) is None


@pytest.mark.parametrize(
    ("error", "retried"),
    [(StreamCut("x"), True), (TimedOut("x"), True), (ProviderRefused("x"), False), (NotLoggedIn("x"), False)],
)
def test_only_what_may_pass_is_tried_again(error: AgentError, retried: bool) -> None:
    assert (POLICY.pause_s(error, 1, 1.0) is not None) is retried


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT", "date": "Fri, 31 Dec 1999 23:59:50 GMT"}, 9.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:50 GMT", "date": "Fri, 31 Dec 1999 23:59:59 GMT"}, 0.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds
