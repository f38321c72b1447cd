"""Compaction: the same log in fewer bytes.

Both stores call `compact` with segments as they lie there and put its answer in their place. Each maximal run of redundant
events becomes one `log.compacted` line that carries the chain's value at its end, so the chain still holds over the gap;
what is left is packed into larger segments. A fold of the result equals one of the original, at the end and wherever no
dropped block is half-way through. Doing it twice changes nothing.

Must never: touch the bytes of an event that stays, or rewrite a segment whose chain does not hold.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import msgspec

from palaver.log.redundancy import Redundancy
from palaver.log.segments import SPAN, Opened, Placed, Runs, Stored, check_of, open_segment
from palaver.schema.events import Event, LogCompacted, decode_event, encode_event

SEGMENT_BYTES = 256 << 10
"""As much as one read returns: a larger segment would make every reader take more than it asked for."""

SMALL_BYTES = 32 << 10
"""A segment below this is taken up by the next compaction, so that short turns gather; above it is not worth copying."""


@dataclass(frozen=True, slots=True)
class Compacted:
    segments: Sequence[Stored]
    """What stands for the given ones."""
    dropped: int
    settled: int
    """Up to here no later event can make another one redundant; the next compaction begins behind it."""


def compact(segments: Sequence[Stored], before: bytes, through: int) -> Compacted:
    """`segments` are consecutive ones of one conversation, `before` is the chain's value in front of them.

    Raises LogCorrupt.
    """
    lines: list[Opened] = []
    chain = before
    for stored in segments:
        lines.extend(open_segment(stored, chain))
        chain = stored.chain
    redundancy = Redundancy()
    for opening in lines:
        if opening.line.seq <= through and (event := _readable(opening.line.body)):
            redundancy.read(opening.line.seq, event)
    shortened = list(_shorten(lines, redundancy.dropped))
    return Compacted(list(_pack(shortened, before)), len(redundancy.dropped), redundancy.settled(through))


def _readable(body: bytes) -> Event | None:
    try:
        return decode_event(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _shorten(lines: Sequence[Opened], dropped: set[int]) -> Iterator[Opened]:
    """Each run of dropped events and former `log.compacted` lines as one line, the others as they are."""
    for gone, run in groupby(lines, key=lambda opening: opening.tombstone or opening.line.seq in dropped):
        members = list(run)
        if not gone or (len(members) == 1 and members[0].tombstone):
            yield from members
        else:
            yield _standing_for(members)


def _standing_for(run: Sequence[Opened]) -> Opened:
    last = run[-1]
    event = decode_event(last.line.body)
    tombstone = LogCompacted(
        seq=last.line.seq,
        id=event.id,
        ts=event.ts,
        conversation=event.conversation,
        first=run[0].line.first,
        chain=last.chain.hex(),
    )
    return Opened(Placed(tombstone.first, tombstone.seq, last.line.pos, encode_event(tombstone)), last.chain, True)


def _pack(lines: Sequence[Opened], before: bytes) -> Iterator[Stored]:
    """Segments as large as one read and one look back allow; a line larger than that stands alone."""
    batch: list[Opened] = []
    size = 0
    for opening in lines:
        length = len(opening.line.body) + 1
        if batch and (size + length > SEGMENT_BYTES or opening.line.pos - batch[0].line.pos >= SPAN):
            yield _segment(batch, before)
            before, batch, size = batch[-1].chain, [], 0
        batch.append(opening)
        size += length
    if batch:
        yield _segment(batch, before)


def _segment(batch: Sequence[Opened], before: bytes) -> Stored:
    first, last = batch[0], batch[-1]
    body = b"".join(opening.line.body + b"\n" for opening in batch)
    runs = _runs_of(batch)
    plain = len(runs) == 1 and not any(opening.tombstone for opening in batch)
    return Stored(
        first=first.line.first,
        last=last.line.seq,
        pos=first.line.pos,
        last_pos=last.line.pos,
        body=body,
        chain=last.chain,
        check=None if plain else check_of(before, last.chain, runs, body),
        runs=() if plain else runs,
    )


def _runs_of(batch: Sequence[Opened]) -> Runs:
    runs = groupby(batch, key=lambda opening: opening.line.pos - opening.line.seq)
    starts = (next(run).line for _, run in runs)
    return tuple((line.seq, line.pos) for line in starts)
