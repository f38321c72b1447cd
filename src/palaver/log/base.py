"""The `EventLog` seam. `sqlite.py` and `memory.py` implement it; `tests/contract/test_log.py` holds both to it.

Called by the owners of conversations (append, snapshots), by the feed (read) and by faces through the directory (lists,
search, blobs). It stores bytes and never folds them: the owner hands in what the lists and the index shall say, and the
log writes it in the append's own transaction, so that neither can ever disagree with the events.

Must never: show an event before its commit, renumber, or let two writers append after the same head.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from palaver.schema.base import BlobRef
from palaver.schema.view import Listing

T = TypeVar("T")

GENESIS = bytes(16)
"""The chain's value before the first event."""


def chained(chain: bytes, line: bytes) -> bytes:
    """The chain's value after one more event."""
    return blake2b(line, key=chain, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Document:
    """A piece of text that search shall find, and where it stands."""

    message: str
    seq: int
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A client request id that this append uses up, for ever."""

    client_request_id: str
    body_hash: str


@dataclass(frozen=True, slots=True)
class Append:
    """One conversation's next events, already encoded, and everything that must change with them."""

    conversation: str
    after: int
    """The head the owner decided upon. Anything else in the log: `HeadMoved`, nothing written."""
    lines: Sequence[bytes]
    """Encoded events `after + 1 …`, one JSON object each, no newline."""
    listing: Listing | None = None
    """The row of the conversation list from now on; None leaves it as it is. Its `pos` is filled in by the log."""
    documents: Sequence[Document] = ()
    removed_documents: Sequence[str] = ()
    """Message ids that search shall no longer find."""
    claims: Sequence[Claim] = ()
    urgent: bool = False
    """A stop or a settling: may use the space kept in reserve when the disk is full."""


@dataclass(frozen=True, slots=True)
class Appended:
    first: int
    last: int
    pos: int
    """Store-wide position of the first event; the others follow without a gap."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive events as stored: newline-ended JSON lines, ready to be a WebSocket frame.

    A compacted segment stands for `first … last` but holds fewer lines: each dropped run is one `log.compacted` line.
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
class Page(Generic[T]):
    items: Sequence[T]
    next_cursor: str | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Damage:
    """What verify found wrong with one conversation. The others are not affected by it."""

    conversation: str
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
    epoch: str
    """Names this store. A cursor of another epoch is answered with a resync, never with silence."""
    blobs: Blobs

    async def append(self, append: Append) -> Appended:
        """Durable when it returns. Appends of one moment share a commit.

        Raises HeadMoved, StorageFull or LogUnavailable; then nothing of it was written.
        """
        ...

    async def read(self, conversation: str, after: int, limit_bytes: int = 256 << 10) -> Sequence[Segment]:
        """Events after a seq, oldest first: at least one segment if there is any, then until `limit_bytes`.

        The first segment may begin before `after + 1`; `lines_after` cuts it.
        """
        ...

    async def read_all(self, after_pos: int, limit_bytes: int = 256 << 10) -> Sequence[tuple[str, Segment]]:
        """Every conversation's events in the order of their commits: what a store-wide bus replays."""
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
        """Drop what finished blocks made redundant up to `through`; answers how many events were dropped."""
        ...

    async def listing(self, conversation: str) -> Listing | None: ...

    async def list(
        self, *, limit: int = 50, cursor: str | None = None, project: str | None = None, archived: bool | None = False
    ) -> Page[Listing]:
        """Newest first, deleted ones left out. `archived` None lists both kinds."""
        ...

    async def changed(self, after_pos: int, limit: int = 500) -> Sequence[Listing]:
        """Rows changed since a position, oldest change first, deleted ones included: how a list follows without a hole."""
        ...

    async def waiting(self) -> Sequence[Listing]:
        """Conversations with an open request, oldest first."""
        ...

    async def unfinished(self) -> Sequence[str]:
        """Conversations with an open turn or a queue: what recovery looks at. Costs nothing for the others."""
        ...

    async def search(self, query: str, *, limit: int = 20, conversation: str | None = None) -> Sequence[Found]: ...

    async def verify(self, conversation: str | None = None) -> Verified: ...

    async def backup(self, target: Path) -> None:
        """A consistent copy, blobs included, while everything goes on."""
        ...

    async def close(self) -> None: ...


def lines_of(segment: Segment) -> list[bytes]:
    return segment.body.splitlines()


class Reading(Protocol):
    """The half of a log that the feed needs."""

    async def read(self, conversation: str, after: int, limit_bytes: int = 256 << 10) -> Sequence[Segment]: ...

    async def head(self, conversation: str) -> Head | None: ...
