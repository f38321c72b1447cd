"""What a program's tools say, cut to what events may hold: pieces of live output, and results with their middle left out.

Used by the backends that drive programs, which tell the output so far again and again, or all of it at once.
"""

from msgspec.structs import replace

from palaver.backends.base import Turn
from palaver.schema.events import ToolFinished

RESULT_CHARS = 64_000
"""What a result carries in its event; the whole goes to a blob."""
PIECE_CHARS = 16_000
"""Of live output and text in one event."""
LIVE_CHARS = 256_000
"""Of one call's live output: the log keeps every piece, and the result replaces them all."""


def added_text(before: str, now: str) -> str:
    """What was added, where a program tells the output so far. Nothing when it told something else: the result will."""
    return now[len(before) :] if now.startswith(before) and len(now) <= LIVE_CHARS else ""


def pieces(text: str) -> list[str]:
    return [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]


async def fitting(event: ToolFinished, turn: Turn) -> ToolFinished:
    size = len(event.output)
    if size <= RESULT_CHARS:
        return event
    half = RESULT_CHARS // 2
    blob = await turn.store_blob(event.output.encode(errors="replace"), "text/plain; charset=utf-8")
    shown = f"{event.output[:half]}\n[… {size - 2 * half:,} characters left out …]\n{event.output[-half:]}"
    return replace(event, output=shown, truncated=True, blob=blob, total_lines=event.output.count("\n") + 1)
