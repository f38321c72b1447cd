"""Tokens as Codex counts them: a total that only grows, over all turns of a thread, and the last call. Pure."""

from collections.abc import Mapping
from typing import Any

from palaver.schema.base import Usage
from palaver.schema.events import ContextMeasured, KnownEvent


def usage_since(usage: Mapping[str, Any], before: Mapping[str, Any] | None) -> Usage:
    """What was spent since `before`, a thread's total; where that is not known, the last call."""
    total, last = _usage(usage.get("total")), _usage(usage.get("last"))
    if before is None:
        return last
    known = _usage(before)
    if total == known:
        return Usage()
    grown = Usage(
        input_tokens=total.input_tokens - known.input_tokens,
        output_tokens=total.output_tokens - known.output_tokens,
        cached_tokens=total.cached_tokens - known.cached_tokens,
        reasoning_tokens=total.reasoning_tokens - known.reasoning_tokens,
    )
    # A count that shrank was begun anew.
    return last if grown.input_tokens < 0 or grown.output_tokens < 0 else grown


def _usage(counted: object) -> Usage:
    if not isinstance(counted, dict):
        return Usage()
    return Usage(
        input_tokens=_number(counted.get("inputTokens")),
        output_tokens=_number(counted.get("outputTokens")),
        cached_tokens=_number(counted.get("cachedInputTokens")),
        reasoning_tokens=_number(counted.get("reasoningOutputTokens")),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def context_events(usage: Mapping[str, Any]) -> list[KnownEvent]:
    match usage:
        case {"last": {"totalTokens": int(used)}}:
            window = usage.get("modelContextWindow")
            known = window if isinstance(window, int) else None
            return [ContextMeasured(used_tokens=used, window_tokens=known, estimated=False)]
        case _:
            return []
