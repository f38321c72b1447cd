"""Saying messages from elsewhere again: as events, at rest, under new ids or under their own.

Called by history for commands, and by the conversation station for branches, imports and documents. Pure. Nothing that was
under way where a message comes from goes on here.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from palaver.core.settle import result_of_interruption
from palaver.core.state import OPEN_TOOL
from palaver.schema.base import ID_PATTERN, IMPORT_FACE, Origin
from palaver.schema.events import AnswerFinished, KnowledgeRecalled, KnownEvent, MessageAdded
from palaver.schema.view import Block, ImageBlock, Message, TextBlock, ThinkingBlock, ToolBlock

Timed = list[tuple[KnownEvent, int]]
"""Events, each with the time it was first said; 0: now."""

_ID = re.compile(ID_PATTERN)
_PLACEHOLDER = re.compile(r"message-\d+")
"""What a document's reader calls a message that has no id."""


def imported(
    messages: Iterable[Message], by: Origin | None = None, known: Iterable[Message] = ()
) -> tuple[Message, ...]:
    """Messages from outside, marked as such: no role in them makes them the words of a person who speaks here.

    One that says under its id what a message in `known` says keeps that message's origin. What an agent's token brings
    stays that token's own to change.
    """
    is_agent = by is not None and by.agent_token
    origin = Origin(face=IMPORT_FACE, user=by.user if by and is_agent else None, agent_token=is_agent)
    here = {message.id: message for message in known}
    marked: list[Message] = []
    for message in messages:
        same = here.pop(message.id, None)  # Said once, it is not said twice.
        if same is not None and _content(same) == _content(message):
            # The kind too: a document leaves it out, and without it what the server said to wake an agent is a person's.
            marked.append(replace(message, origin=same.origin, event_kind=same.event_kind))
        else:
            marked.append(replace(message, origin=origin))
    return tuple(marked)


def _content(message: Message) -> tuple[object, ...]:
    """All of a message that a model takes for its words. Places and states of blocks differ in a document."""
    blocks = message.blocks
    return (
        message.role,
        [(block.text, block.blob and block.blob.id) for block in blocks if isinstance(block, TextBlock)],
        [block.url for block in blocks if isinstance(block, ImageBlock)],
        [block.text for block in blocks if isinstance(block, ThinkingBlock)],
        [(block.call, block.name, block.input, block.output) for block in blocks if isinstance(block, ToolBlock)],
        message.knowledge and (message.knowledge.text, message.knowledge.sources),
    )


def restored(messages: Iterable[Message], new_id: Callable[[], str]) -> Timed:
    """The events that say messages again under new ids, each with the time it was first said.

    A message without a foreign origin becomes the words of whoever asks for it: those from outside are `imported` before.
    """
    events: Timed = []
    for message in messages:
        # A cut attempt was taken back where it was made; here nothing would say so.
        if message.status != "superseded":
            events.extend((event, message.ts) for event in _restored(message, new_id))
    return events


def _restored(message: Message, new_id: Callable[[], str]) -> list[KnownEvent]:
    added = MessageAdded(
        message=new_id(),
        role=message.role,
        blocks=tuple(_at_rest(block, new_id) for block in message.blocks),
        agent=message.agent,
        model=message.model,
        hidden=message.hidden,
        event_kind=message.event_kind,
        data=message.data,
        # What an agent or a file said does not become the words of the person who says it again.
        origin=message.origin if message.origin and message.origin.is_foreign else None,
    )
    events: list[KnownEvent] = [added]
    if known := message.knowledge:
        events.append(
            KnowledgeRecalled(message=added.message, sources=known.sources, tokens=known.tokens, text=known.text)
        )
    under_way = message.status in ("streaming", "interrupted")
    if message.role == "assistant" and (message.finish_reason or message.usage or under_way):
        events.append(
            AnswerFinished(
                message=added.message,
                finish_reason=message.finish_reason or ("interrupted" if under_way else "stop"),
                usage=message.usage,
                interrupted=under_way,
            )
        )
    return events


def _at_rest(block: Block, new_id: Callable[[], str]) -> Block:
    """Nobody goes on with what was under way where the message comes from: text stays as it is, a call gets its result.

    Calls get ids of their own: those of providers repeat, and no two calls here may be taken for one.
    """
    match block:
        case TextBlock(status="streaming") | ThinkingBlock(status="streaming"):
            return replace(block, status="interrupted")
        case ToolBlock() if block.status in OPEN_TOOL:
            result = result_of_interruption(block, None)
            return replace(
                block, call=new_id(), status="interrupted", output=result.output, error=result.error, request=None
            )
        case ToolBlock():
            return replace(block, call=new_id(), request=None)
        case _:
            return block


def said_again(messages: Sequence[Message], new_id: Callable[[], str]) -> Timed:
    """Under the ids they came with, as far as those are ids and tell them apart; under new ones otherwise."""
    said = [message for message in messages if message.status != "superseded"]
    own = _unique([message.id for message in said if not _PLACEHOLDER.fullmatch(message.id)])
    calls = _unique([block.call for message in said for block in message.blocks if isinstance(block, ToolBlock)])
    events = restored(said, new_id)
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
