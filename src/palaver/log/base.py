"""The `EventLog` seam. `sqlite/` and `memory.py` implement it; `tests/contract/test_log.py` holds both to it.

Called by the owners of conversations (append, snapshots), by the feed (read) and by faces through the directory (lists,
search, blobs). It stores bytes and never folds them: the owner hands in what the lists and the index shall say, and the
log writes it in the append's own transaction, so that neither can ever disagree with the events.

Must never: show an event before its commit, renumber, or let two writers append after the same head.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Struct

from palaver.schema.base import BlobRef, Shown
from palaver.schema.view import Listing

T = TypeVar("T")

GENESIS = bytes(16)
"""The chain's value before the first event."""


# Every event there is passes here, so it counts that copying a digest takes a third less time than making one.
_digest = blake2b(digest_size=16)


def chain_hash(chain: bytes, line: bytes) -> bytes:
    """The chain's value after one more event."""
    return chain_hash_through(chain, (line,))


def chain_hash_through(chain: bytes, lines: Iterable[bytes]) -> bytes:
    """The chain's value after several more: each time the hash of the value so far and the line."""
    for line in lines:
        digest = _digest.copy()
        digest.update(chain)
        digest.update(line)
        chain = digest.digest()
    return chain


@dataclass(frozen=True, slots=True)
class Document:
    """A piece of text that search shall find, and where it stands."""

    message: str
    seq: int
    role: str
    text: str
    ts: int = 0
    """When it was said; 0: unknown."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A client request id that this append uses up, for ever."""

    client_request_id: str
    body_hash: str


class Run(Shown):
    """A turn among all turns of a server: what ran, for whom, and how it ended."""

    run: str
    """The turn's id."""
    conversation: str
    project: str | None
    agent: str
    backend: str
    parent: str | None
    """The turn of another conversation that it works for."""
    trigger: str
    """What began it, as `Trigger.kind`."""
    exchange: str | None
    """The exchange between two agents that it answers."""
    status: Literal["running", "completed", "failed", "cancelled"]
    detail: str | None
    """Why it failed or was cancelled, for a person."""
    started_at: int
    ended_at: int | None = None
    cost_usd: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0


# Structs rather than dataclasses, these two: they are made for every append, and a frozen dataclass takes ten times as long.


class Append(Struct, frozen=True):
    """One conversation's next events, already encoded, and everything that must change with them."""

    conversation: str
    after: int
    """The head the owner decided upon. Anything else in the log: `HeadMoved`, nothing written."""
    lines: Sequence[bytes]
    """Encoded events `after + 1 …`, at least one, one JSON object each, no newline."""
    listing: Listing | None = None
    """The row of the conversation list from now on; None leaves it as it is. Its `pos` is filled in by the log."""
    documents: Sequence[Document] = ()
    removed_documents: Sequence[str] = ()
    """Message ids that search shall no longer find."""
    claims: Sequence[Claim] = ()
    runs: Sequence[Run] = ()
    """Each takes the place of what was known of that run; one without a parent keeps the one it has."""
    urgent: bool = False
    """A stop or a settling: may use the space kept in reserve when the disk is full."""


class Appended(Struct, frozen=True):
    first: int
    last: int
    pos: int
    """Store-wide position of the first event; the others follow without a gap."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive events as stored: newline-ended JSON lines, ready to be a WebSocket frame.

    A compacted segment stands for `first … last` but holds fewer lines: each dropped run is one `log.compacted` line.
    `pos` is the position of the event on its first line; only in what `read_all` returns do the others follow gap-free.
    """

    first: int
    last: int
    pos: int
    body: bytes
    compacted: bool = False


@dataclass(frozen=True, slots=True)
class Head:
    seq: int
    chain: bytes


