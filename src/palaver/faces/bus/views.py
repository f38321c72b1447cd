"""What the bus knows of each conversation that it tells of: its view at the moment of the event, and its folder's names.

Used by the pump. A view is read from the log once and folded on from there.
"""

import asyncio
from pathlib import Path

import msgspec
from msgspec.structs import replace

from palaver.conversation.recovery.load import with_tail
from palaver.core.fold.evolve import evolve, fold
from palaver.log.base import EventLog, lines_after
from palaver.schema.events import Event, TextDelta, ThinkingDelta, decode_event
from palaver.schema.view import Message, State

READ_BYTES = 256 << 10
TAIL = 200
"""Messages of a view. What happens concerns the last ones."""
FRAGMENTS = 1_000
"""Told before they are folded in: one fold for all of them costs little more than one for each."""

_state = msgspec.json.Decoder(State)
_message = msgspec.json.Decoder(Message)

Fragment = TextDelta | ThinkingDelta


class View:
    """Of one conversation, folded when it is looked at: what a block grows by is told without a look."""

    def __init__(self, state: State, projects: tuple[str, ...]) -> None:
        self._state = state
        self._fragments: list[Fragment] = []
        self._last: Event | None = None
        self.projects = projects
        self.position = -1
        """Of the last event that was folded in here."""

    @property
    def seq(self) -> int:
        return self._fragments[-1].seq if self._fragments else self._state.seq

    @property
    def agent(self) -> str:
        """Who speaks. Fragments change nothing of that."""
        return self._state.turn.agent if self._state.turn else self._state.agent

    @property
    def state(self) -> State:
        if self._fragments:
            self._state, self._fragments = fold(self._state, self._fragments), []
        return self._state

    def folded(self, event: Event) -> State:
        """The view after one more event."""
        after = evolve(self.state, event)
        self._state = after if len(after.messages) <= 2 * TAIL else with_tail(after, TAIL)
        self._last = event
        return after

    def grows(self, event: Fragment) -> bool:
        """Takes one more piece of the block that the event before it was a piece of. False: it must be folded."""
        last = self._last
        if type(last) is not type(event) or not isinstance(last, TextDelta | ThinkingDelta):
            return False
        if (last.message, last.block, last.turn) != (event.message, event.block, event.turn):
            return False
        if len(self._fragments) >= FRAGMENTS:
            self._state, self._fragments = fold(self._state, self._fragments), []
        self._fragments.append(event)
        self._last = event
        return True


async def view_at(log: EventLog, conversation: str, seq: int) -> State:
    """The view as it was at a seq, with its last messages: from the snapshot, or from the beginning where that is newer."""
    state = State()
    if seq == 0:
        return state
    snapshot = await log.load_snapshot(conversation, TAIL)
    if snapshot is not None and snapshot.seq <= seq:
        messages = tuple(_message.decode(stored.body) for stored in snapshot.messages)
        head = _state.decode(snapshot.head)
        state = replace(head, messages=messages, offset=head.offset - len(messages))
    while state.seq < seq and (segments := await log.read(conversation, state.seq, READ_BYTES)):
        for segment in segments:
            events = (decode_event(line) for line in lines_after(segment, state.seq))
            state = fold(state, [event for event in events if event.seq <= seq])
            if segment.last >= seq:
                return state
    return state


async def names_of(project: str | None) -> tuple[str, ...]:
    """How a folder may be called: as it was given, and where that leads."""
    return await asyncio.to_thread(_names, project) if project else ()


def _names(project: str) -> tuple[str, ...]:
    given = project.rstrip("/") or "/"
    try:
        return tuple(dict.fromkeys((given, str(Path(given).resolve()))))
    except (OSError, RuntimeError, ValueError):
        return (given,)  # No folder has such a name.
