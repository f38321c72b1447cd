"""Every golden log folds to its expected states: whole, event by event, from any snapshot, and after compaction."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.core.fold.evolve import evolve, fold
from palaver.schema.events import EVENT_TYPES, Event, LogCompacted, UnknownEvent, decode_event
from palaver.schema.view import State
from tests.golden.compaction import compacted
from tests.golden.make import drifted

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.jsonl"))

_snapshot = msgspec.json.Decoder(State)


def _events(name: str) -> list[Event]:
    return [decode_event(line) for line in (HERE / f"{name}.jsonl").read_bytes().splitlines()]


def _expected(name: str) -> dict[int, Any]:
    return {int(seq): state for seq, state in json.loads((HERE / f"{name}.states.json").read_bytes()).items()}


def _start(name: str) -> State:
    """Where the fold of a log begins: at nothing, or at the snapshot before its first line."""
    first = _events(name)[0].seq
    first = first if not isinstance(_events(name)[0], LogCompacted) else 1
    known = _expected(name).get(first - 1)
    return State() if known is None else msgspec.convert(known, State)


def _shown(state: State) -> Any:
    return json.loads(msgspec.json.encode(state))


def test_golden_files_are_what_the_scenes_say() -> None:
    assert drifted() == []


@pytest.mark.parametrize("name", NAMES)
def test_golden_log_folds_to_its_states_event_by_event(name: str) -> None:
    state, expected, met = _start(name), _expected(name), set[int]()
    met.update({state.seq} & expected.keys())
    for event in _events(name):
        state = evolve(state, event)
        if state.seq in expected:
            assert _shown(state) == expected[state.seq], f"{name} at {state.seq}"
            met.add(state.seq)
    assert met == expected.keys()
    assert state.seq == max(expected)


@pytest.mark.parametrize("name", NAMES)
def test_golden_log_folds_the_same_from_a_snapshot_at_any_place(name: str) -> None:
    start, events = _start(name), _events(name)
    last = _shown(fold(start, events))
    for place in range(len(events)):
        before = fold(start, events[:place])
        reloaded = _snapshot.decode(msgspec.json.encode(before))
        assert _shown(fold(reloaded, events[place:])) == last, f"{name} from {before.seq}"


@pytest.mark.parametrize("name", NAMES)
def test_golden_log_folds_the_same_once_compacted_at_any_place(name: str) -> None:
    start, events = _start(name), _events(name)
    for place in range(1, len(events) + 1):
        full = fold(start, events[:place])
        assert fold(start, compacted(events[:place])) == full, f"{name} compacted at {full.seq}"


def test_golden_compacted_log_reaches_the_states_of_the_full_one() -> None:
    full, dropped = _expected("long"), _expected("compacted")
    assert len(_events("compacted")) < len(_events("long")) / 2
    assert len(dropped) > 5
    assert {seq: full[seq] for seq in dropped} == dropped


def test_golden_logs_number_events_without_a_gap() -> None:
    for name in NAMES:
        place = _start(name).seq
        for event in _events(name):
            assert (event.first if isinstance(event, LogCompacted) else event.seq) == place + 1, name
            place = event.seq


def test_golden_logs_hold_every_kind_of_event() -> None:
    met = {type(event) for name in NAMES for event in _events(name)}
    assert met == {*EVENT_TYPES.values(), UnknownEvent}


def test_golden_long_log_is_long() -> None:
    assert len(_events("long")) >= 300
