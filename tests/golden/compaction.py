"""What compacting a log means, in the fewest words: fragments that a finished block made redundant become one line.

Pure, over decoded events. The golden logs and the rig over the core use it to hold the fold to
`fold(compacted) == fold(full)`; the stores have their own, which works on bytes.
"""

from collections.abc import Sequence

from palaver.schema.events import (
    Event,
    LogCompacted,
    TextDelta,
    TextFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
)

Key = tuple[str, str, int]


def compacted(events: Sequence[Event]) -> list[Event]:
    finished = {key for event in events if (key := _finishes(event))} - _contended(events)
    kept: list[Event] = []
    run: list[Event] = []
    for event in events:
        if _fragment_of(event) in finished:
            run.append(event)
            continue
        if run:
            kept.append(_standing_for(run))
            run = []
        kept.append(event)
    return kept if not run else [*kept, _standing_for(run)]


def _contended(events: Sequence[Event]) -> set[Key]:
    """Blocks that text and thinking both claim: which of them has it depends on their fragments, so those stay."""
    claims = {key for event in events if (key := _fragment_of(event) or _finishes(event))}
    other = {"text": "thinking", "thinking": "text"}
    return {key for key in claims if (other.get(key[0]), *key[1:]) in claims}


def _finishes(event: Event) -> Key | None:
    match event:
        case TextFinished():
            return ("text", event.message, event.block)
        case ThinkingFinished():
            return ("thinking", event.message, event.block)
        case ToolCalled():
            return ("input", event.call, event.block)
        case ToolFinished():
            return ("output", event.call, 0)
        case _:
            return None


def _fragment_of(event: Event) -> Key | None:
    match event:
        case TextDelta():
            return ("text", event.message, event.block)
        case ThinkingDelta():
            return ("thinking", event.message, event.block)
        case ToolInputDelta():
            return ("input", event.call, event.block)
        case ToolOutputDelta():
            return ("output", event.call, 0)
        case _:
            return None


def _standing_for(run: Sequence[Event]) -> LogCompacted:
    last = run[-1]
    return LogCompacted(
        seq=last.seq, id=last.id, ts=last.ts, conversation=last.conversation, first=run[0].seq, chain="00" * 16
    )
