"""The log in this contract's frames: what was told live, told again, in order and with the same fields.

Called by the socket for whoever subscribes with a cursor or fell behind, and by the `events` operation. Reads the log a
piece at a time, so that a long history costs neither memory nor the patience of others. From the beginning of a log only
what is left of it is told (`rewrites`).
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

import msgspec
from msgspec.structs import replace

from palaver.faces.long_texts import with_whole_block, with_whole_text
from palaver.faces.projection import Told
from palaver.faces.socket.memory import Memory, begins_within_turn, cut_outputs, memory_of
from palaver.faces.socket.projection import encode_event
from palaver.faces.socket.rewrites import NOTED, REWRITING, Rewrites, Rewritten, is_rewriting, rewrites_of
from palaver.faces.socket.sequence import Position, after_event, position_of, sequence_of
from palaver.faces.socket.sessions import is_list_news
from palaver.log.base import Blobs, Segment, Snapshot, lines_after, number_lines
from palaver.schema.events import (
    Event,
    EventBase,
    LogCompacted,
    MessageEdited,
    ToolOutputDelta,
    UnknownEvent,
    decode_event,
)
from palaver.schema.view import Message, State, TextBlock

TAILS = (100, 1_000, 100_000)
"""Messages of a stored view, more of them if these do not reach back to where the turn that was active then began."""

SEQUENCE_DIGITS = 18
"""More events than any log will hold, and far from what a number may not be read from."""

_state = msgspec.json.Decoder(State)
_message = msgspec.json.Decoder(Message)


class Log(Protocol):
    """What is needed of it."""

    @property
    def epoch(self) -> str: ...
    @property
    def blobs(self) -> Blobs: ...
    async def read(self, conversation: str, after: int, limit_bytes: int = 256 << 10) -> Sequence[Segment]: ...
    async def load_snapshot(self, conversation: str, tail: int) -> Snapshot | None: ...


# -- cursors


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a reader goes on. `reset`: what it gave is not known here or no longer holds, so it begins anew."""

    after: Position
    reset: bool = False


BEGINNING = after_event(0)


def next_cursor(log: Log, event: int) -> str:
    """Names the store too: the same number means something else in another one."""
    return f"{COUNTS_FRAMES}{sequence_of(event)}@{log.epoch}"


COUNTS_FRAMES = "f"
"""Before the number of a `nextCursor`. Those of an earlier release, which counted events, are without it."""


async def cursor_of(log: Log, conversation: str, after: int | str, head: int) -> Cursor:
    """`after` is a sequence or a `nextCursor`. One of another store, from the future, inside what was compacted, or before
    a message that was removed or changed since: reset."""
    position = _position(str(after), log.epoch, head)
    if (
        position is None
        or position.events > head
        or await is_inside_compacted(log, conversation, position)
        or await _is_rewritten(log, conversation, position.events, head)
    ):
        return Cursor(BEGINNING, reset=True)
    return Cursor(position)


def _position(given: str, epoch: str, head: int) -> Position | None:
    number, at, store = given.partition("@")
    digits = number.removeprefix(COUNTS_FRAMES)
    if (at and store != epoch) or not _is_number(digits):
        return None
    count = int(digits)
    if at and digits is number:
        return after_event(count)
    known = position_of(count)
    # An earlier release gave an event's number as its sequence. What may be either is not guessed.
    if at or count > head or not count:
        return known
    return after_event(count) if known is None else None


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) <= SEQUENCE_DIGITS


async def is_inside_compacted(log: Log, conversation: str, position: Position) -> bool:
    """Whether whoever has seen up to here has seen part of what is now left out."""
    # Of the event after the position some frames may be seen; then it counts as seen in part.
    seen = position.events + (not position.is_between_events)
    segments = await log.read(conversation, position.events, 1) if seen else ()
    return any(
        line.first <= seen < line.seq + (not position.is_between_events)
        for segment in segments
        if segment.compacted and segment.first <= seen
        for line in number_lines(segment)
        if line.body.startswith(COMPACTED)
    )


async def _is_rewritten(log: Log, conversation: str, after: int, until: int) -> bool:
    if not after:
        return False  # Who has seen nothing is told what is left.
    async with aclosing(_read_events(log, conversation, after, until, REWRITING_LINES)) as events:
        async for event in events:
            if is_rewriting(event):
                return True
    return False


# -- reading


