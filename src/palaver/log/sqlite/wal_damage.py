"""Damage to the write-ahead log, found before SQLite opens it.

`database.py` and `inspect.py` ask here first. SQLite reads a write-ahead log up to its first bad frame, drops the rest without
a word, and writes over it or deletes it when it closes the store. A crash leaves such an end: a last frame that is not
complete, then perhaps frames of an earlier log with other salts. It is damage when committed frames of the same log stand behind
a bad one, or when a single bit makes the difference: those commits were answered, and `palaver salvage` can read them.

Pure reading: never opens the store with SQLite, never writes.

The format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from errno import EINVAL
from functools import cache
from pathlib import Path
from struct import Struct
from typing import Literal, NamedTuple

PAGE_BYTES = 4096
HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES
LOOKS = 3
"""A server may be writing: what is damage must be there again, in the same bytes, at the next look."""

_MAGIC = 0x377F0682
"""Its lowest bit says in which byte order the checksums are computed."""
_MASK = 0xFFFF_FFFF
_SUMMED_BYTES = 8 + PAGE_BYTES
"""Of a frame: the page's number, the commit's size, and the page."""
_FIELDS = Struct(">6I")

Checksum = tuple[int, int]
_Order = Literal["<", ">"]
_ORDERS: tuple[_Order, ...] = ("<", ">")


def wal_of(database: Path) -> Path:
    """The write-ahead log of a store: beside the file itself, where its name is a link."""
    return Path(f"{database.resolve()}-wal")


def open_file(path: Path) -> int:
    """A descriptor that reads a plain file. Raises OSError for anything else: a pipe would make the reader wait."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(EINVAL, "It is not a file", str(path))
    return handle


def find_wal_damage(database: Path) -> str | None:
    """What is wrong with the write-ahead log of a store, in a sentence. Raises OSError."""
    wal = wal_of(database)
    found: _Fault | None = None
    for _ in range(LOOKS):
        again = _look(wal)
        if again is None or again == found:
            found = again
            break
        found = again
    return found.words if found else None


class _Fault(NamedTuple):
    words: str
    header: bytes
    frame: bytes


class _Frame(NamedTuple):
    page: int
    commit: int
    """The size of the database after the commit that ends here; 0 inside a commit."""
    salts: Checksum
    checksum: Checksum
    data: bytes

    def sum_from(self, before: Checksum, order: _Order) -> Checksum:
        return _sum_of(self.data[:8] + self.data[FRAME_HEADER_BYTES:], before, order)


def _look(path: Path) -> _Fault | None:
    try:
        handle = open_file(path)
    except FileNotFoundError:
        return None
    try:
        return _Wal(handle).fault()
    finally:
        os.close(handle)


class _Wal:
    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._header = os.pread(handle, HEADER_BYTES, 0)

    def fault(self) -> _Fault | None:
        if len(self._header) < HEADER_BYTES:
            return None
        magic, _, page_size, _, *rest = Struct(">8I").unpack(self._header)
        salts, stored = (rest[0], rest[1]), (rest[2], rest[3])
        order: _Order = ">" if magic & 1 else "<"
        named = magic & ~1 == _MAGIC and page_size == PAGE_BYTES
        if not named or _sum_of(self._header[:24], (0, 0), order) != stored:
            return self._fault_of_header(stored)
        before = stored
        frames = self._frames()
        for number, frame in enumerate(frames, 1):
            if frame.salts == salts and frame.sum_from(before, order) == frame.checksum:
                before = frame.checksum
            elif _is_one_bit_off(frame, salts, before, order) or _has_commit(frames, salts, frame.checksum, order):
                return self._fault_at(number, frame)
            else:
                return None
        return None

    def _fault_of_header(self, stored: Checksum) -> _Fault | None:
        """None where no commit follows: a header that was never completed, and nothing behind it."""
        for order in _ORDERS:
            # It may be its own checksum that was hit; that of its other bytes leads on then.
            for before in (stored, _sum_of(self._header[:24], (0, 0), order)):
                if _has_commit(self._frames(), None, before, order):
                    return _Fault("The header of the write-ahead log is damaged.", self._header, b"")
        return None

    def _fault_at(self, number: int, frame: _Frame) -> _Fault:
        words = (
            f"The write-ahead log is damaged at frame {number:,}: SQLite would drop what was committed from there on."
        )
        return _Fault(words, self._header, frame.data)

    def _frames(self) -> Iterator[_Frame]:
        offset = HEADER_BYTES
        while len(data := os.pread(self._handle, FRAME_BYTES, offset)) == FRAME_BYTES:
            page, commit, salt, salt_2, checksum, checksum_2 = _FIELDS.unpack_from(data)
            yield _Frame(page, commit, (salt, salt_2), (checksum, checksum_2), data)
            offset += FRAME_BYTES


def _has_commit(frames: Iterable[_Frame], salts: Checksum | None, before: Checksum, order: _Order) -> bool:
    """Whether one of these frames ends a commit and continues the checksum of the frame before it."""
    for frame in frames:
        if frame.commit and frame.salts == (salts or frame.salts) and frame.sum_from(before, order) == frame.checksum:
            return True
        before = frame.checksum
    return False


def _is_one_bit_off(frame: _Frame, salts: Checksum, before: Checksum, order: _Order) -> bool:
    """Whether one flipped bit is all that is wrong with a frame. No write that was cut short looks like that."""
    found = frame.sum_from(before, order)
    if frame.salts != salts:
        return found == frame.checksum and _has_one_bit(frame.salts, salts)
    difference = ((frame.checksum[0] - found[0]) & _MASK, (frame.checksum[1] - found[1]) & _MASK)
    return _has_one_bit(frame.checksum, found) or difference in _bit_differences()


def _has_one_bit(one: Checksum, other: Checksum) -> bool:
    return (one[0] ^ other[0]).bit_count() + (one[1] ^ other[1]).bit_count() == 1


def _sum_of(data: bytes, before: Checksum, order: _Order) -> Checksum:
    """SQLite's checksum of an even number of words, continued from another."""
    first, second = before
    words = iter(Struct(f"{order}{len(data) // 4}I").unpack(data))
    for one, other in zip(words, words, strict=True):
        first = (first + one + second) & _MASK
        second = (second + other + first) & _MASK
    return first, second


@cache
def _bit_differences() -> frozenset[Checksum]:
    """How far the checksum of a frame is off for each of its bits. It is linear: a word enters with a factor of its own."""
    found: set[Checksum] = set()
    odd, even = (1, 1), (0, 1)
    for _ in range(_SUMMED_BYTES // 8):
        for one, two in (odd, even):
            for bit in range(32):
                found.add((one << bit & _MASK, two << bit & _MASK))
                found.add((-(one << bit) & _MASK, -(two << bit) & _MASK))
        odd, even = _next_factors(odd), _next_factors(even)
    return frozenset(found)


def _next_factors(factors: Checksum) -> Checksum:
    first, second = factors
    return (first + second) & _MASK, (first + 2 * second) & _MASK
