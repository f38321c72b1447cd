"""Rows read out of the raw pages of a SQLite file, without SQLite: for a store that SQLite no longer opens or walks.

Used by `salvage.py`. Looks at every page by itself: of the file, and of the write-ahead log beside it. A damaged header,
schema or inner page therefore costs nothing, a damaged leaf its own rows. Where bytes were lost or came in, the pages behind
stand at other offsets: those are found by what the head of a page looks like. Pages that are no longer in use are found too,
and older versions of those that are; whether a row is what was written is for the caller to prove. However odd the bytes,
nothing here raises anything but OSError.

The format: https://www.sqlite.org/fileformat2.html. Only what Palaver's own store uses: UTF-8, pages of 4,096 bytes
without reserved space.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from palaver.log.sqlite.wal_damage import open_file, wal_of

PAGE_BYTES = 4096
"""What `database.py` makes a store with."""
FILE_HEADER_BYTES = 100
WAL_HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
ALIGNMENTS = 16
"""Offsets within a page at which pages are looked for: more damages than that leave nothing to be found."""
BLOCK_BYTES = 1 << 20
ROW_BYTES = 64 << 20
"""A longer row is none of ours: an event holds 256 KiB, a commit of one conversation some of them."""

_FILE_HEAD = b"SQLite format 3\0"
_TABLE_LEAF, _INDEX_LEAF, _INDEX_INNER = 0x0D, 0x0A, 0x02
_INT_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

Value = int | float | str | bytes | None


class Place(NamedTuple):
    """Where a row begins: in which file, at which byte of it."""

    in_wal: bool
    page: int
    """The offset of its page in the file."""
    cell: int
    first_page: int = 0
    """Where the first page would begin, if all were as far from their places as this one."""


class Row(NamedTuple):
    number: int | None
    """The rowid of a row in a table; None in an index."""
    values: tuple[Value, ...]
    place: Place


class _Malformed(Exception):
    """These bytes are no row."""


@dataclass
class StoreFile:
    """A database file and its write-ahead log, as pages."""

    database: int
    wal: int | None
    size: int
    wal_size: int = 0
    _latest: dict[int, int] = field(default_factory=dict[int, int])
    """Where in the write-ahead log the last version of a page stands."""
    _frames: list[int] = field(default_factory=list[int])
    """Where the pages of the write-ahead log stand, whole ones and others."""

    def rows(self) -> Iterator[Row]:
        """Every row of every page that looks like one of a table or an index."""
        for in_wal, offset, shifts in self._images():
            for cell in self._cells(in_wal, offset):
                for shift in shifts:
                    if row := self.row(Place(in_wal, offset, cell, shift)):
                        yield row
                    if not self._goes_on(Place(in_wal, offset, cell)):
                        break

    def row(self, place: Place) -> Row | None:
        """The row at a place that `rows` named."""
        page = self._image(place.in_wal, place.page)
        # Of a row that goes on elsewhere, the rest is as new as the newest version, or as old as the file.
        for newest in (True, False):
            try:
                return self._read(page, place, newest)
            except (_Malformed, IndexError, ValueError):
                continue
        return None

    # -- pages

    def index_wal(self) -> None:
        assert self.wal is not None
        step = FRAME_HEADER_BYTES + PAGE_BYTES
        first = WAL_HEADER_BYTES + FRAME_HEADER_BYTES
        salts = {os.pread(self.wal, 8, at) for at in (16, WAL_HEADER_BYTES + 8)}
        for start in {first, *_page_offsets(self.wal, self.wal_size, step)}:
            for place in range(first + (start - first) % step, self.wal_size - PAGE_BYTES + 1, step):
                # Elsewhere than where a frame belongs, only what carries this log's salts is one.
                if start == first or os.pread(self.wal, 8, place - FRAME_HEADER_BYTES + 8) in salts:
                    self._frames.append(place)
        self._frames.sort()
        for place in self._frames:
            number = int.from_bytes(os.pread(self.wal, 4, place - FRAME_HEADER_BYTES), "big")
            self._latest[number] = place

    def _images(self) -> Iterator[tuple[bool, int, Sequence[int]]]:
        # The newest first: of two equal rows the first one counts.
        newest = sorted(self._latest.values(), reverse=True)
        yield from ((True, offset, (0,)) for offset in newest)
        starts = [start for start in _page_offsets(self.database, self.size, PAGE_BYTES) if start]
        for start in (0, *starts):
            shifts = self._shifts(start, starts)
            yield from ((False, offset, shifts) for offset in range(start, self.size, PAGE_BYTES))
        known = set(newest)
        yield from ((True, offset, (0,)) for offset in self._frames if offset not in known)

    def _shifts(self, start: int, starts: Sequence[int]) -> Sequence[int]:
        """How far the pages at an alignment may be from their places, the likeliest first: few bytes came in, or were lost.

        Then how far others are: a row may go on behind the damage. Whole pages too many or too few show in the file's own count.
        """
        own = sorted((start, start - PAGE_BYTES), key=abs) if start else [0]
        said = int.from_bytes(os.pread(self.database, 4, 28), "big")
        whole = self.size - said * PAGE_BYTES
        others = [0, *(near for other in starts for near in (other, other - PAGE_BYTES))]
        return tuple(dict.fromkeys([*own, *([whole] if whole % PAGE_BYTES == 0 else []), *others]))

    def _image(self, in_wal: bool, offset: int) -> bytes:
        file = self.wal if in_wal else self.database
        data = os.pread(file, PAGE_BYTES, offset) if file is not None else b""
        return data.ljust(PAGE_BYTES, b"\0")

    def _page(self, number: int, newest: bool, first_page: int) -> bytes:
        if newest and number in self._latest:
            return self._image(True, self._latest[number])
        offset = (number - 1) * PAGE_BYTES + first_page
        if not number > 0 or not 0 <= offset <= self.size:
            raise _Malformed
        return self._image(False, offset)

    # -- cells and records

    def _cells(self, in_wal: bool, offset: int) -> list[int]:
        page = self._image(in_wal, offset)
        start = FILE_HEADER_BYTES if _is_first(page, in_wal, offset) else 0
        kind = page[start]
        if kind not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INNER):
            return []
        first = start + (12 if kind == _INDEX_INNER else 8)
        count = int.from_bytes(page[start + 3 : start + 5], "big")
        if first + 2 * count > PAGE_BYTES:
            return []
        pointers = (int.from_bytes(page[at : at + 2], "big") for at in range(first, first + 2 * count, 2))
        return [pointer for pointer in pointers if first + 2 * count <= pointer < PAGE_BYTES]

    def _read(self, page: bytes, place: Place, newest: bool) -> Row:
        kind, length, at = _cell_head(page, place)
        number: int | None = None
        if kind == _TABLE_LEAF:
            number, at = _varint(page, at)
        if not 0 < length <= ROW_BYTES:
            raise _Malformed
        return Row(number, _record(self._payload(page, at, length, place, newest)), place)

    def _goes_on(self, place: Place) -> bool:
        """Whether a row takes more than its own page."""
        try:
            kind, length, _ = _cell_head(self._image(place.in_wal, place.page), place)
        except IndexError:
            return False
        return _local_bytes(length, kind == _TABLE_LEAF) < length

    def _payload(self, page: bytes, at: int, length: int, place: Place, newest: bool) -> bytes:
        is_table = _cell_head(page, place)[0] == _TABLE_LEAF
        local = _local_bytes(length, is_table)
        if at + local > PAGE_BYTES:
            raise _Malformed
        parts = [page[at : at + local]]
        left = length - local
        following = int.from_bytes(page[at + local : at + local + 4], "big") if left else 0
        while left:
            overflow = self._page(following, newest, place.first_page)
            parts.append(overflow[4 : 4 + min(left, PAGE_BYTES - 4)])
            left -= len(parts[-1])
            following = int.from_bytes(overflow[:4], "big")
        return b"".join(parts)


@contextmanager
def open_store_file(database: Path) -> Iterator[StoreFile]:
    """Raises OSError. Works on a copy of nothing: whoever writes meanwhile must be kept out by the caller."""
    with ExitStack() as stack:
        handle = open_file(database)
        stack.callback(os.close, handle)
        file = StoreFile(handle, None, os.fstat(handle).st_size)
        try:
            file.wal = open_file(wal_of(database))
        except FileNotFoundError:
            pass
        else:
            stack.callback(os.close, file.wal)
            file.wal_size = os.fstat(file.wal).st_size
            file.index_wal()
        yield file


def _cell_head(page: bytes, place: Place) -> tuple[int, int, int]:
    """The kind of the page, the length of a row, and where in the page it goes on. Raises IndexError."""
    kind = page[FILE_HEADER_BYTES if _is_first(page, place.in_wal, place.page) else 0]
    length, at = _varint(page, place.cell + (4 if kind == _INDEX_INNER else 0))
    return kind, length, at


_HEAD = re.compile(rb"(?s)(?=[\x0d\x0a\x02][\x00-\x0f].[\x00-\x07].[\x00-\x10].)")
"""How a page that holds rows begins: its kind, a free block, the number of cells, where they are."""


def _page_offsets(file: int, size: int, step: int) -> list[int]:
    """At which offsets, counted modulo a step, pages begin by their looks: the most frequent ones."""
    found: Counter[int] = Counter()
    for start in range(0, size, BLOCK_BYTES):
        block = os.pread(file, BLOCK_BYTES + PAGE_BYTES, start)
        for match in _HEAD.finditer(block, 0, min(BLOCK_BYTES + 8, len(block))):
            at = match.start()
            # The first page's own head stands behind the file's.
            is_first = block.startswith(_FILE_HEAD, max(at - FILE_HEADER_BYTES, 0))
            if at < BLOCK_BYTES and not is_first and _looks_like_rows(block[at : at + PAGE_BYTES]):
                found[(start + at) % step] += 1
    return [offset for offset, _ in found.most_common(ALIGNMENTS)]


def _looks_like_rows(page: bytes) -> bool:
    if len(page) < PAGE_BYTES:
        return False
    first = 12 if page[0] == _INDEX_INNER else 8
    count, content = int.from_bytes(page[3:5], "big"), int.from_bytes(page[5:7], "big")
    end = first + 2 * count
    if not count or not end <= content < PAGE_BYTES:
        return False
    pointers = {int.from_bytes(page[at : at + 2], "big") for at in range(first, end, 2)}
    return len(pointers) == count and min(pointers) >= content and max(pointers) < PAGE_BYTES


def _is_first(page: bytes, in_wal: bool, offset: int) -> bool:
    """The first page has the file's header before its own."""
    return (not in_wal and offset == 0) or page.startswith(_FILE_HEAD)


