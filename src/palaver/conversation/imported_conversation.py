"""A conversation that another program kept becomes one of ours, once, and grows when the program's own has grown.

Called by `imports.py`. Pure. The conversation's id and its claims come from the program and its own session id, so that the
same session imported again is known; each claim's hash says how many messages it brought and which, so that a session that
grew is told from one that changed. A long one comes in batches, each like a growth: an import that broke off is seen in the
title, and the next one goes on where it stopped. Like any file it grants nothing and leaves nothing that would run by itself.

Must never: add to a conversation in which somebody spoke here, or say anything twice.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from palaver.context.handover import mark
from palaver.conversation.creation import TITLE_LIMIT_CHARS, Beginning, Maker, Wishes, beginning_of, document_of
from palaver.conversation.index_rows import listing_of
from palaver.core.decide.restore import imported, restored
from palaver.core.fold.evolve import fold
from palaver.core.json_bounds import DEPTH
from palaver.core.state import message_count
from palaver.errors import Invalid
from palaver.history.programs.foreign import END_MS, ForeignConversation, Program
from palaver.log.base import Append, Used
from palaver.schema.base import Shown
from palaver.schema.events import (
    ConversationCreated,
    ConversationUpdated,
    Event,
    KnownEvent,
    MessageAdded,
    encode_event,
)
from palaver.schema.view import Block, ImageBlock, Message, State, TextBlock, ThinkingBlock, ToolBlock

Outcome = Literal["made", "known", "grown", "changed", "taken_up", "empty", "not_yours", "refused"]
"""`changed`: what was imported reads differently now. `taken_up`: somebody went on with it here."""

BATCH_MESSAGES = 200
BATCH_BYTES = 512 << 10
"""Of one commit: other conversations commit in between, and no more than this is in memory."""
UNFINISHED = " (import not finished)"
"""Ends the title of a conversation until its last messages are there."""

_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Taken(Shown):
    """What became of a conversation of another program, or would."""

    program: str
    session: str
    conversation: str
    outcome: Outcome
    title: str = ""
    message_count: int = 0
    """In the program's own."""
    added: int = 0
    """New here."""
    note: str | None = None
    """Why, where the outcome alone does not say it."""


def claim_id(foreign: ForeignConversation, growth: int = 0) -> str:
    return session_claim(foreign.program, foreign.session) + (f"-{growth}" if growth else "")


def session_claim(program: Program, session: str) -> str:
    """Under which a session of a program is imported, whoever asks."""
    if not _PLAIN_ID.fullmatch(session):
        session = blake2b(session.encode(errors="replace"), digest_size=16).hexdigest()
    return f"import-{program}-{session}"


def announce(foreign: ForeignConversation, conversation: str) -> Taken:
    """What would be made if nothing of it is here yet."""
    outcome: Outcome = "not_yours" if foreign.of_another else "made" if foreign.messages else "empty"
    return Taken(
        program=foreign.program,
        session=foreign.session,
        conversation=conversation,
        outcome=outcome,
        title=foreign.title,
        message_count=len(foreign.messages),
        added=len(foreign.messages) if outcome == "made" else 0,
        note=foreign.of_another,
    )


class RunningHash:
    """How many messages, and which. What a tool answered is not part of it: it may have come after an import."""

    def __init__(self) -> None:
        self.count = 0
        self._digest = blake2b(digest_size=16)

    def add(self, message: Message) -> None:
        self.count += 1
        self._digest.update(msgspec.json.encode([message.role, [_content_of(block) for block in message.blocks]]))

    def value(self) -> str:
        return f"{self.count}-{self._digest.hexdigest()}"


def _content_of(block: Block) -> list[Any]:
    match block:
        case TextBlock() | ThinkingBlock():
            return [block.text]
        case ImageBlock():
            return [len(block.url)]
        case ToolBlock():
            return [block.name, block.input]


def count_imported(used: Used) -> int:
    """How many messages are here by an import's claim."""
    count = used.body_hash.partition("-")[0]
    return int(count) if count.isdigit() else 0


def inspect(foreign: ForeignConversation, have: int) -> str:
    """The hash of its first messages, or of all when there are fewer.

    All of them are looked at, before any is used: one that would fail whoever reads it later (a time that is none,
    arguments without a bottom) raises Invalid.
    """
    if not all(0 <= ts < END_MS for ts in (foreign.created_at, foreign.updated_at)):
        raise _no_time(foreign)
    running = RunningHash()
    known = running.value()
    for message in foreign.messages:
        _check(message, foreign)
        if running.count < have:
            running.add(message)
            known = running.value() if running.count == have else known
    return known if running.count == have else running.value()


@dataclass(frozen=True, slots=True)
class Batch:
    """Some messages that are added in one commit."""

    messages: Sequence[Message]
    have: int
    """Messages before them."""
    body_hash: str
    """Of all messages up to the last of these."""
    is_last: bool


