"""What a program is told when it takes a turn: the person's words and images, and what happened that it has not seen.

Used by the backends that drive programs. It reads the view and says nothing to anybody. Whether a program may go on with the
session it has is decided here too: a session that knows what was since taken back or said differently would act on it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from palaver.backends.base import Turn
from palaver.context.handover import handover
from palaver.context.images import blob_of, image_of
from palaver.context.prompt import Image
from palaver.context.quotes import RULE, Part, block_source
from palaver.schema.view import ImageBlock, Message, State, TextBlock

SAID = "[The person says:]"
GO_ON = "Go on."
"""For a turn that nobody said anything to begin: a plan was approved, a mission came due."""


@dataclass(frozen=True, slots=True)
class Words:
    """What a program is told, in a form that every program takes: the record, if any, apart from what is said now."""

    text: str
    """The person's words as they are; between them, quoted, those of others."""
    images: tuple[Image, ...] = ()
    record: str = ""

    @property
    def blocks(self) -> tuple[str, ...]:
        """For a program that takes several texts: the record is never part of the person's."""
        said = f"{SAID}\n{self.text}" if self.text.lstrip().startswith("/") else self.text
        return tuple(block for block in (self.record, said or GO_ON) if block)

    @property
    def plain(self) -> str:
        """For one that takes a single text. It begins with no slash: programs take that for a command of theirs."""
        return "".join(self.blocks)

    def after(self, record: str) -> "Words":
        # With the blank line: a program that joins its blocks would else write on in the line of the closing border.
        return Words(self.text, self.images, f"{record}\n\n" if record else "")


@dataclass(frozen=True, slots=True)
class Briefing:
    asked: tuple[Message, ...]
    """What the turn is about."""
    session: str | None
    """The program's own conversation, where the log knows one."""
    unseen: str
    """What that session has not seen."""
    whole: str
    """All that was said before, for a session that begins."""
    marked: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the program's last answer was marked with."""
    since: int = 0
    """Turns after that answer: stopped ones of its own, or of others."""


def briefing(turn: Turn, by: str) -> Briefing:
    """`by` is the name under which the program's answers are marked."""
    state = turn.state
    trigger = state.turn.trigger.messages if state.turn else ()
    asked = tuple(
        message
        for message in state.messages
        if message.role == "user" and (message.turn == turn.id or message.id in trigger)
    )
    before = _without(state, {message.id for message in asked})
    known = handover(before, by, turn.id, turn.quoting)
    place, mark = _last_mark(before.messages, by)
    later = {message.turn for message in before.messages[place + 1 :] if message.turn not in (None, turn.id)}
    return Briefing(
        asked=asked,
        session=known.session,
        unseen=known.record,
        whole=known.record if known.session is None else handover(before, "", turn.id, turn.quoting).record,
        marked=mark,
        since=len(later),
    )


def still_said(known: Collection[str], state: State) -> bool:
    """Whether all that a live session knows still stands in the history."""
    return set(known) <= {message.id for message in state.messages if message.status != "superseded"}


def all_known(known: Collection[str], turn: Turn) -> bool:
    """Whether a live session has seen everything that came before this turn."""
    return all(message.id in known or message.turn == turn.id or message.hidden for message in turn.state.messages)


async def words_of(turn: Turn, messages: Sequence[Message]) -> Words:
    blobs: dict[str, bytes | None] = {}
    texts: list[str] = []
    images: list[Image] = []
    for message, place, block in ((m, place, block) for m in messages for place, block in enumerate(m.blocks)):
        match block:
            case TextBlock():
                texts.append(_quote(turn, message, place, await _whole_text(turn, block)))
            case ImageBlock():
                if (blob := blob_of(block.url)) and blob not in blobs:
                    blobs[blob] = await turn.load_blob(blob)
                image = image_of(block.url, blobs)
                if isinstance(image, Image):
                    images.append(image)
                else:
                    texts.append(image.text)
            case _:
                pass
    if any(block_source(message, 0) is not None for message in messages):
        # The program's own system prompt says nothing of quotes.
        texts.insert(0, f"[{RULE}]")
    return Words("\n\n".join(texts), tuple(images))


def _quote(turn: Turn, message: Message, place: int, text: str) -> str:
    source = block_source(message, place)
    return text if source is None or not text.strip() else turn.quoting.quote(Part(source, text))


async def _whole_text(turn: Turn, block: TextBlock) -> str:
    kept = await turn.load_blob(block.blob.id) if block.blob else None
    return kept.decode(errors="replace") if kept is not None else block.text


def _without(state: State, left_out: Collection[str]) -> State:
    return replace(state, messages=tuple(message for message in state.messages if message.id not in left_out))


def _last_mark(messages: Sequence[Message], by: str) -> tuple[int, Mapping[str, Any]]:
    for place in range(len(messages) - 1, -1, -1):
        data = messages[place].data
        if isinstance(data, dict) and data.get("by") == by:
            return place, data
    return -1, {}
