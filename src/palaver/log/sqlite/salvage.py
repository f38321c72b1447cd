"""What is left of a damaged store: for each conversation the longest run of events that its hash chain proves.

Used by `palaver salvage`, and by `palaver verify` for a store that SQLite cannot walk. Reads the pages themselves
(`page_carver.py`), so it depends on no index and no schema. Every event line names its conversation and its number, and every
segment holds the chain's value at its end: a stale, torn or altered segment proves nothing and is left out.

Must never write to the damaged store, or take a line for proven whose bytes may have changed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgspec

from palaver.errors import LogCorrupt
from palaver.log.base import GENESIS, Damage, lines_of, number_lines
from palaver.log.segments import Stored, decode_runs, open_segment
from palaver.log.sqlite.page_carver import Place, Row, StoreFile, open_store_file

_ID_CHARS = 64
"""Of a blob: a SHA-256 in hexadecimal."""


class _Line(msgspec.Struct):
    conversation: str = ""
    seq: int = 0


_line = msgspec.json.Decoder(_Line)


class _Head(NamedTuple):
    name: str
    seq: int
    chain: bytes


class _Candidate(NamedTuple):
    """A segment that was found, without its body."""

    first: int
    last: int
    chain: bytes
    place: Place


@dataclass(frozen=True, slots=True)
class Remains:
    """What is left of one conversation."""

    conversation: str
    segments: Sequence[Stored]
    """Proven, from the first event on."""
    loose: Sequence[bytes]
    """Lines of events behind the damage: readable, but nothing proves them."""
    expected: int
    """The number of its last event, as far as anything that was found says."""

    @property
    def last(self) -> int:
        return self.segments[-1].last if self.segments else 0

    @property
    def is_whole(self) -> bool:
        return bool(self.segments) and self.last >= self.expected

    def damage(self) -> Damage | None:
        if self.is_whole:
            return None
        return Damage(
            self.conversation, self.last + 1, f"The events {self.last + 1} to {self.expected} are damaged or missing."
        )


@dataclass
class Remnants:
    """The inventory of a store file. Bodies are read again when a conversation is asked for: a log may outgrow memory."""

    _file: StoreFile
    _found: Mapping[str, list[_Candidate]] = field(default_factory=dict[str, list[_Candidate]])
    _heads: Mapping[str, _Head] = field(default_factory=dict[str, _Head])
    blob_types: Mapping[str, str] = field(default_factory=dict[str, str])
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])
    """By its name, the number of each conversation in the store."""

    @property
    def conversations(self) -> Sequence[str]:
        """In the order of their numbers, which is that of their first events."""
        return list(self._found)

    def of(self, conversation: str) -> Remains:
        candidates = self._found.get(conversation, [])
        segments = self._proven(candidates)
        last, chain = (segments[-1].last, segments[-1].chain) if segments else (0, GENESIS)
        head = self._heads.get(conversation)
        # A head with the chain's own value proves the end, whatever became of its number.
        said = [head.seq] if head is not None and head.chain != chain else []
        expected = max([last, *said, *(known.last for known in candidates)])
        return Remains(conversation, segments, self._loose(candidates, last), expected)

    def _proven(self, candidates: Sequence[_Candidate]) -> list[Stored]:
        """The longest way through segments of which each is chained to the one before."""
        beginnings: dict[int, list[_Candidate]] = defaultdict(list)
        for candidate in candidates:
            beginnings[candidate.first].append(candidate)
        ways: dict[tuple[int, bytes], tuple[tuple[int, bytes] | None, _Candidate | None]] = {(0, GENESIS): (None, None)}
        # By the seq at which a way ends: whatever leads there is known when it is looked at.
        waiting = [(0, GENESIS)]
        while waiting:
            waiting.sort()
            here = waiting.pop(0)
            for candidate in beginnings.get(here[0] + 1, ()):
                there = (candidate.last, candidate.chain)
                if there not in ways and self._opens(candidate, here[1]):
                    ways[there] = (here, candidate)
                    waiting.append(there)
        end: tuple[int, bytes] | None = max(ways, key=lambda way: way[0])
        way: list[Stored] = []
        while end is not None:
            end, by = ways[end]
            if by is not None and (stored := _segment_of(self._file.row(by.place))):
                way.append(stored[1])
        return way[::-1]

    def _opens(self, candidate: _Candidate, before: bytes) -> bool:
        found = _segment_of(self._file.row(candidate.place))
        try:
            return found is not None and bool(open_segment(found[1], before))
        except (LogCorrupt, msgspec.MsgspecError, ValueError):
            return False

    def _loose(self, candidates: Sequence[_Candidate], last: int) -> list[bytes]:
        lines: dict[int, bytes] = {}
        for candidate in sorted(candidates, key=lambda known: known.first):
            if candidate.last > last and (found := _segment_of(self._file.row(candidate.place))):
                for line in lines_of(found[1].segment()):
                    if (known := _decode(line)) and known.seq > last:
                        lines.setdefault(known.seq, line)
        return [lines[seq] for seq in sorted(lines)]


@contextmanager
def open_remnants(database: Path) -> Iterator[Remnants]:
    """Raises OSError. Nobody may write to the store meanwhile."""
    with open_store_file(database) as file:
        yield _inventory(file)


def _inventory(file: StoreFile) -> Remnants:
    found = _Found()
    for row in file.rows():
        if stored := _segment_of(row):
            found.add_segment(*stored, row.place)
            continue
        match row:
            case Row(int(number), (None, str(name), int(head), bytes(chain), int())) if len(chain) == len(GENESIS):
                found.add_head(number, _Head(name, head, chain))
            case Row(None, (str(blob), str(mime), int())) if len(blob) == _ID_CHARS:
                found.blobs.setdefault(blob, mime)
            case _:
                pass
    return found.remnants(file)


class _Found:
    """What the rows say, while they are gathered."""

    def __init__(self) -> None:
        self.blobs: dict[str, str] = {}
        self._candidates: dict[tuple[int, str], dict[tuple[bytes, ...], _Candidate]] = defaultdict(dict)
        """By the number of the conversation and the name that a segment's own lines give."""
        self._names: dict[int, Counter[str]] = defaultdict(Counter)
        """What each number's conversation is called, and how often."""
        self._heads: dict[int, _Head] = {}

    def add_segment(self, number: int, segment: Stored, place: Place) -> None:
        # By content, so that a torn version of a page never stands in for a good one.
        key = (b"%d %d" % (segment.first, segment.last), segment.chain, blake2b(segment.body, digest_size=16).digest())
        named = names_in(segment.body)
        self._names[number].update(named)
        name = named.most_common(1)[0][0] if named else ""
        candidate = _Candidate(segment.first, segment.last, segment.chain, place)
        self._candidates[number, name].setdefault(key, candidate)

    def add_head(self, number: int, head: _Head) -> None:
        self._names[number][head.name] += 1
        known = self._heads.get(number)
        if known is None or head.seq > known.seq:
            self._heads[number] = head

    def remnants(self, file: StoreFile) -> Remnants:
        """A conversation is called what most say. A segment is tried with its number's conversation and with that it names."""
        called = {number: names.most_common(1)[0][0] for number, names in sorted(self._names.items()) if names}
        candidates: dict[str, list[_Candidate]] = {name: [] for name in called.values()}
        for (number, own), known in self._candidates.items():
            for name in {called.get(number, own), own} & candidates.keys():
                candidates[name].extend(known.values())
        heads = {called[number]: head for number, head in sorted(self._heads.items())}
        return Remnants(file, candidates, heads, self.blobs, {name: number for number, name in called.items()})


