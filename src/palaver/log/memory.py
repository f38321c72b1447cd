"""`MemoryLog`: the whole `EventLog` contract without a disk. Ships for tests and demos.

Keeps segments as the SQLite store does and shares its compaction, verify and ranking; only durability is missing. Nothing
here waits, so every method is one step of the event loop and needs no lock.
"""

import asyncio
from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path
from secrets import token_hex

import msgspec
from msgspec.structs import replace

from palaver.log.base import (
    GENESIS,
    Append,
    Appended,
    Document,
    Folder,
    Found,
    Head,
    Page,
    Recalled,
    Run,
    Segment,
    Snapshot,
    StoredMessage,
    Used,
    Verified,
    chain_hash_through,
)
from palaver.log.compaction import SMALL_BYTES, compact
from palaver.log.listings import Place, cursor_of, is_child, is_unfinished, is_waiting, place_of
from palaver.log.plain_search import Said, recall, search
from palaver.log.refusals import body_of, claim_used, head_moved, refuse_occupied, snapshot_ahead
from palaver.log.runs import unknown_run
from palaver.log.segments import SPAN, Stored, in_commit_order
from palaver.log.verify import Audit, blob_changed, blob_missing
from palaver.schema.base import BlobRef
from palaver.schema.view import Listing

BACKUP_FILE = "memory.msgpack"
_EMPTY = Head(0, GENESIS)


@dataclass
class _Conversation:
    name: str
    number: int
    head: Head = _EMPTY
    settled: int = 0
    segments: list[Stored] = field(default_factory=list[Stored])
    listing: Listing | None = None
    used: dict[str, Used] = field(default_factory=dict[str, Used])
    snapshot: Snapshot | None = None
    messages: dict[int, bytes] = field(default_factory=dict[int, bytes])
    documents: dict[int, Document] = field(default_factory=dict[int, Document])


@dataclass
class _Store:
    """Everything there is, as plain data: what a backup writes."""

    epoch: str
    position: int = 0
    documents: int = 0
    conversations: dict[str, _Conversation] = field(default_factory=dict[str, _Conversation])
    blobs: dict[str, tuple[bytes, str]] = field(default_factory=dict[str, tuple[bytes, str]])
    runs: dict[str, Run] = field(default_factory=dict[str, Run])
    """In the order in which they began."""


class MemoryBlobs:
    def __init__(self, blobs: dict[str, tuple[bytes, str]]) -> None:
        self._blobs = blobs

    async def put(self, data: bytes, mime: str) -> BlobRef:
        blob = sha256(data).hexdigest()
        _, mime = self._blobs.setdefault(blob, (bytes(data), mime))
        return BlobRef(id=blob, size=len(data), mime=mime)

    async def get(self, blob: str) -> tuple[bytes, str] | None:
        return self._blobs.get(blob)