async def replay(
    log: Log, conversation: str, after: Position, until: int, *, with_news: bool = False
) -> AsyncGenerator[list[Told], None]:
    """The frames after a position, through those of an event. `with_news`: also those of the list of sessions, for whoever
    followed and fell behind."""
    if after.events >= until:
        return
    memory, cursor = await _memory_before(log, conversation, after.events)
    rewritten = Rewritten(await _rewrites(log, conversation, until)) if not after.sequence else None
    async with aclosing(_events(log, conversation, cursor, until)) as pieces:
        async for events in pieces:
            frames: list[Told] = []
            for event in events:
                if isinstance(event, LogCompacted) and event.first <= after.events:
                    memory.half_told |= memory.answers.keys()
                left = rewritten.event(event) if rewritten else event
                if left is None or isinstance(left, UnknownEvent) or (is_list_news(left) and not with_news):
                    continue
                said = encode_event(await with_whole_text(left, log.blobs), memory, after.sequence)
                frames += said if event.seq > after.events else ()
            yield frames


async def _events(log: Log, conversation: str, cursor: int, until: int) -> AsyncGenerator[list[Event], None]:
    async with aclosing(_lines(log, conversation, cursor, until)) as pieces:
        async for lines in pieces:
            yield [event for event in map(decode_event, lines) if event.seq <= until]


async def _lines(log: Log, conversation: str, cursor: int, until: int) -> AsyncGenerator[list[bytes], None]:
    while cursor < until:
        segments = await log.read(conversation, cursor)
        if not segments:
            return
        yield [line for segment in segments for line in lines_after(segment, cursor)]
        cursor = segments[-1].last


async def _read_events(
    log: Log, conversation: str, cursor: int, until: int, kinds: tuple[bytes, ...]
) -> AsyncGenerator[Event, None]:
    """The events of a few kinds, picked before anything is decoded: nine lines of ten are deltas."""
    async with aclosing(_lines(log, conversation, cursor, until)) as pieces:
        async for lines in pieces:
            for line in lines:
                if line.startswith(kinds) and (event := decode_event(line)).seq <= until:
                    yield event


async def _rewrites(log: Log, conversation: str, until: int) -> Rewrites:
    async with aclosing(_read_events(log, conversation, 0, until, NOTED_LINES)) as events:
        return rewrites_of(
            [
                await with_whole_text(event, log.blobs) if isinstance(event, MessageEdited) else event
                async for event in events
            ]
        )


def _beginnings(kinds: Iterable[type[EventBase]]) -> tuple[bytes, ...]:
    return tuple(b'{"type":"%s"' % str(kind.__struct_config__.tag).encode() for kind in kinds)


REWRITING_LINES = _beginnings(REWRITING)
NOTED_LINES = _beginnings(NOTED)
COMPACTED = _beginnings((LogCompacted,))


# -- memory


async def _memory_before(log: Log, conversation: str, after: int) -> tuple[Memory, int]:
    """A memory at some place at or before a cursor, and that place: the stored view's if it is early enough."""
    for tail in TAILS if after else ():
        snapshot = await log.load_snapshot(conversation, tail)
        if snapshot is None or snapshot.seq > after:
            break
        head = _state.decode(snapshot.head)
        messages = tuple(_message.decode(stored.body) for stored in snapshot.messages)
        state = replace(head, messages=messages, offset=head.offset - len(messages))
        if not begins_within_turn(state):
            return await memory_at(log, state), snapshot.seq
    return Memory(), 0


async def memory_at(log: Log, state: State) -> Memory:
    """The memory at a view. What the view does not hold (how much a chatty tool has said, all of a very long text) is read
    from the log."""
    cut = cut_outputs(state)
    streamed_chars = dict.fromkeys(cut, 0)
    if cut:
        async with aclosing(_events(log, state.conversation, min(cut.values()) - 1, state.seq)) as pieces:
            async for events in pieces:
                for event in events:
                    if isinstance(event, ToolOutputDelta) and event.call in streamed_chars:
                        streamed_chars[event.call] += len(event.text)
    return memory_of(await _with_whole_texts(log, state), streamed_chars)


async def _with_whole_texts(log: Log, state: State) -> State:
    """With all of what the active run said: its `text_done` says it again."""
    if state.turn is None:
        return state
    messages = list(state.messages)
    for place, message in enumerate(messages):
        if message.turn == state.turn.id and any(
            isinstance(block, TextBlock) and block.blob for block in message.blocks
        ):
            blocks = [await with_whole_block(block, log.blobs) for block in message.blocks]
            messages[place] = replace(message, blocks=tuple(blocks))
    return replace(state, messages=tuple(messages))
