"""When a conversation's view is kept, and when its finished deltas are let go.

Derived data: a snapshot that could not be kept costs time at the next opening, never content.
"""

from palaver.conversation.recovery.load import TAIL_MESSAGES, snapshot_of
from palaver.core.state import shorten
from palaver.errors import LogError
from palaver.journal import Journal
from palaver.log.base import EventLog
from palaver.schema.view import State

logger = Journal(__name__)

EVENTS_AT_REST = 256
"""A snapshot at rest after this many events: what reopening has to fold, at most."""
EVENTS_RUNNING = 4_096
"""The same in the middle of a turn, where nobody is about to reopen."""


class Snapshots:
    def __init__(self, log: EventLog, seq: int) -> None:
        self._log = log
        self._seq = seq
        """The seq of the latest snapshot on disk."""

    def due(self, state: State) -> bool:
        if state.messages and state.messages[-1].status == "streaming" and not state.messages[-1].blocks:
            return False  # An answer without a word may yet be taken back; a stored row of it would stay behind.
        return state.seq - self._seq >= (EVENTS_AT_REST if state.turn is None else EVENTS_RUNNING)

    async def keep(self, state: State, *, replace_all: bool = False) -> State:
        """Keep this view; answers the view to go on with, shortened once its beginning is safely stored."""
        if state.seq == self._seq and not replace_all:
            return state
        try:
            snapshot = snapshot_of(state, self._seq, replace_all=replace_all)
            await self._log.save_snapshot(state.conversation, snapshot)
            self._seq = snapshot.seq
            if state.turn is not None:
                return state
            await self._log.compact(state.conversation, snapshot.seq)
            return shorten(state, 2 * TAIL_MESSAGES)
        except LogError as failure:
            logger.warning("snapshot not kept", conversation=state.conversation, reason=failure.message)
            return state
