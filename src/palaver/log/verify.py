"""Verify: is every conversation still what was written?

Both stores pass the segments of one conversation at a time through an `Audit`, in order. It holds one segment and its
findings, never a whole log, and what it finds concerns that one conversation.
"""

import re
from collections.abc import Callable

from palaver.errors import LogCorrupt
from palaver.log.base import GENESIS, Damage, Head
from palaver.log.segments import Stored, open_segment

# A quote inside a JSON string is escaped, so text that talks about blobs never looks like a reference to one.
_BLOB = re.compile(
    rb'(?:"blob"\s*:\s*\{[^{}]*"id"\s*:\s*"|"url"\s*:\s*"[^"]*/blobs/)([0-9a-f]{64})"',
)

BlobFault = Callable[[str], str | None]
"""What is wrong with a blob, in words; None: it is whole."""


def blob_missing(blob: str) -> str:
    return f"The blob {blob} is missing."


def blob_changed(blob: str) -> str:
    return f"The blob {blob} is not what was stored under that name."


class Audit:
    def __init__(self, conversation: str, blob_fault: BlobFault) -> None:
        self.damages: list[Damage] = []
        self.events = 0
        self._conversation = conversation
        self._blob_fault = blob_fault
        self._last = 0
        self._chain = GENESIS

    def segment(self, stored: Stored) -> None:
        if stored.first != self._last + 1:
            self._found(self._last + 1, f"The events {self._last + 1} to {stored.first - 1} are missing.")
        try:
            open_segment(stored, self._chain)
        except LogCorrupt as fault:
            self._found(stored.first, fault.message)
        for blob in dict.fromkeys(_BLOB.findall(stored.body)):
            if fault_text := self._blob_fault(blob.decode()):
                self._found(stored.first, fault_text)
        # From here on the stored value counts: one bad segment must not put its followers under suspicion.
        self._last, self._chain = stored.last, stored.chain
        self.events += max(0, stored.last - stored.first + 1)

    def head(self, head: Head) -> None:
        """The last call: does the log end where its head says?"""
        if head.seq > self._last:
            self._found(self._last + 1, f"The events {self._last + 1} to {head.seq} are missing.")
        elif head.seq < self._last or head.chain != self._chain:
            self._found(self._last, f"The head says {head.seq}, the events end at {self._last} with another chain.")

    def listing_unreadable(self, why: str) -> None:
        self._found(self._last, f"Its row in the list of conversations cannot be read: {why}.")

    def unreadable(self, why: str) -> None:
        self._found(self._last + 1, f"The events after {self._last} cannot be read: {why}.")

    def _found(self, seq: int, what: str) -> None:
        self.damages.append(Damage(self._conversation, seq, what))
