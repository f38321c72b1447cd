"""Limit of tool calls a minute (`tool_calls_per_minute`): whether a conversation may run one more now. Pure.

Used by the calls before each of a batch is judged. What ran is counted in the conversation itself, so a restart forgets
nothing, and only what was started counts: a call that was refused or declined does not. 0, the default, is no limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from palaver.schema.view import State, ToolBlock

PARAM = "tool_calls_per_minute"
MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class ToolRate:
    """What is left of the limit at one moment."""

    limit: int
    left: int
    wait_s: int
    """Until the next call may run, if none is left."""

    @property
    def refusal(self) -> str:
        return (
            f"Not run: {self.limit} tool calls a minute are allowed here, and they are used up. "
            f"The next may run in {self.wait_s} s; go on without it, or tell the user."
        )


def limit_of(params: Mapping[str, Any]) -> int:
    given = params.get(PARAM)
    return int(given) if isinstance(given, int | float) and not isinstance(given, bool) and given > 0 else 0


def tool_rate(state: State, limit: int, now_ms: int) -> ToolRate | None:
    """None: there is no limit."""
    if not limit:
        return None
    since_ms = now_ms - MINUTE_MS
    recent = sorted(
        block.started_at
        for message in state.messages
        for block in message.blocks
        if isinstance(block, ToolBlock) and block.started_at is not None and since_ms < block.started_at <= now_ms
    )
    # Room comes when so many have passed that fewer than the limit are left.
    oldest = recent[len(recent) - limit] if len(recent) >= limit else now_ms
    wait_s = -(-(oldest + MINUTE_MS - now_ms) // 1000)
    return ToolRate(limit=limit, left=max(0, limit - len(recent)), wait_s=wait_s)
