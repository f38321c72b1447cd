"""Moments as the contracts write them: ISO 8601, in UTC, to the millisecond."""

from datetime import UTC, datetime


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