class MemoryLog:
    def __init__(self) -> None:
        self._use(_Store(epoch=token_hex(8)))

    @classmethod
    def restore_from(cls, backup: Path) -> "MemoryLog":
        """A log of its own from what `backup` wrote."""
        log = cls()
        log._use(msgspec.msgpack.decode((backup / BACKUP_FILE).read_bytes(), type=_Store))
        return log

    def _use(self, store: _Store) -> None:
        self._store = store
        self.epoch = store.epoch
        self.blobs = MemoryBlobs(store.blobs)
        self._by_position = sorted(
            (stored.pos, known.name) for known in store.conversations.values() for stored in known.segments
        )

    # -- writing

    async def append(self, append: Append) -> Appended:
        body = body_of(append)
        known = self._store.conversations.get(append.conversation)
        head = known.head if known else _EMPTY
        if append.after != head.seq:
            raise head_moved(append, head.seq)
        for claim in append.claims:
            if known and claim.client_request_id in known.used:
                raise claim_used(append, claim.client_request_id)
        if known is None:
            known = _Conversation(append.conversation, len(self._store.conversations) + 1)
            self._store.conversations[append.conversation] = known
        first, last, pos = head.seq + 1, head.seq + len(append.lines), self._store.position + 1
        known.head = Head(last, chain_hash_through(head.chain, append.lines))
        self._store.position += len(append.lines)
        known.segments.append(Stored(first, last, pos, self._store.position, body, known.head.chain))
        self._by_position.append((pos, known.name))
        for claim in append.claims:
            known.used[claim.client_request_id] = Used(claim.body_hash, first, last)
        if append.listing is not None:
            known.listing = replace(append.listing, pos=self._store.position)
        self._index(known, append)
        for run in append.runs:
            before = self._store.runs.get(run.run)
            parent = run.parent or (before.parent if before else None)
            self._store.runs[run.run] = replace(run, parent=parent)
        return Appended(first, last, pos)

    def _index(self, known: _Conversation, append: Append) -> None:
        removed = set(append.removed_documents)
        for number in [number for number, kept in known.documents.items() if kept.message in removed]:
            del known.documents[number]
        for document in append.documents:
            self._store.documents += 1
            known.documents[self._store.documents] = document

    async def save_snapshot(self, conversation: str, snapshot: Snapshot) -> None:
        known = self._store.conversations.get(conversation)
        head = known.head.seq if known else 0
        if known is None or snapshot.seq > head:
            raise snapshot_ahead(conversation, snapshot.seq, head)
        if known.snapshot and known.snapshot.seq > snapshot.seq:
            return
        if snapshot.replace_all:
            known.messages.clear()
        known.messages.update({message.seq: message.body for message in snapshot.messages})
        known.snapshot = Snapshot(snapshot.seq, snapshot.head)

    async def compact(self, conversation: str, through: int) -> int:
        known = self._store.conversations.get(conversation)
        if known is None or through <= known.settled:
            return 0
        begin = bisect_right(known.segments, known.settled, key=lambda stored: stored.last)
        if begin and len(known.segments[begin - 1].body) < SMALL_BYTES:
            begin -= 1
        end = bisect_right(known.segments, through, key=lambda stored: stored.first)
        before = known.segments[begin - 1].chain if begin else GENESIS
        old = known.segments[begin:end]
        result = compact(old, before, min(through, known.head.seq))
        known.segments[begin:end] = result.segments
        known.settled = result.settled
        gone = {stored.pos for stored in old}
        self._by_position = [entry for entry in self._by_position if entry[0] not in gone]
        for stored in result.segments:
            insort(self._by_position, (stored.pos, known.name))
        return result.dropped

    # -- reading

    async def read(self, conversation: str, after: int, limit_bytes: int = 256 << 10) -> Sequence[Segment]:
        known = self._store.conversations.get(conversation)
        if known is None:
            return ()
        found: list[Segment] = []
        size = 0
        for stored in known.segments[bisect_right(known.segments, after, key=lambda stored: stored.last) :]:
            size += len(stored.body)
            if found and size > limit_bytes:
                break
            found.append(stored.segment())
        return found

    async def read_all(self, after_pos: int, limit_bytes: int = 256 << 10) -> Sequence[tuple[str, Segment]]:
        return in_commit_order(self._from(after_pos), after_pos, limit_bytes)

    def _from(self, after_pos: int) -> Iterator[tuple[str, Stored]]:
        """Segments by position from the first that can reach beyond `after_pos`."""
        begin = max(0, bisect_right(self._by_position, after_pos - SPAN, key=lambda entry: entry[0]) - 1)
        for pos, name in self._by_position[begin:]:
            segments = self._store.conversations[name].segments
            yield name, segments[bisect_right(segments, pos, key=lambda stored: stored.pos) - 1]

    async def head(self, conversation: str) -> Head | None:
        known = self._store.conversations.get(conversation)
        return known.head if known else None

    async def position(self) -> int:
        return self._store.position

    async def used(self, conversation: str, client_request_id: str) -> Used | None:
        known = self._store.conversations.get(conversation)
        return known.used.get(client_request_id) if known else None

    async def load_snapshot(self, conversation: str, tail: int) -> Snapshot | None:
        known = self._store.conversations.get(conversation)
        if known is None or known.snapshot is None:
            return None
        return Snapshot(known.snapshot.seq, known.snapshot.head, _last(known.messages, tail))

    async def messages_before(self, conversation: str, before_seq: int, limit: int) -> Sequence[StoredMessage]:
        known = self._store.conversations.get(conversation)
        if known is None:
            return ()
        return _last({seq: body for seq, body in known.messages.items() if seq < before_seq}, limit)

    # -- lists

    async def listing(self, conversation: str) -> Listing | None:
        known = self._store.conversations.get(conversation)
        return known.listing if known else None

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
        rows = sorted(
            (
                (Place(listing.updated_at, known.number), listing)
                for known, listing in self._listings()
                if not listing.deleted
                and project in (None, listing.project)
                and archived in (None, listing.archived)
                and (children or not is_child(listing))
                and root in (None, listing.root, listing.id)
            ),
            key=lambda row: row[0],
            reverse=True,
        )
        behind = place_of(cursor) if cursor is not None else None
        waiting = [row for row in rows if behind is None or row[0] < behind]
        page = waiting[:limit]
        more = len(waiting) > len(page)
        return Page(
            [listing for _, listing in page], cursor_of(page[-1][0]) if page and more else None, total=len(rows)
        )

    async def changed(self, after_pos: int, limit: int = 500) -> Sequence[Listing]:
        newer = [listing for _, listing in self._listings() if listing.pos > after_pos]
        return sorted(newer, key=lambda listing: listing.pos)[:limit]

    async def folders(self) -> Sequence[Folder]:
        rows: dict[str, list[Listing]] = {}
        for _, listing in self._listings():
            if listing.project is not None and not listing.deleted:
                rows.setdefault(listing.project, []).append(listing)
        return [
            Folder(
                project=project,
                conversations=len(found),
                unfinished=sum(map(is_unfinished, found)),
                waiting=sum(map(is_waiting, found)),
                updated_at=max(listing.updated_at for listing in found),
            )
            for project, found in sorted(rows.items())
        ]

    async def streams(self, prefix: str) -> Sequence[str]:
        return sorted(name for name in self._store.conversations if name.startswith(prefix))

    async def waiting(self) -> Sequence[Listing]:
        rows = [(known.number, listing) for known, listing in self._listings() if is_waiting(listing)]
        return [listing for _, listing in sorted(rows, key=lambda row: (row[1].updated_at, row[0]))]

    async def unfinished(self) -> Sequence[str]:
        return [known.name for known, listing in self._listings() if is_unfinished(listing)]

    def _listings(self) -> Iterator[tuple[_Conversation, Listing]]:
        for known in self._store.conversations.values():
            if known.listing is not None:
                yield known, known.listing

    # -- runs

    async def runs(
        self,
        *,
        conversation: str | None = None,
        project: str | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> Sequence[Run]:
        every = list(self._store.runs)
        if before is not None and before not in self._store.runs:
            raise unknown_run(before)
        older = every[: every.index(before)] if before is not None else every
        found = (
            run
            for run in map(self._store.runs.__getitem__, reversed(older))
            if conversation in (None, run.conversation) and project in (None, run.project) and self._is_kept(run)
        )
        return list(islice(found, limit))

    async def run(self, run: str) -> Run | None:
        known = self._store.runs.get(run)
        return known if known and self._is_kept(known) else None

    async def children_of_run(self, run: str) -> Sequence[Run]:
        return [known for known in self._store.runs.values() if known.parent == run and self._is_kept(known)]

    def _is_kept(self, run: Run) -> bool:
        listing = self._store.conversations[run.conversation].listing
        return listing is None or not listing.deleted

    # -- search

    async def search(self, query: str, *, limit: int = 20, conversation: str | None = None) -> Sequence[Found]:
        return search(self._texts(conversation), query, limit)

    async def recall(
        self, text: str, *, project: str | None, limit: int = 20, but: str | None = None
    ) -> Sequence[Recalled]:
        return recall(self._texts(), text, project, limit, but)

    def _texts(self, conversation: str | None = None) -> Iterator[Said]:
        for known in self._store.conversations.values():
            if conversation in (None, known.name):
                for number, document in known.documents.items():
                    yield Said(number, known.name, known.listing, document)

    # -- care

    async def verify(self, conversation: str | None = None) -> Verified:
        audits: list[Audit] = []
        for known in self._store.conversations.values():
            if conversation in (None, known.name):
                audit = Audit(known.name, self._blob_fault)
                for stored in known.segments:
                    audit.segment(stored)
                audit.head(known.head)
                audits.append(audit)
        damages = [damage for audit in audits for damage in audit.damages]
        return Verified(len(audits), sum(audit.events for audit in audits), damages)

    def _blob_fault(self, blob: str) -> str | None:
        kept = self._store.blobs.get(blob)
        if kept is None:
            return blob_missing(blob)
        return None if sha256(kept[0]).hexdigest() == blob else blob_changed(blob)

    async def backup(self, target: Path) -> None:
        if refusal := refuse_occupied(target):
            raise refusal
        await asyncio.to_thread(_write_backup, target, msgspec.msgpack.encode(self._store))

    async def close(self) -> None:
        pass


def _write_backup(target: Path, store: bytes) -> None:
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    (target / BACKUP_FILE).write_bytes(store)


def _last(messages: dict[int, bytes], count: int) -> list[StoredMessage]:
    newest = sorted(messages, reverse=True)[: max(0, count)]
    return [StoredMessage(seq, messages[seq]) for seq in reversed(newest)]
