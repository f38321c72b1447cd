"""The messages before those that a conversation holds: loaded once, and kept while it is talked in.

Used by the owner at the beginning of each turn. A turn needs the whole history, and reading two thousand messages takes
longer than all else that a turn does by itself. What lies before the tail only ever grows; whoever rewrites history says
`forget`.
"""

from collections.abc import Sequence

import msgspec

from palaver.log.base import EventLog
from palaver.schema.view import Message, State

KEPT_BYTES = 8 << 20
"""Of stored messages. More is read again each turn: an open conversation must not cost more than a large page does."""

_message = msgspec.json.Decoder(Message)


class Older:
    def __init__(self, log: EventLog, conversation: str) -> None:
        self._log = log
        self._conversation = conversation
        self._kept: tuple[Message, ...] = ()
        self._kept_bytes = 0

    def forget(self) -> None:
        self._kept, self._kept_bytes = (), 0

    async def before(self, state: State) -> Sequence[Message]:
        """All that precede `state.messages`, oldest first."""
        if not state.offset:
            return ()
        first = state.messages[0].seq if state.messages else state.seq + 1
        kept = self._kept
        if len(kept) > state.offset or (kept and kept[-1].seq >= first):
            kept = ()
        missing = state.offset - len(kept)
        stored = await self._log.messages_before(self._conversation, first, missing) if missing else ()
        if kept and stored and stored[0].seq <= kept[-1].seq:
            # They do not follow each other: the history is another one by now.
            kept = ()
            stored = await self._log.messages_before(self._conversation, first, state.offset)
        older = (*kept, *(_message.decode(one.body) for one in stored))
        size = sum(len(one.body) for one in stored) + (self._kept_bytes if kept else 0)
        self._kept, self._kept_bytes = (older, size) if size <= KEPT_BYTES else ((), 0)
        return older
