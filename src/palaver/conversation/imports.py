"""Takes over what other programs kept: makes each conversation once, and adds what came since.

Called by the import routes. `imported_conversation.py` decides; the directory holds off owners while something is added.
"""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from palaver.clock import Clock, Ids
from palaver.conversation import imported_conversation
from palaver.conversation.attachments import blocks_with_blobs
from palaver.conversation.creation import Maker, Wishes
from palaver.conversation.directory import Directory, id_for
from palaver.conversation.imported_conversation import Batch, Taken
from palaver.conversation.message_limits import fit
from palaver.conversation.recovery.load import load_state, snapshot_of, with_tail
from palaver.errors import LogError
from palaver.feed.feed import Feed
from palaver.history.programs.foreign import ForeignConversation, Program
from palaver.journal import Journal
from palaver.log.base import Claim, EventLog, Used
from palaver.schema.base import Origin
from palaver.schema.view import Message, State

logger = Journal(__name__)

INTERRUPTED = "Somebody went on with it before all of it was here."
MESSAGES_AT_ONCE = 100
"""Looked at before others get their turn."""


def id_of_import(program: Program, session: str) -> str:
    """The conversation that a session of another program becomes when it is imported, whenever that is."""
    return id_for(imported_conversation.session_claim(program, session))


@dataclass(frozen=True, slots=True)
class Imports:
    directory: Directory
    log: EventLog
    feed: Feed
    clock: Clock
    ids: Ids

    async def take_over(
        self, foreign: ForeignConversation, wishes: Wishes, origin: Origin | None, *, dry: bool = False
    ) -> Taken:
        """`dry` only says what would become of it. Repeating it is safe at any time, also after it broke off."""
        conversation = id_of_import(foreign.program, foreign.session)
        taken = imported_conversation.announce(foreign, conversation)
        if taken.outcome != "made":
            return taken
        latest, claims = await self._latest(foreign, conversation)
        have = imported_conversation.count_imported(latest) if latest else 0
        # Beside the loop, as all that takes as long as the conversation is: it may have come from anywhere.
        known = await asyncio.to_thread(imported_conversation.inspect, foreign, have)
        if latest is not None and known != latest.body_hash:
            return replace(taken, outcome="changed", added=0)
        if latest is not None and len(foreign.messages) == have:
            return replace(taken, outcome="known", added=0)
        growing = _Growing(self, foreign, conversation, origin, claims)
        if dry:
            grows = latest is None or await growing.may_grow(have)
        else:
            grows = await growing.add(have, None if latest else wishes)
        if latest is None:
            return taken if grows else replace(taken, added=growing.added, note=INTERRUPTED)
        return replace(
            taken,
            outcome="grown" if grows else "taken_up",
            added=len(foreign.messages) - have if grows else growing.added,
        )

    async def _latest(self, foreign: ForeignConversation, conversation: str) -> tuple[Used | None, int]:
        """What the last import brought, and how many there were."""
        latest: Used | None = None
        claims = 0
        while used := await self.log.used(conversation, imported_conversation.claim_id(foreign, claims)):
            latest, claims = used, claims + 1
        return latest, claims


class _Growing:
    """One conversation while the messages of a program's session are added to it, batch by batch."""

    def __init__(
        self, parts: Imports, foreign: ForeignConversation, conversation: str, origin: Origin | None, claims: int
    ) -> None:
        self._parts = parts
        self._foreign = foreign
        self._conversation = conversation
        self._origin = origin
        self._claims = claims
        self._state: State | None = None
        """As it was after the last batch, with its last message only."""
        self._stored = 0
        """The seq of the latest snapshot."""
        self.added = 0

    async def add(self, have: int, wishes: Wishes | None) -> bool:
        """Everything after the first messages; `wishes` make the conversation. False: somebody went on with it."""
        batches = imported_conversation.batches(self._foreign, have)
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            claim = Claim(imported_conversation.claim_id(self._foreign, self._claims), batch.body_hash)
            parts = self._parts
            maker = Maker(self._conversation, claim, parts.clock.now_ms(), parts.ids.new, self._origin)
            messages = await self._with_blobs(imported_conversation.mark_answers(self._foreign, batch.messages))
            batch = dataclasses.replace(batch, messages=messages)
            if wishes is not None:
                begun = await asyncio.to_thread(imported_conversation.beginning, self._foreign, batch, wishes, maker)
                await parts.directory.begin(begun, claim, self._origin, chosen_by="history")
                wishes = None
                if not batch.is_last:
                    await self._keep(begun.state)
            elif not await self._alone(partial(self._append, batch, maker)):
                return False
            self._claims += 1
            self.added += len(messages)
            # Others have their turn between two batches, whatever the log is made of.
            await asyncio.sleep(0)
        return True

    async def may_grow(self, have: int) -> bool:
        return await self._alone(partial(self._is_untouched, have))

    async def _alone(self, work: Callable[[], Awaitable[bool]]) -> bool:
        done = False

        async def note() -> None:
            nonlocal done
            done = await work()

        return await self._parts.directory.while_nobody_owns(self._conversation, note) and done

    async def _append(self, batch: Batch, maker: Maker) -> bool:
        log = self._parts.log
        if used := await log.used(self._conversation, maker.claim.client_request_id):
            # The same session is imported twice at this moment.
            return used.body_hash == maker.claim.body_hash
        if not await self._is_untouched(batch.have) or self._state is None:
            return False
        append, after = await asyncio.to_thread(imported_conversation.growth, self._state, self._foreign, batch, maker)
        await log.append(append)
        body = b"\n".join(append.lines) + b"\n"
        self._parts.feed.publish(self._conversation, append.after + 1, append.after + len(append.lines), body)
        await self._keep(after)
        return True

    async def _is_untouched(self, have: int) -> bool:
        row = await self._parts.log.listing(self._conversation)
        if self._state is None or row is None or row.seq != self._state.seq:
            loaded = await load_state(self._parts.log, self._conversation)
            self._state, self._stored = loaded or (None, 0)
        return self._state is not None and imported_conversation.is_untouched(self._state, have)

    async def _keep(self, state: State) -> None:
        """A snapshot of each batch: the next one, and whoever opens the conversation, need not read all of it again."""
        self._state = state
        try:
            await self._parts.log.save_snapshot(self._conversation, snapshot_of(state, self._stored))
        except LogError as failure:
            logger.warning("snapshot not kept", conversation=self._conversation, reason=failure.message)
        else:
            self._stored, self._state = state.seq, with_tail(state, 1)

    async def _with_blobs(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        blobs = self._parts.log.blobs
        found: list[Message] = []
        for place, message in enumerate(messages, 1):
            found.append(await fit(await blocks_with_blobs(message, blobs), blobs))
            if place % MESSAGES_AT_ONCE == 0:
                await asyncio.sleep(0)
        return tuple(found)
