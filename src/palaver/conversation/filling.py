"""Fills a conversation that exists with what was said elsewhere: a branch, a trajectory, messages somebody brings.

Called by faces whose clients open a conversation first and say afterwards what it begins with. All in one commit, while nobody
owns it. What is brought is as little trusted as an import: see `beginnings.py`.

A branch into a conversation that was made empty is recorded as its making anew: nothing had been said in it yet.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from palaver.clock import Clock, Ids
from palaver.conversation.attachments import blocks_with_blobs
from palaver.conversation.beginnings import Maker, branch_events, document_of, harmless
from palaver.conversation.derived import listing_of
from palaver.conversation.directory import Directory
from palaver.conversation.fitting import fitted
from palaver.conversation.loading import load_state, snapshot_of
from palaver.conversation.transcripts import whole
from palaver.core.evolve import fold
from palaver.core.history import restored
from palaver.core.state import message_count
from palaver.errors import Conflict, NotFound
from palaver.feed.feed import Feed
from palaver.log.base import Append, Claim, EventLog
from palaver.schema.base import ID_PATTERN, Origin
from palaver.schema.commands import Branch, CreateConversation
from palaver.schema.events import (
    AnswerFinished,
    ConversationUpdated,
    Event,
    KnowledgeRecalled,
    KnownEvent,
    MessageAdded,
    MessageTruncated,
    encode_event,
)
from palaver.schema.view import Block, Message, State, ToolBlock

_ID = re.compile(ID_PATTERN)
_PLACEHOLDER = re.compile(r"message-\d+")
"""What a document's reader calls a message that has no id."""

Timed = list[tuple[KnownEvent, int]]
"""Events, each with the time it was first said; 0: now."""


@dataclass(frozen=True, slots=True)
class Filling:
    directory: Directory
    log: EventLog
    feed: Feed
    clock: Clock
    ids: Ids

    async def branch(
        self, conversation: str, source: str, last: str | None, claim: Claim, origin: Origin | None
    ) -> None:
        """Everything of another conversation up to and including a message, under new ids."""
        known = await self.directory.whole(source)
        body = CreateConversation(branch=Branch(conversation=source, message=last))

        def events(state: State, maker: Maker) -> Timed:
            return branch_events(known, replace(body, params=state.params), maker)

        await self._fill(conversation, claim, origin, events)

    async def restore(
        self, conversation: str, messages: Sequence[Message], title: str, claim: Claim, origin: Origin | None
    ) -> None:
        brought = await self._with_blobs(messages)

        def events(state: State, maker: Maker) -> Timed:
            named = title and state.title_source == "none"
            names: Timed = [(ConversationUpdated(title=title, title_source="auto"), 0)] if named else []
            return [*_said_again(brought, maker), *names]

        await self._fill(conversation, claim, origin, events)

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
            return [*cut, *_said_again(brought, maker), (named, 0)]

        await self._fill(conversation, claim, origin, events, empty=False)

    async def _with_blobs(self, messages: Sequence[Message]) -> list[Message]:
        blobs = self.log.blobs
        return [await fitted(await blocks_with_blobs(message, blobs), blobs) for message in messages]

    async def _fill(
        self,
        conversation: str,
        claim: Claim,
        origin: Origin | None,
        events: Callable[[State, Maker], Timed],
        *,
        empty: bool = True,
    ) -> None:
        maker = Maker(conversation, claim, self.clock.now_ms(), self.ids.new, origin)

        async def work() -> None:
            state = await self._resting(conversation, empty)
            numbered = await asyncio.to_thread(lambda: maker.numbered(events(state, maker), state.seq))
            append = _appended(state, numbered, claim)
            await self.log.append(append)
            body = b"\n".join(append.lines) + b"\n"
            self.feed.publish(conversation, append.after + 1, append.after + len(append.lines), body)
            if not empty:
                # Rows of what is gone from the view would come back with the next page of history.
                after = fold(state, numbered)
                await self.log.save_snapshot(conversation, snapshot_of(after, 0, replace_all=True))

        if not await self.directory.while_nobody_owns(conversation, work):
            raise Conflict("The agent is working. Stop it first, then change the history.")

    async def _resting(self, conversation: str, empty: bool) -> State:
        async def view() -> State:
            loaded = await load_state(self.log, conversation)
            if loaded is None:
                raise NotFound("No such conversation.", conversation=conversation)
            return loaded[0]

        state = await whole(self.log, conversation, view)
        if state.deleted:
            raise NotFound("This conversation was deleted.", conversation=conversation)
        if state.turn is not None or state.queue or (empty and message_count(state)):
            raise Conflict("Only an empty conversation can be filled from elsewhere.")
        return state


def _said_again(messages: Sequence[Message], maker: Maker) -> Timed:
    """Under the ids they came with, as far as those are ids and tell them apart; under new ones otherwise."""
    said = [message for message in messages if message.status != "superseded"]
    own = _unique([message.id for message in said if not _PLACEHOLDER.fullmatch(message.id)])
    calls = _unique([block.call for message in said for block in message.blocks if isinstance(block, ToolBlock)])
    events = restored(said, maker.new_id)
    added = [event for event, _ in events if isinstance(event, MessageAdded)]
    names = {new.message: old.id for new, old in zip(added, said, strict=True) if old.id in own}
    blocks = {
        new.message: _with_calls(new.blocks or (), old.blocks, calls) for new, old in zip(added, said, strict=True)
    }

    def named(event: KnownEvent) -> KnownEvent:
        match event:
            case MessageAdded():
                return replace(event, message=names.get(event.message, event.message), blocks=blocks[event.message])
            case KnowledgeRecalled() | AnswerFinished():
                return replace(event, message=names.get(event.message or "", event.message))
            case _:
                return event

    return [(named(event), ts) for event, ts in events]


def _unique(ids: list[str]) -> set[str]:
    seen = Counter(ids)
    return {one for one in ids if seen[one] == 1 and _ID.fullmatch(one)}


def _with_calls(new: Sequence[Block], old: Sequence[Block], calls: set[str]) -> tuple[Block, ...]:
    return tuple(
        replace(block, call=known.call)
        if isinstance(block, ToolBlock) and isinstance(known, ToolBlock) and known.call in calls
        else block
        for block, known in zip(new, old, strict=True)
    )


def _appended(state: State, numbered: list[KnownEvent], claim: Claim) -> Append:
    if not numbered:
        raise Conflict("There was nothing to restore.")
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
