"""Whether a failed model call is tried again, and after how long. Pure: chance is given, time is waited elsewhere.

Used by the step, which makes every attempt visible. A service that says how long to wait is believed, up to a cap. A
turn has a budget over all its steps: a service that fails every other call is not waited for all day.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from palaver.errors import AgentError

RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Too early, too many, or the service's own fault. Everything else would fail again the same way."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    attempts: int = 5
    """In all. With the pauses below the last comes about 15 s after the first: longer than a hiccup, short enough to watch."""
    unreachable_attempts: int = 3
    """When nobody listens at the address it is more likely wrong than busy."""
    first_pause_s: float = 1.0
    longest_pause_s: float = 30.0
    longest_asked_pause_s: float = 120.0
    """A service that asks for more than this is not coming back while a person watches."""
    turn_retries: int = 20
    """Of all steps of a turn together: four steps that used all their attempts."""
    turn_wait_s: float = 600.0
    """Of all steps together. Ten minutes of waiting are more than most turns take."""

    def attempts_for(self, error: AgentError) -> int:
        return self.unreachable_attempts if error.details.get("unreachable") else self.attempts

    def is_spent(self, retries: int, waited_s: float, pause_s: float) -> bool:
        """Whether a turn that tried again so often, and waited so long, may not wait for `pause_s` more."""
        return retries >= self.turn_retries or waited_s + pause_s > self.turn_wait_s

    def pause_s(self, error: AgentError, attempt: int, chance: float) -> float | None:
        """Seconds before the next try after `attempt` tries, or None: give up. `chance` lies in 0..1."""
        if not error.retryable or attempt >= self.attempts_for(error):
            return None
        asked_s = error.details.get("retry_after_s")
        if isinstance(asked_s, int | float):
            return float(min(max(asked_s, 0.0), self.longest_asked_pause_s))
        pause_s = min(self.first_pause_s * 2 ** (attempt - 1), self.longest_pause_s)
        # Between half and all of it: many clients that failed together do not come back together.
        return float(pause_s * (0.5 + chance / 2))


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """What the service asked for: milliseconds, seconds, or a date against its own clock."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after")
    if (seconds := _number(asked)) is not None:
        return seconds
    try:
        until, now = parsedate_to_datetime(asked or ""), parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
