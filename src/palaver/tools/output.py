"""What a tool says, on its way out: decoded, redacted, shown live, and cut to what an event may hold.

Used by every tool. Up to 64 KiB stay inline; of more the head and the tail stay, with a line between them that says how
much was left out, and the whole goes to a blob (its first 10 MiB). Live output ends after a while: the log keeps every
fragment, and nobody reads a megabyte as it scrolls by. Terminal escapes are kept; whoever shows them makes them visible.
"""

import codecs
from dataclasses import dataclass

from palaver.schema.base import BlobRef
from palaver.tools.base import Stream, ToolResult, Workplace
from palaver.tools.redact import RedactedStream, Redactor

INLINE_BYTES = 64 * 1024
"""What a result carries in its event (docs: bounds)."""
SPILL_BYTES = 10 * 1024 * 1024
"""What is kept of a longer output (docs: bounds)."""
LIVE_BYTES = 256 * 1024
"""What is streamed live of one call: four times what the result will show."""
MARK_BYTES = 100
"""Room for the line that says what was left out."""
SIDE_BYTES = (INLINE_BYTES - MARK_BYTES) // 2
TEXT = "text/plain; charset=utf-8"

_STREAMS: tuple[Stream, ...] = ("stdout", "stderr")


@dataclass(frozen=True, slots=True)
class Said:
    """All a tool said, as its result will show it."""

    text: str
    total_bytes: int
    total_lines: int
    truncated: bool = False
    blob: BlobRef | None = None

    def result(self, *, error: str | None = None, code: str = "tool_error", exit_code: int | None = None) -> ToolResult:
        """With an `error`, a failed result that still shows what was said."""
        return ToolResult(
            ok=error is None,
            output=self.text,
            error=error,
            error_code=code,
            truncated=self.truncated,
            blob=self.blob,
            total_lines=self.total_lines,
            total_bytes=self.total_bytes,
            exit_code=exit_code,
        )


def join_sides(head: bytes, tail: bytes, total_bytes: int, total_lines: int) -> str:
    """Head and tail of an output that is longer than both, each cut at a whole character, and the line between them."""
    first = head[:SIDE_BYTES].decode(errors="ignore")
    last = tail[-SIDE_BYTES:].decode(errors="ignore")
    lines = total_lines - first.count("\n") - last.count("\n")
    left_out = total_bytes - len(first.encode()) - len(last.encode())
    return f"{first}\n[… {lines:,} lines, {left_out:,} bytes left out …]\n{last}"


class Collector:
    """Takes what one call says, piece by piece. Bounded: at most 10 MiB and a tail are held."""

    def __init__(self, place: Workplace, *, live: bool = True) -> None:
        self._place = place
        self._live = live
        redactor = Redactor(place.environment)
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")(errors="replace") for name in _STREAMS}
        self._redacted: dict[str, RedactedStream] = {name: redactor.stream() for name in _STREAMS}
        self._kept = bytearray()
        self._tail = bytearray()
        self._total_bytes = 0
        self._newlines = 0
        self._unfinished_line = False
        self._live_bytes = 0

    async def feed(self, data: bytes, stream: Stream = "stdout") -> None:
        """Bytes as they come from a process; a character cut in two waits for its rest."""
        await self._say(self._redacted[stream].feed(self._decoders[stream].decode(data)), stream)

    async def feed_text(self, text: str, stream: Stream = "stdout") -> None:
        await self._say(self._redacted[stream].feed(text), stream)

    async def finish(self) -> Said:
        """Says what was held back; the whole goes to a blob if the result cannot show it."""
        for stream in _STREAMS:
            text = self._redacted[stream].feed(self._decoders[stream].decode(b"", final=True))
            await self._say(text + self._redacted[stream].finish(), stream)
        lines = self._newlines + self._unfinished_line
        if self._total_bytes <= INLINE_BYTES:
            return Said(self._kept.decode(), self._total_bytes, lines)
        blob = await self._place.spill(bytes(self._kept), TEXT)
        text = join_sides(bytes(self._kept[:SIDE_BYTES]), bytes(self._tail), self._total_bytes, lines)
        return Said(text, self._total_bytes, lines, truncated=True, blob=blob)

    async def _say(self, text: str, stream: Stream) -> None:
        if not text:
            return
        data = text.encode(errors="replace")
        self._total_bytes += len(data)
        self._newlines += data.count(b"\n")
        self._unfinished_line = not data.endswith(b"\n")
        self._kept += data[: SPILL_BYTES - len(self._kept)]
        self._tail += data[-SIDE_BYTES:]
        del self._tail[:-SIDE_BYTES]
        if self._live and self._live_bytes < LIVE_BYTES:
            self._live_bytes += len(data)
            if self._live_bytes >= LIVE_BYTES:
                text += "\n[… live output ends here; the result will show the end …]\n"
            await self._place.output(text, stream)
