"""A segment as a store keeps it: with the chain's value at its end and what is needed to order and check it.

Both stores hold segments as `Stored`; compaction and verify work on nothing else. Pure: bytes in, bytes out.
"""

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from typing import NamedTuple

import msgspec

from palaver.errors import LogCorrupt
from palaver.log.base import Segment, Tombstone, chain_hash, number_lines, tombstone_of

SPAN = 4_096
"""Positions that one compacted segment may span: how far before a cursor `read_all` has to look for what reaches over it."""

Runs = tuple[tuple[int, int], ...]
"""`(seq, pos)` wherever the positions of a segment's lines jump, because other conversations committed in between."""

_runs = msgspec.json.Decoder(Runs)


@dataclass(frozen=True, slots=True)
class Stored:
    first: int
    last: int
    pos: int
    last_pos: int
    """The position of the last line's event; `pos` is that of the first line's."""
    body: bytes
    chain: bytes
    check: bytes | None = None
    """Only a compacted segment has one: of any other the chain itself proves every byte."""
    runs: Runs = ()

    @property
    def compacted(self) -> bool:
        return self.check is not None

    def segment(self) -> Segment:
        return Segment(self.first, self.last, self.pos, self.body, self.compacted)


def check_of(before: bytes, chain: bytes, runs: Runs, body: bytes) -> bytes:
    """Covers a compacted segment, whose dropped events can no longer be chained."""
    digest = blake2b(encode_runs(runs), key=before + chain, digest_size=16)
    digest.update(body)
    return digest.digest()


def encode_runs(runs: Runs) -> bytes:
    return msgspec.json.encode(runs)


def segment_row(number: int, segment: Stored) -> tuple[int | bytes | None, ...]:
    """All columns of a segment of the conversation with this number."""
    return (
        segment.pos,
        number,
        segment.first,
        segment.last,
        segment.chain,
        int(segment.compacted),
        segment.last_pos if segment.compacted else None,
        segment.check,
        encode_runs(segment.runs) if segment.compacted else None,
        segment.body,
    )


def decode_runs(encoded: bytes | None) -> Runs:
    try:
        return _runs.decode(encoded) if encoded else ()
    except msgspec.DecodeError:
        return ()  # Damaged: verify says so. One bad row must not keep a bus from reading the others.


class Placed(NamedTuple):
    """One line and its place in the store; a `log.compacted` line has the place of the last event it stands for."""

    first: int
    seq: int
    pos: int
    body: bytes


def place(stored: Stored) -> Iterator[Placed]:
    runs = stored.runs or ((stored.first, stored.pos),)
    starts = [seq for seq, _ in runs]
    for line in number_lines(stored.segment()):
        start, pos = runs[max(0, bisect_right(starts, line.seq) - 1)]
        yield Placed(line.first, line.seq, pos + line.seq - start, line.body)


class Opened(NamedTuple):
    line: Placed
    chain: bytes
    """The chain's value after it."""
    tombstone: bool


def open_segment(stored: Stored, before: bytes) -> list[Opened]:
    """The lines, once they are proven to be what was written. Raises LogCorrupt.

    `before` is the chain's value in front of the segment.
    """
    lines: list[Opened] = []
    chain, last = before, stored.first - 1
    for line in place(stored):
        tombstone = tombstone_of(line.body) if stored.compacted else None
        chain = _carry_tombstone(tombstone) if tombstone else chain_hash(chain, line.body)
        lines.append(Opened(line, chain, tombstone is not None))
        last = line.seq
    if last != stored.last or chain != stored.chain or not _checks(stored, before):
        raise LogCorrupt(f"The events {stored.first} to {stored.last} are not as they were written.")
    return lines


def _carry_tombstone(tombstone: Tombstone) -> bytes:
    try:
        return bytes.fromhex(tombstone.chain)
    except ValueError:
        return b""


def _checks(stored: Stored, before: bytes) -> bool:
    return stored.check is None or stored.check == check_of(before, stored.chain, stored.runs, stored.body)


def pieces(stored: Stored, after_pos: int) -> Iterator[Segment]:
    """What of a segment lies behind a position, cut so that within each piece positions follow without a gap."""
    if stored.last_pos <= after_pos:
        return
    if not stored.compacted and stored.pos > after_pos:
        yield stored.segment()
        return
    behind = (line for line in place(stored) if line.pos > after_pos)
    for _, run in groupby(behind, key=lambda line: line.pos - line.seq):
        lines = list(run)
        body = b"".join(line.body + b"\n" for line in lines)
        yield Segment(lines[0].seq, lines[-1].seq, lines[0].pos, body, stored.compacted)


def in_commit_order(
    segments: Iterable[tuple[str, Stored]], after_pos: int, limit_bytes: int
) -> list[tuple[str, Segment]]:
    """Pieces by position, from stored segments in the order of their `pos`; at least one, then until the limit."""
    found: list[tuple[str, Segment]] = []
    size = 0
    for name, piece in _merge(segments, after_pos):
        size += len(piece.body)
        if found and size > limit_bytes:
            break
        found.append((name, piece))
    return found


def _merge(segments: Iterable[tuple[str, Stored]], after_pos: int) -> Iterator[tuple[str, Segment]]:
    waiting: list[tuple[int, str, Segment]] = []
    for name, stored in segments:
        while waiting and waiting[0][0] < stored.pos:
            _, earlier, piece = heapq.heappop(waiting)
            yield earlier, piece
        for piece in pieces(stored, after_pos):
            heapq.heappush(waiting, (piece.pos, name, piece))
    while waiting:
        _, earlier, piece = heapq.heappop(waiting)
        yield earlier, piece
