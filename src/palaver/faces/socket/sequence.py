"""Frame numbers: `sequence` of this contract, made of the event's number and the frame's place among those of the event.

Pure. Used by `project` for frames, by `replay` for cursors, and wherever a position is shown to a client. One event may give
several frames, and a compacted log gives one more for a finished block than was sent live; so frames are counted from the
last of their event backwards, and the last has the same number for ever.
"""

from dataclasses import dataclass

FRAMES = 100_000
"""Numbers an event has for its frames. An event holds at most 256 KiB and a block of it at least 30 bytes, which gives three
frames each; and a number stays below 2**53, which every client can count to, for ninety thousand million events."""
MOST_FRAMES = 30_000
"""More than any event gives: a number further from the end of its event was never given out."""


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the frames of a session: every frame of `events` events, and those of the next one up to `sequence`."""

    events: int
    sequence: int

    @property
    def is_between_events(self) -> bool:
        return self.sequence == self.events * FRAMES


def sequence_of(event: int, left: int = 0) -> int:
    """The number of a frame. `left`: how many frames of the same event follow it."""
    return event * FRAMES - min(left, MOST_FRAMES)


def after_event(event: int) -> Position:
    return Position(event, sequence_of(event))


def position_of(sequence: int) -> Position | None:
    """Where a client is that saw this number last. None: no frame has it."""
    event = -(-sequence // FRAMES)
    left = event * FRAMES - sequence
    if not left:
        return after_event(event)
    return Position(event - 1, sequence) if left <= MOST_FRAMES else None
