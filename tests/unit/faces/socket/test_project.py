"""The projection over every golden log: live from any place is the rest of the replay, and what the contract says of order."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.core.evolve import evolve
from palaver.faces.socket.memory import Memory, cut_outputs, memory_of
from palaver.faces.socket.project import project
from palaver.schema.events import Event, LogCompacted, ToolOutputDelta, UnknownEvent, decode_event
from palaver.schema.view import State

GOLDEN = Path(__file__).parents[3] / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.jsonl"))

Frame = dict[str, Any]


def events_of(name: str) -> list[Event]:
    return [decode_event(line) for line in (GOLDEN / f"{name}.jsonl").read_bytes().splitlines()]


def start_of(name: str) -> State:
    """Where a log begins: at nothing, or at the view before its first line."""
    first = events_of(name)[0]
    states = msgspec.json.decode((GOLDEN / f"{name}.states.json").read_bytes())
    known = states.get(str((1 if isinstance(first, LogCompacted) else first.seq) - 1))
    return State() if known is None else msgspec.convert(known, State)


def frames_of(events: list[Event], memory: Memory) -> list[Frame]:
    return [frame for event in events if not isinstance(event, UnknownEvent) for frame in project(event, memory)]


def memory_at(state: State, before: list[Event]) -> Memory:
    """As the server makes it: what the view has cut off is counted in the log."""
    streamed = Counter[str]()
    for event in before:
        if isinstance(event, ToolOutputDelta):
            streamed[event.call] += len(event.text)
    return memory_of(state, {call: streamed[call] for call in cut_outputs(state)})


@pytest.mark.parametrize("name", NAMES)
def test_live_from_any_place_is_the_rest_of_the_replay(name: str) -> None:
    events, state = events_of(name), start_of(name)
    whole = frames_of(events, memory_of(state))
    for place, event in enumerate(events):
        rest = [frame for frame in whole if frame["sequence"] >= event.seq]
        assert frames_of(events[place:], memory_at(state, events[:place])) == rest, f"{name} from {event.seq}"
        state = evolve(state, event)