def _segment_of(row: Row | None) -> tuple[int, Stored] | None:
    """The number of its conversation and the segment, if that is what the row is."""
    match row:
        case Row(
            int(pos),
            (
                None,
                int(number),
                int(first),
                int(last),
                bytes(chain),
                0 | 1 as compacted,
                last_pos,
                check,
                runs,
                bytes(body),
            ),
        ) if 0 < first <= last and len(chain) == len(GENESIS) and body.endswith(b"\n"):
            if not compacted:
                # Its lines are numbered by their places: another count is another row.
                whole = body.count(b"\n") == last - first + 1
                return (number, Stored(first, last, pos, pos + last - first, body, chain)) if whole else None
            if isinstance(last_pos, int) and isinstance(check, bytes) and isinstance(runs, bytes):
                stored = Stored(first, last, pos, last_pos, body, chain, check, decode_runs(runs))
                return (number, stored) if number_lines(stored.segment())[-1].seq == last else None
            return None
        case _:
            return None


def names_in(body: bytes) -> Counter[str]:
    """The conversation that a segment's lines name: one, unless a line was changed."""
    lines = filter(None, map(_decode, body.split(b"\n")))
    return Counter(line.conversation for line in lines if line.conversation)


def _decode(line: bytes) -> _Line | None:
    try:
        return _line.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