@dataclass(frozen=True, slots=True)
class Used:
    """What a client request id was used for: the events `first … last` that the command made."""

    body_hash: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A settled message as the snapshot keeps it: `seq` is its place for ever, `body` its JSON."""

    seq: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The folded view at `seq`, split so that opening a conversation does not cost its history.

    `head` is the State as JSON with `messages` empty and `offset` = the number of all messages; the messages are rows of
    their own, of which `load_snapshot` returns the last ones.
    """

    seq: int
    head: bytes
    messages: Sequence[StoredMessage] = ()
    replace_all: bool = False
    """On saving: `messages` are all there are (history was rewritten), not only those changed since the last snapshot."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A message that may help with another, whole up to what the index holds of it."""

    conversation: str
    message: str
    seq: int
    ts: int
    role: str
    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A search hit. `before`, `match` and `after` are the text around it."""

    conversation: str
    message: str
    seq: int
    role: str
    before: str
    match: str
    after: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that conversations are about, as they name it."""

    project: str
    conversations: int
    unfinished: int
    """Of those, how many are at work or have something to do."""
    waiting: int
    """How many wait for a person."""
    updated_at: int


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    items: Sequence[T]
    next_cursor: str | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Damage:
    """What verify found wrong with one conversation. The others are not affected by it."""

    conversation: str
    """Empty: the file itself is damaged, beside what is said of conversations."""
    seq: int
    what: str


@dataclass(frozen=True, slots=True)
class Verified:
    conversations: int
    events: int
    damages: Sequence[Damage] = field(default_factory=tuple)


class Blobs(Protocol):
    """Large payloads, kept once under the SHA-256 of their bytes. On disk before any event names them."""

    async def put(self, data: bytes, mime: str) -> BlobRef: ...

    async def get(self, blob: str) -> tuple[bytes, str] | None:
        """The bytes and their type."""
        ...


