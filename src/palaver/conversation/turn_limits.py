"""Size limits of a turn: bytes a block, bytes and blocks a turn, bytes a minute. The one bound on what an agent writes.

Held by a running turn, which passes every event of its backend through it before the owner sees it; so models, agent programs
and tools are held alike, whatever their wire. An event beyond a limit is not recorded: the turn ends there as `limited`, with
a sentence for the person, and what was said before stays.
"""

from collections import deque
from dataclasses import dataclass, field

from palaver.clock import Clock
from palaver.errors import LimitReached
from palaver.schema.events import (
    KnownEvent,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolInputDelta,
    ToolOutputDelta,
    encode_event,
)

BLOCK_BYTES = 2 << 20
"""Of one text, thought or call's arguments: four times what the longest answers of today's models come to."""
TURN_BYTES = 128 << 20
"""Of the log: a day's work of an agent, and what a conversation may hold in memory while it runs."""
MINUTE_BYTES = 64 << 20
"""Of the log: two hundred commands a minute, each with as much output as is kept."""
TURN_BLOCKS = 20_000
"""Texts, thoughts and calls: an agent that calls a tool every two seconds for eleven hours."""
MINUTE_S = 60.0
WINDOW_PARTS = 12
"""The minute is counted in parts, so that it costs the same however many events there are."""
EVENT_BYTES = 200
"""What a fragment takes in the log beside its text."""


@dataclass(slots=True)
class TurnLimits:
    clock: Clock
    block_bytes: int = BLOCK_BYTES
    turn_bytes: int = TURN_BYTES
    minute_bytes: int = MINUTE_BYTES
    turn_blocks: int = TURN_BLOCKS
    _written_bytes: int = field(default=0, init=False)
    _recent: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]], init=False)
    _recent_bytes: int = field(default=0, init=False)
    _blocks: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int], init=False)

    def take(self, event: KnownEvent) -> None:
        """Count an event before it is recorded. Raises LimitReached."""
        match event:
            case TextDelta() | ThinkingDelta() | ToolInputDelta():
                size = len(event.text.encode(errors="replace"))
                self._grow_block(event.message, event.block, size)
                size += EVENT_BYTES
            case ToolOutputDelta():
                size = EVENT_BYTES + len(event.text.encode(errors="replace"))
            case TextFinished() | ThinkingFinished() | ToolCalled():
                size = len(encode_event(event))
                self._finish_block(event.message, event.block, size)
            case _:
                size = len(encode_event(event))
        self._write(size)

    def _grow_block(self, message: str, block: int, size: int) -> None:
        whole = self._blocks.get((message, block), 0) + size
        self._blocks[message, block] = whole
        self._check_block(whole)

    def _finish_block(self, message: str, block: int, size: int) -> None:
        # Its fragments are counted; the whole replaces them.
        self._blocks[message, block] = 0
        self._check_block(size)

    def _check_block(self, whole: int) -> None:
        if whole > self.block_bytes:
            raise LimitReached(
                f"The agent wrote more than {_size(self.block_bytes)} in one piece (a text, a thought or the arguments of a"
                " call), so its turn was ended. Send again to go on, and ask for less at once.",
                limit_bytes=self.block_bytes,
            )
        if len(self._blocks) > self.turn_blocks:
            raise LimitReached(
                f"The agent's turn came to more than {self.turn_blocks:,} texts, thoughts and calls, so it was ended."
                " Send again to go on.",
                limit=self.turn_blocks,
            )

    def _write(self, size: int) -> None:
        self._written_bytes += size
        if self._written_bytes > self.turn_bytes:
            raise LimitReached(
                f"The agent's turn wrote more than {_size(self.turn_bytes)}, so it was ended. Send again to go on.",
                limit_bytes=self.turn_bytes,
            )
        now_s = self.clock.monotonic_s()
        if self._recent and now_s - self._recent[-1][0] < MINUTE_S / WINDOW_PARTS:
            began_s, bytes_then = self._recent.pop()
            self._recent.append((began_s, bytes_then + size))
        else:
            self._recent.append((now_s, size))
        self._recent_bytes += size
        while now_s - self._recent[0][0] > MINUTE_S:
            self._recent_bytes -= self._recent.popleft()[1]
        if self._recent_bytes > self.minute_bytes:
            raise LimitReached(
                f"The agent wrote more than {_size(self.minute_bytes)} within a minute, so its turn was ended. Send again to"
                " go on.",
                limit_bytes=self.minute_bytes,
            )


def _size(limit_bytes: int) -> str:
    return f"{limit_bytes >> 20:,} MiB" if limit_bytes >= 1 << 20 else f"{limit_bytes:,} bytes"
