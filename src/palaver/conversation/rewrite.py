"""Fills a conversation that exists with what was said elsewhere: a branch, a trajectory, messages somebody brings.

Called by faces whose clients open a conversation first and say afterwards what it begins with. What fills an empty one is a
command like any other, and waits like one while the agent works; what takes the place of all that was said is written while
nobody owns the conversation. What is brought is as little trusted as an import: see `creation.py`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from palaver.clock import Clock, Ids
from palaver.conversation.attachments import blocks_with_blobs
from palaver.conversation.creation import Maker, branch_of, document_of, harmless
from palaver.conversation.directory import Directory
from palaver.conversation.index_rows import listing_of
from palaver.conversation.message_limits import fit
from palaver.conversation.project_files.transcripts import whole
from palaver.conversation.recovery.load import load_state, snapshot_of
from palaver.core.decide.authority import rewrites_others
from palaver.core.decide.restore import Timed, imported, said_again
from palaver.core.fold.evolve import fold
from palaver.errors import REFUSALS, Conflict, NotFound
from palaver.feed.feed import Feed
from palaver.log.base import Append, Claim, EventLog
from palaver.schema.base import Origin
from palaver.schema.commands import Fill
from palaver.schema.events import ConversationUpdated, Event, KnownEvent, MessageAdded, MessageTruncated, encode_event
from palaver.schema.view import Message, State


@dataclass(frozen=True, slots=True)
class Filling:
    directory: Directory
    log: EventLog
    feed: Feed
    clock: Clock
    ids: Ids

    async def branch(
        self, conversation: str, source: str, last: str | None, asked: Fill, origin: Origin | None
    ) -> None:
        """Everything of another conversation up to and including a message, under new ids. `asked` says how."""
        copied = branch_of(await self.directory.whole(source), last)
        fill = replace(
            asked,
            messages=copied.messages,
            new_ids=True,
            own=True,
            title=copied.title,
            agent=copied.agent,
            project=copied.project,
            params=copied.params,
            parent=copied.parent,
        )
        await self.directory.command(conversation, fill, origin)

    async def restore(
        self, conversation: str, messages: Sequence[Message], title: str, asked: Fill, origin: Origin | None
    ) -> None:
        """Messages somebody brings, or those of another conversation (`asked.own`), under their own ids."""
        brought = tuple(await self._with_blobs(messages))
        await self.directory.command(conversation, replace(asked, messages=brought, title=title), origin)

    async def rewrite(
        self,
        conversation: str,
        messages: Sequence[Message],
        title: str,
        params: dict[str, Any],
        claim: Claim,
        origin: Origin | None,
    ) -> None:
        """The whole conversation from now on: what was said before is gone from the view, never from the log."""
        brought = await self._with_blobs(messages)

        def events(state: State, maker: Maker) -> Timed:
            cut = [(MessageTruncated(index=0, first_seq=state.messages[0].seq), 0)] if state.messages else []
            titled = title if title and title != state.title else None
            named = ConversationUpdated(
                title=titled, title_source="user" if titled else None, params=harmless(params) or None
            )
            said = said_again(imported(brought, origin, state.messages), maker.new_id)
            return [*cut, *said, (named, 0)]

        maker = Maker(conversation, claim, self.clock.now_ms(), self.ids.new, origin)

        async def work() -> None:
            state = await self._resting(conversation)
            if refusal := rewrites_others(state.messages, 0, origin):
                raise REFUSALS[refusal.code](refusal.message, **refusal.details)
            numbered = await asyncio.to_thread(lambda: maker.with_times(events(state, maker), state.seq))
            append = await asyncio.to_thread(_append_of, state, numbered, claim)
            await self.log.append(append)
            body = b"\n".join(append.lines) + b"\n"
            self.feed.publish(conversation, append.after + 1, append.after + len(append.lines), body)
            # Rows of what is gone from the view would come back with the next page of history.
            after = await asyncio.to_thread(fold, state, numbered)
            await self.log.save_snapshot(conversation, snapshot_of(after, 0, replace_all=True))

        if not await self.directory.while_nobody_owns(conversation, work):
            raise Conflict("The agent is working. Stop it first, then change the history.")

    async def _with_blobs(self, messages: Sequence[Message]) -> list[Message]:
        blobs = self.log.blobs
        return [await fit(await blocks_with_blobs(message, blobs), blobs) for message in messages]

    async def _resting(self, conversation: str) -> State:
        async def view() -> State:
            loaded = await load_state(self.log, conversation)
            if loaded is None:
                raise NotFound("No such conversation.", conversation=conversation)
            return loaded[0]

        state = await whole(self.log, conversation, view)
        if state.deleted:
            raise NotFound("This conversation was deleted.", conversation=conversation)
        if state.turn is not None or state.queue:
            raise Conflict("Something waits here. Let it be done first, or take it back.")
        return state


def _append_of(state: State, numbered: list[KnownEvent], claim: Claim) -> Append:
    first = replace(numbered[0], client_request_id=claim.client_request_id, body_hash=claim.body_hash)
    events = [first, *numbered[1:]]
    known: Sequence[Event] = events
    after = fold(state, known)
    new = {event.message for event in events if isinstance(event, MessageAdded)}
    documents = [document_of(message) for message in after.messages if message.id in new and not message.hidden]
    left = {message.id for message in after.messages} - new
    return Append(
        conversation=state.conversation,
        after=state.seq,
        lines=[encode_event(event) for event in events],
        listing=listing_of(after),
        documents=[document for document in documents if document.text.strip()],
        removed_documents=[message.id for message in state.messages if message.id not in left],
        claims=[claim],
    )
