"""A conversation that another program kept becomes one of ours, once, and grows when the program's own has grown.

Called by `imports.py`. Pure. The conversation's id and its claims come from the program and its own session id, so that the
same session imported again is known; each claim's hash says how many messages it brought and which, so that a session that
grew is told from one that changed. Like any file it grants nothing and leaves nothing that would run by itself.

Must never: add to a conversation in which somebody spoke here, or say anything twice.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from palaver.context.handover import mark
from palaver.conversation.beginnings import TITLE_LIMIT_CHARS, Beginning, Maker, Wishes, begun, document_of
from palaver.conversation.derived import listing_of
from palaver.core.bounded_json import DEPTH
from palaver.core.evolve import fold
from palaver.core.restoring import imported, restored
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


def announced(foreign: ForeignConversation, conversation: str) -> Taken:
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


def body_hash(messages: Sequence[Message]) -> str:
    """How many messages, and which. What a tool answered is not part of it: it may have come after an import."""
    digest = blake2b(digest_size=16)
    for message in messages:
        digest.update(msgspec.json.encode([message.role, [_said(block) for block in message.blocks]]))
    return f"{len(messages)}-{digest.hexdigest()}"


def _said(block: Block) -> list[Any]:
    match block:
        case TextBlock() | ThinkingBlock():
            return [block.text]
        case ImageBlock():
            return [len(block.url)]
        case ToolBlock():
            return [block.name, block.input]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an import has to do about a conversation that was imported before."""

    outcome: Outcome
    have: int = 0
    """Messages that are here already."""


def judged(foreign: ForeignConversation, used: Used) -> Verdict:
    """Against the latest claim."""
    have = _brought(used)
    if len(foreign.messages) < have or body_hash(foreign.messages[:have]) != used.body_hash:
        return Verdict("changed", have)
    return Verdict("grown" if len(foreign.messages) > have else "known", have)


def _brought(used: Used) -> int:
    count = used.body_hash.partition("-")[0]
    return int(count) if count.isdigit() else 0


def is_untouched(state: State, have: int) -> bool:
    """Nobody spoke here since, and nothing was taken away."""
    return message_count(state) == have and state.turn is None and not state.queue and not state.deleted


# -- events


def beginning(foreign: ForeignConversation, wishes: Wishes, maker: Maker) -> Beginning:
    """With the times of the program's own, so that it stands in the list where it belongs."""
    agent = wishes.agent_for(None if foreign.program == "refact" else foreign.program)
    created = ConversationCreated(agent=agent, project=wishes.project, source="import")
    began = foreign.created_at
    events: list[tuple[KnownEvent, int]] = [(maker.claimed(created), began)]
    if title := foreign.title[:TITLE_LIMIT_CHARS]:
        events.append((ConversationUpdated(title=title, title_source="auto"), began))
    events += restored(foreign.messages, maker.new_id)
    if foreign.updated_at > max(ts for _, ts in events):
        # It was changed after its last message, as its program's list says.
        events.append((ConversationUpdated(), foreign.updated_at))
    return begun(maker.numbered(events))


def growth(state: State, messages: Sequence[Message], maker: Maker) -> Append:
    """What is added to a conversation that rests."""
    events = maker.numbered(restored(messages, maker.new_id), state.seq)
    events[0] = replace(events[0], client_request_id=maker.claim.client_request_id, body_hash=maker.claim.body_hash)
    known: Sequence[Event] = events
    after = fold(state, known)
    new = {event.message for event in events if isinstance(event, MessageAdded)}
    documents = [document_of(message) for message in after.messages if message.id in new and not message.hidden]
    return Append(
        conversation=state.conversation,
        after=state.seq,
        lines=[encode_event(event) for event in events],
        listing=listing_of(after),
        documents=[document for document in documents if document.text.strip()],
        claims=[maker.claim],
    )


def marked(foreign: ForeignConversation, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Each answer says who can go on with it, as a backend's own answers do. Refact is no agent here."""
    brought = imported(messages)
    if foreign.program == "refact":
        return brought
    data = mark(foreign.program, foreign.session)
    return tuple(replace(message, data=data) if message.role == "assistant" else message for message in brought)


def check(foreign: ForeignConversation) -> None:
    """Raises Invalid for what would fail whoever reads it later: times that are none, arguments without a bottom."""
    times = (foreign.created_at, foreign.updated_at, *(message.ts for message in foreign.messages))
    if not all(0 <= ts < END_MS for ts in times):
        raise Invalid(f"A time in {foreign.session} is none: milliseconds since 1970 are expected.")
    for message in foreign.messages:
        for block in message.blocks:
            loose: list[Any] = [message.data]
            if isinstance(block, ToolBlock):
                loose += (block.input, block.provider)
            elif isinstance(block, ThinkingBlock):
                loose.append(block.provider)
            if any(_depth_exceeds(value, DEPTH) for value in loose):
                raise Invalid(f"A message of {foreign.session} is nested more than {DEPTH} levels deep.", limit=DEPTH)


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