def batches(foreign: ForeignConversation, have: int) -> Iterator[Batch]:
    """What comes after the first messages, bounded in number and in bytes."""
    running = RunningHash()
    messages: list[Message] = []
    size_bytes = 0
    count = len(foreign.messages)
    for message in foreign.messages:
        running.add(message)
        if running.count <= have:
            continue
        messages.append(message)
        size_bytes += len(msgspec.json.encode(message.blocks))
        is_last = running.count == count
        if is_last or len(messages) >= BATCH_MESSAGES or size_bytes >= BATCH_BYTES:
            yield Batch(messages, running.count - len(messages), running.value(), is_last)
            messages, size_bytes = [], 0


def is_untouched(state: State, have: int) -> bool:
    """Nobody spoke here since, and nothing was taken away."""
    return message_count(state) == have and state.turn is None and not state.queue and not state.deleted


# -- events


def beginning(foreign: ForeignConversation, batch: Batch, wishes: Wishes, maker: Maker) -> Beginning:
    """With the times of the program's own, so that it stands in the list where it belongs."""
    agent = wishes.agent_for(None if foreign.program == "refact" else foreign.program)
    created = ConversationCreated(agent=agent, project=wishes.project, source="import")
    began = foreign.created_at
    events: list[tuple[KnownEvent, int]] = [(maker.with_claim(created), began)]
    title = foreign.title[:TITLE_LIMIT_CHARS] if batch.is_last else title_while_importing(foreign.title)
    if title:
        events.append((ConversationUpdated(title=title, title_source="auto"), began))
    events += restored(batch.messages, maker.new_id)
    if batch.is_last and foreign.updated_at > max(ts for _, ts in events):
        # It was changed after its last message, as its program's list says.
        events.append((ConversationUpdated(), foreign.updated_at))
    return beginning_of(maker.with_times(events))


def growth(state: State, foreign: ForeignConversation, batch: Batch, maker: Maker) -> tuple[Append, State]:
    """What is added to a conversation that rests, and the view after it."""
    timed = restored(batch.messages, maker.new_id)
    if (title := _title_after(state, foreign, batch)) is not None:
        ts = max((ts for _, ts in timed), default=0)
        named = ConversationUpdated(title=title, title_source="user" if state.title_source == "user" else "auto")
        timed.append((named, max(ts, foreign.updated_at) if batch.is_last else ts))
    events = maker.with_times(timed, state.seq)
    events[0] = replace(events[0], client_request_id=maker.claim.client_request_id, body_hash=maker.claim.body_hash)
    known: Sequence[Event] = events
    after = fold(state, known)
    new = {event.message for event in events if isinstance(event, MessageAdded)}
    documents = [document_of(message) for message in after.messages if message.id in new and not message.hidden]
    append = Append(
        conversation=state.conversation,
        after=state.seq,
        lines=[encode_event(event) for event in events],
        listing=listing_of(after),
        documents=[document for document in documents if document.text.strip()],
        claims=[maker.claim],
    )
    return append, after


def title_while_importing(title: str) -> str:
    """The title of a conversation of which a part is still to come: should the import break off, the list says so."""
    return f"{title[: TITLE_LIMIT_CHARS - len(UNFINISHED)]}{UNFINISHED}".strip()


def _title_after(state: State, foreign: ForeignConversation, batch: Batch) -> str | None:
    """None: it stays as it is."""
    is_marked = state.title.endswith(UNFINISHED.strip())
    if batch.is_last == (not is_marked):
        return None
    if not batch.is_last:
        return title_while_importing(state.title)
    own = state.title.removesuffix(UNFINISHED.strip()).rstrip()
    return own if state.title_source == "user" else foreign.title[:TITLE_LIMIT_CHARS]


def mark_answers(foreign: ForeignConversation, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Each answer says who can go on with it, as a backend's own answers do. Refact is no agent here."""
    brought = imported(messages)
    if foreign.program == "refact":
        return brought
    data = mark(foreign.program, foreign.session)
    return tuple(replace(message, data=data) if message.role == "assistant" else message for message in brought)


def _check(message: Message, foreign: ForeignConversation) -> None:
    if message.status == "superseded":
        raise Invalid(f"A message of {foreign.session} was taken back where it was made: leave it out.")
    if not 0 <= message.ts < END_MS:
        raise _no_time(foreign)
    for block in message.blocks:
        loose: list[Any] = [message.data]
        if isinstance(block, ToolBlock):
            loose += (block.input, block.provider)
        elif isinstance(block, ThinkingBlock):
            loose.append(block.provider)
        if any(_depth_exceeds(value, DEPTH) for value in loose):
            raise Invalid(f"A message of {foreign.session} is nested more than {DEPTH} levels deep.", limit=DEPTH)


def _no_time(foreign: ForeignConversation) -> Invalid:
    return Invalid(f"A time in {foreign.session} is none: milliseconds since 1970 are expected.")


def _depth_exceeds(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ())
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