def _local_bytes(length: int, is_table: bool) -> int:
    """How much of a row stands in its own page; the rest is in pages of its own."""
    most = PAGE_BYTES - 35 if is_table else (PAGE_BYTES - 12) * 64 // 255 - 23
    if length <= most:
        return length
    least = (PAGE_BYTES - 12) * 32 // 255 - 23
    local = least + (length - least) % (PAGE_BYTES - 4)
    return local if local <= most else least


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(at, at + 8):
        byte = data[place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + 1
    return value << 8 | data[at + 8], at + 9


def _record(payload: bytes) -> tuple[Value, ...]:
    header, at = _varint(payload, 0)
    if not at <= header <= len(payload):
        raise _Malformed
    values: list[Value] = []
    body = header
    while at < header:
        kind, at = _varint(payload, at)
        value, body = _value(payload, kind, body)
        values.append(value)
    if body != len(payload):
        raise _Malformed
    return tuple(values)


def _value(payload: bytes, kind: int, at: int) -> tuple[Value, int]:
    if kind == 0:
        return None, at
    if kind in (8, 9):
        return kind - 8, at
    if kind in _INT_BYTES:
        end = at + _INT_BYTES[kind]
        value: Value = int.from_bytes(payload[at:end], "big", signed=True)
    elif kind == 7:
        end = at + 8
        value = 0.0  # No column of ours that is read here holds one.
    elif kind >= 12:
        end = at + (kind - 12) // 2
        data = payload[at:end]
        value = data if kind % 2 == 0 else data.decode()
    else:
        raise _Malformed
    if end > len(payload):
        raise _Malformed
    return value, end
