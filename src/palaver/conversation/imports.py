"""Takes over what other programs kept: makes each conversation once, and adds what came since.

Called by the import routes. `taking.py` decides; the directory holds off owners while something is added.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from palaver.clock import Clock, Ids
from palaver.conversation import taking
from palaver.conversation.attachments import blocks_with_blobs
from palaver.conversation.beginnings import Maker, Wishes
from palaver.conversation.directory import Directory, id_for
from palaver.conversation.fitting import fitted
from palaver.conversation.loading import load_state
from palaver.conversation.taking import Taken
from palaver.feed.feed import Feed
from palaver.history.programs.foreign import ForeignConversation, Program
from palaver.log.base import Claim, EventLog, Used
from palaver.schema.base import Origin
from palaver.schema.view import Message

MESSAGES_AT_ONCE = 100
"""Looked at before others get their turn."""


def imported_id(program: Program, session: str) -> str:
    """The conversation that a session of another program becomes when it is imported, whenever that is."""
    return id_for(taking.session_claim(program, session))


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
        """`dry` only says what would become of it. Repeating it is safe at any time."""
        conversation = imported_id(foreign.program, foreign.session)
        taken = taking.announced(foreign, conversation)
        if taken.outcome != "made":
            return taken
        # Beside the loop, as all that takes as long as the conversation is: it may have come from anywhere.
        await asyncio.to_thread(taking.check, foreign)
        latest, claims = await self._latest(foreign, conversation)
        body_hash = await asyncio.to_thread(taking.body_hash, foreign.messages)
        claim = Claim(taking.claim_id(foreign, claims), body_hash)
        maker = Maker(conversation, claim, self.clock.now_ms(), self.ids.new, origin)
        if latest is None:
            if not dry:
                messages = await self._with_blobs(taking.marked(foreign, foreign.messages))
                whole = replace(foreign, messages=messages)
                begun = await asyncio.to_thread(taking.beginning, whole, wishes, maker)
                await self.directory.begin(begun, claim, origin, chosen_by="history")
            return taken
        verdict = await asyncio.to_thread(taking.judged, foreign, latest)
        if verdict.outcome != "grown":
            return replace(taken, outcome=verdict.outcome, added=0)
        return await self._grow(taken, foreign, verdict.have, maker, dry=dry)

    async def _latest(self, foreign: ForeignConversation, conversation: str) -> tuple[Used | None, int]:
        """What the last import brought, and how many there were."""
        latest: Used | None = None
        claims = 0
        while used := await self.log.used(conversation, taking.claim_id(foreign, claims)):
            latest, claims = used, claims + 1
        return latest, claims

    async def _grow(self, taken: Taken, foreign: ForeignConversation, have: int, maker: Maker, *, dry: bool) -> Taken:
        new = taking.marked(foreign, foreign.messages[have:])
        messages: Sequence[Message] = new if dry else await self._with_blobs(new)
        grown = False

        async def grow() -> None:
            nonlocal grown
            loaded = await load_state(self.log, maker.conversation)
            grown = loaded is not None and taking.is_untouched(loaded[0], have)
            if loaded is None or not grown or dry:
                return
            append = await asyncio.to_thread(taking.growth, loaded[0], messages, maker)
            await self.log.append(append)
            body = b"\n".join(append.lines) + b"\n"
            self.feed.publish(maker.conversation, append.after + 1, append.after + len(append.lines), body)

        if await self.directory.while_nobody_owns(maker.conversation, grow) and grown:
            return replace(taken, outcome="grown", added=len(new))
        return replace(taken, outcome="taken_up", added=0)

    async def _with_blobs(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        blobs = self.log.blobs
        found: list[Message] = []
        for place, message in enumerate(messages, 1):
            found.append(await fitted(await blocks_with_blobs(message, blobs), blobs))
            if place % MESSAGES_AT_ONCE == 0:
                await asyncio.sleep(0)
        return tuple(found)
