"""What an inbox says of an event: the words of people and of agents, each posted once.

Pure. The store is the log: a message of an inbox is one event of it, seen again the same way on every read. So its id is
made of the event's number: strictly increasing whatever the clock does, within a millisecond and across restarts. The
default inbox that follows a deleted one is a new log under the same address; its generation is in the high digits, so
that ids keep increasing there too.

A person's message is posted when it is accepted, whether its turn begins or it waits in the queue, and not again when it
is delivered. An agent's text is posted when its block is whole, before the calls that follow it. What broke off is not
posted; nor is what an attempt that took the place of another one says again.
"""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Literal

from msgspec import Struct

from palaver.errors import Invalid
from palaver.faces.http.timestamps import iso
from palaver.schema.base import BlobRef
from palaver.schema.content import Content, ImagePart, TextPart
from palaver.schema.events import Event, MessageAdded, QueueAdded, TextFinished
from palaver.schema.view import TextBlock

Author = Literal["user", "assistant"]

MARKDOWN = "text/markdown"

_SEQ_DIGITS = 12
"""A conversation of a thousand events a second has numbers for thirty years."""
_GENERATION_SEQS = 10**8
"""Event numbers of one default inbox; those of the next begin after them."""
_PLACE_DIGITS = 4
"""An event that was brought from elsewhere may hold several texts; none holds ten thousand."""
_ID = re.compile(rf"(\d{{{_SEQ_DIGITS}}})(\d{{{_PLACE_DIGITS}}})", re.ASCII)

TELLING = (
    b'{"type":"message.added"',
    b'{"type":"queue.added"',
    b'{"type":"text.finished"',
    b'{"type":"answer.started"',
)
"""How the lines begin that a reader of an inbox must look into; all others are passed over undecoded."""


class InboxMessage(Struct, frozen=True, kw_only=True):
    id: str
    ts: str
    author: Author
    mime: str
    content: str


class Posted(Struct, frozen=True):
    """A message and, where its text outgrew its event, what holds the whole of it.

    `source` is the message of the history, or the item of the queue, that it is a text of.
    """

    message: InboxMessage
    source: str
    blob: BlobRef | None = None


def message_id(seq: int, place: int = 0, generation: int = 0) -> str:
    return f"{generation * _GENERATION_SEQS + seq:0{_SEQ_DIGITS}d}{place:0{_PLACE_DIGITS}d}"


def seq_of(after_id: str, generation: int = 0) -> int:
    """The event that an id belongs to; 0, which is before all events, for an id of an earlier generation."""
    return max(0, _number_of(after_id) - generation * _GENERATION_SEQS)


def is_of_earlier_generation(after_id: str, generation: int) -> bool:
    return _number_of(after_id) < generation * _GENERATION_SEQS


def _number_of(after_id: str) -> int:
    match = _ID.fullmatch(after_id)
    if match is None:
        raise Invalid("`after_id` is not an id of this inbox. Give one that it returned, or leave it out.")
    return int(match[1])


def posts_of(event: Event, said_before: AbstractSet[str] = frozenset(), generation: int = 0) -> Sequence[Posted]:
    """The messages of one event, in order. `said_before` is what the attempts said that this one takes the place of."""
    match event:
        case QueueAdded(trigger="message" | "task", command=None):
            return _texts(event, event.item, "user", [_whole(event.content)], generation)
        case MessageAdded(role="user", item=None, event_kind=None, hidden=False) if event.blocks is None:
            return _texts(event, event.message, "user", [_whole(event.content)], generation)
        case MessageAdded(role="user" | "assistant", item=None, hidden=False):
            return _post_of(event, generation)
        case TextFinished(interrupted=False, unposted=False) if event.text not in said_before:
            return _texts(event, event.message, "assistant", [(event.text, MARKDOWN, event.blob)], generation)
        case _:
            return ()


def is_by_a_person(event: Event) -> bool:
    """Whether subscribers are told of it: people's words are, an agent's own are not."""
    return any(one.message.author == "user" for one in posts_of(event))


def _post_of(event: MessageAdded, generation: int) -> Sequence[Posted]:
    """A message that nobody here generated: posted by an agent from elsewhere, brought from a file or another branch."""
    author: Author = "user" if event.role == "user" else "assistant"
    if event.event_kind is not None and author == "user":
        return ()
    if event.blocks is None:
        return _texts(event, event.message, author, [_whole(event.content)], generation)
    texts = [(block.text, MARKDOWN, block.blob) for block in event.blocks if isinstance(block, TextBlock)]
    return _texts(event, event.message, author, texts, generation)


def _whole(content: Content) -> tuple[str, str, BlobRef | None]:
    """Several parts as one text. What is too long for its event is alone in it."""
    mimes = {part.mime for part in content if isinstance(part, TextPart)}
    mime = mimes.pop() if len(mimes) == 1 else None
    if len(content) == 1 and isinstance(content[0], TextPart):
        return content[0].text, mime or MARKDOWN, content[0].blob
    words = [f"![image]({part.image_url.url})" if isinstance(part, ImagePart) else part.text for part in content]
    return "\n\n".join(words), mime or MARKDOWN, None


def _texts(
    event: QueueAdded | MessageAdded | TextFinished,
    source: str,
    author: Author,
    texts: Sequence[tuple[str, str, BlobRef | None]],
    generation: int,
) -> Sequence[Posted]:
    ts = iso(event.ts)
    return [
        Posted(
            InboxMessage(id=message_id(event.seq, place, generation), ts=ts, author=author, mime=mime, content=text),
            source,
            blob,
        )
        for place, (text, mime, blob) in enumerate(texts)
        if text.strip()
    ]
