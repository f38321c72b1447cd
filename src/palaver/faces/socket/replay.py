"""The log in this contract's frames: what was told live, told again, in order and with the same fields.

Called by the socket for whoever subscribes with a cursor or fell behind, and by the `events` operation. Reads the log a
piece at a time, so that a long history costs neither memory nor the patience of others.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

import msgspec
from msgspec.structs import replace

from palaver.faces.long_texts import with_whole_text
from palaver.faces.projected import Told
from palaver.faces.socket.memory import Memory, cut_outputs, memory_of
from palaver.faces.socket.project import told
from palaver.log.base import Blobs, Segment, Snapshot, lines_after, numbered
from palaver.schema.events import Event, LogCompacted, ToolOutputDelta, decode_event
from palaver.schema.view import Message, State

TAIL_MESSAGES = 100
"""Of a stored view: the turn that was active then stands at its end."""

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
    """Where a reader goes on. `reset`: what it gave was not known here, so it begins anew."""

    after: int
    reset: bool = False


def next_cursor(log: Log, sequence: int) -> str:
    """Names the store too: the same number means something else in another one."""
    return f"{sequence}@{log.epoch}"


async def cursor_of(log: Log, conversation: str, after: int | str, head: int) -> Cursor:
    """`after` is a sequence or a `nextCursor`. One of another store, from the future, or inside what was compacted: reset."""
    number, at, epoch = str(after).partition("@")
    if not number.isdecimal() or len(number) > SEQUENCE_DIGITS:
        return Cursor(0, reset=True)
    sequence = int(number)
    if (at and epoch != log.epoch) or sequence > head or await is_inside_compacted(log, conversation, sequence):
        return Cursor(0, reset=True)
    return Cursor(sequence)


async def is_inside_compacted(log: Log, conversation: str, sequence: int) -> bool:
    """Whether whoever has seen up to here has seen part of what is now left out."""
    segments = await log.read(conversation, sequence, 1) if sequence else ()
    return any(
        line.first <= sequence < line.seq
        for segment in segments
        if segment.compacted and segment.first <= sequence
        for line in numbered(segment)
    )


# -- reading


async def replayed(log: Log, conversation: str, after: int, until: int) -> AsyncGenerator[list[Told], None]:
    """The frames of the events after one number, through another."""
    if after >= until:
        return
    memory, cursor = await _memory_before(log, conversation, after)
    async with aclosing(_events(log, conversation, cursor, until)) as pieces:
        async for events in pieces:
            frames: list[Told] = []
            for event in events:
                if isinstance(event, LogCompacted) and event.first <= after:
                    memory.half_told |= memory.answers
                said = told(await with_whole_text(event, log.blobs), memory)
                frames += said if event.seq > after else ()
            yield frames


async def _events(log: Log, conversation: str, cursor: int, until: int) -> AsyncGenerator[list[Event], None]:
    while cursor < until:
        segments = await log.read(conversation, cursor)
        if not segments:
            return
        events = [decode_event(line) for segment in segments for line in lines_after(segment, cursor)]
        yield [event for event in events if event.seq <= until]
        cursor = segments[-1].last


async def _memory_before(log: Log, conversation: str, after: int) -> tuple[Memory, int]:
    """A memory at some place at or before a cursor, and that place: the stored view's if it is early enough."""
    snapshot = await log.load_snapshot(conversation, TAIL_MESSAGES) if after else None
    if snapshot is None or snapshot.seq > after:
        return Memory(), 0
    head = _state.decode(snapshot.head)
    messages = tuple(_message.decode(stored.body) for stored in snapshot.messages)
    return await memory_at(log, replace(head, messages=messages)), snapshot.seq


async def memory_at(log: Log, state: State) -> Memory:
    """The memory at a view. What the view does not hold (how much a chatty tool has said) is counted in the log."""
    cut = cut_outputs(state)
    if not cut:
        return memory_of(state)
    streamed_chars = dict.fromkeys(cut, 0)
    async with aclosing(_events(log, state.conversation, min(cut.values()) - 1, state.seq)) as pieces:
        async for events in pieces:
            for event in events:
                if isinstance(event, ToolOutputDelta) and event.call in streamed_chars:
                    streamed_chars[event.call] += len(event.text)
    return memory_of(state, streamed_chars)