class EventLog(Protocol):
    @property
    def epoch(self) -> str:
        """Names this store. A cursor of another epoch is answered with a resync, never with silence."""
        ...

    @property
    def blobs(self) -> Blobs: ...

    async def append(self, append: Append) -> Appended:
        """Durable when it returns. Appends of one moment share a commit.

        Raises HeadMoved (also for a client request id that is used up), StorageFull or LogUnavailable; then nothing of
        it was written. A caller that is cancelled does not know: it reads the head.
        """
        ...

    async def read(self, conversation: str, after: int, limit_bytes: int = 256 << 10) -> Sequence[Segment]:
        """Events after a seq, oldest first: at least one segment if there is any, then until `limit_bytes`.

        The first segment may begin before `after + 1`; `lines_after` cuts it.
        """
        ...

    async def read_all(self, after_pos: int, limit_bytes: int = 256 << 10) -> Sequence[tuple[str, Segment]]:
        """Every conversation's events in the order of their commits: what a store-wide bus replays.

        Cut exactly at the position. The position of a segment's last event is `pos + last - first`.
        """
        ...

    async def head(self, conversation: str) -> Head | None:
        """None: no such conversation."""
        ...

    async def position(self) -> int:
        """The store-wide position of the latest event; 0 when empty."""
        ...

    async def used(self, conversation: str, client_request_id: str) -> Used | None: ...

    async def save_snapshot(self, conversation: str, snapshot: Snapshot) -> None:
        """Keep a folded view. Derived data: a lost snapshot costs time, never content. An older one never wins."""
        ...

    async def load_snapshot(self, conversation: str, tail: int) -> Snapshot | None:
        """The newest snapshot with its last `tail` messages, oldest first."""
        ...

    async def messages_before(self, conversation: str, before_seq: int, limit: int) -> Sequence[StoredMessage]:
        """Stored messages that began before `before_seq`: the last `limit` of them, oldest first."""
        ...

    async def compact(self, conversation: str, through: int) -> int:
        """Drop what finished blocks made redundant up to `through`; answers how many events were dropped.

        Raises LogCorrupt when the chain does not hold: damage is never compacted away.
        """
        ...

    async def listing(self, conversation: str) -> Listing | None: ...

    async def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        project: str | None = None,
        archived: bool | None = False,
        children: bool = False,
        root: str | None = None,
    ) -> Page[Listing]:
        """Newest first, deleted ones left out. `archived` None lists both kinds. Raises Invalid for a foreign cursor.

        Conversations of subagents are left out too, unless `children`. `root` lists one tree: its top and all below.
        """
        ...

    async def changed(self, after_pos: int, limit: int = 500) -> Sequence[Listing]:
        """Rows changed since a position, oldest change first, deleted ones included: how a list follows without a hole."""
        ...

    async def folders(self) -> Sequence[Folder]:
        """The folders of all conversations, the archived too and the deleted not, by name."""
        ...

    async def streams(self, prefix: str) -> Sequence[str]:
        """The names of all streams that begin so, sorted: those in no list too, such as a project's own."""
        ...

    async def waiting(self) -> Sequence[Listing]:
        """Conversations with an open request, oldest first."""
        ...

    async def unfinished(self) -> Sequence[str]:
        """Conversations with an open turn or a queue: what recovery looks at. Costs nothing for the others."""
        ...

    async def runs(
        self,
        *,
        conversation: str | None = None,
        project: str | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> Sequence[Run]:
        """Newest first, those of deleted conversations left out. `before` names the run a page ended with; Invalid if none."""
        ...

    async def run(self, run: str) -> Run | None: ...

    async def children_of_run(self, run: str) -> Sequence[Run]:
        """The runs that work or worked for it, oldest first."""
        ...

    async def search(self, query: str, *, limit: int = 20, conversation: str | None = None) -> Sequence[Found]:
        """Texts that hold every word, the last one as a beginning. Any string is a query.

        Of the newest hits the most fitting come first.
        """
        ...

    async def recall(
        self, text: str, *, project: str | None, limit: int = 20, but: str | None = None
    ) -> Sequence[Recalled]:
        """Messages of a project that have most to do with a text: any of its telling words, the rarer and newer first.

        `but` leaves one conversation out, with its branches and all that works for it.
        """
        ...

    async def verify(self, conversation: str | None = None) -> Verified:
        """Recompute every digest of one conversation or of all, and look after the blobs they name."""
        ...

    async def backup(self, target: Path) -> None:
        """A consistent copy, blobs included, while everything goes on. Raises Invalid unless `target` is free."""
        ...

    async def close(self) -> None: ...


class Line(NamedTuple):
    """One line of a segment and its number. A `log.compacted` line stands for `first … seq`, any other for one event."""

    first: int
    seq: int
    body: bytes


class Tombstone(Struct, frozen=True, tag_field="type", tag="log.compacted"):
    """All that the log itself needs of a `log.compacted` line."""

    seq: int
    first: int
    chain: str


_tombstone = msgspec.json.Decoder(Tombstone)


def lines_of(segment: Segment) -> list[bytes]:
    return segment.body.split(b"\n")[:-1]


def number_lines(segment: Segment) -> list[Line]:
    """The lines with their numbers, which follow from their places: only a line that stands for several is decoded."""
    lines: list[Line] = []
    following = segment.first
    for body in lines_of(segment):
        seq = _last_of(body, following) if segment.compacted else following
        lines.append(Line(following, seq, body))
        following = seq + 1
    return lines


def lines_after(segment: Segment, after: int) -> list[bytes]:
    """The lines a reader with this cursor has not seen. The first may stand for events on both sides of the cursor."""
    if segment.first > after:
        return lines_of(segment)
    if not segment.compacted:
        return lines_of(segment)[after + 1 - segment.first :]
    return [line.body for line in number_lines(segment) if line.seq > after]


def _last_of(body: bytes, first: int) -> int:
    tombstone = tombstone_of(body)
    return tombstone.seq if tombstone and tombstone.first <= first <= tombstone.seq else first


def tombstone_of(body: bytes) -> Tombstone | None:
    """What a line of a compacted segment stands for; None: for itself."""
    if b'"log.compacted"' not in body:
        return None
    try:
        return _tombstone.decode(body)
    except msgspec.DecodeError:
        return None


class Reading(Protocol):
    """The half of a log that the feed needs."""

    async def read(self, conversation: str, after: int, limit_bytes: int = 256 << 10) -> Sequence[Segment]: ...

    async def head(self, conversation: str) -> Head | None: ...
