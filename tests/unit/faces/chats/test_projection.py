"""What the chats face says of every golden log: applied frame by frame it is what a snapshot shows, at every event."""

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from palaver.core.fold.evolve import evolve
from palaver.core.state import status_of
from palaver.faces.chats.projection import ChatsProjector
from palaver.faces.chats.snapshot import CHATS_STRIDE, snapshot_frame
from palaver.faces.chats.states import FOLLOWING, between
from palaver.schema.events import Event, LogCompacted, decode_event
from palaver.schema.view import State, Status
from tests.unit.faces.chats.client import ChatsClient, Json, frames_of

GOLDEN = Path(__file__).parents[3] / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.jsonl") if path.stem != "paged")
"""All but one that begins with part of a view: this face is only ever given whole ones."""


def events_of(name: str) -> list[Event]:
    return [decode_event(line) for line in (GOLDEN / f"{name}.jsonl").read_bytes().splitlines()]


def start_of(name: str) -> State:
    first = events_of(name)[0]
    seq = 1 if isinstance(first, LogCompacted) else first.seq
    states = msgspec.json.decode((GOLDEN / f"{name}.states.json").read_bytes())
    known = states.get(str(seq - 1))
    return State() if known is None else msgspec.convert(known, State)


def shown(state: State, seq: int = 0) -> Json:
    (frame,) = frames_of(snapshot_frame(state, seq))
    return frame


def without_nulls(thread: Json) -> Json:
    return {name: value for name, value in thread.items() if value is not None}


@pytest.mark.parametrize("name", NAMES)
def test_frames_lead_to_what_a_snapshot_shows_at_every_event(name: str) -> None:
    state = start_of(name)
    projector = ChatsProjector(state)
    client = ChatsClient()
    client.apply(shown(state, projector.seq))
    for event in events_of(name):
        before, state = state, evolve(state, event)
        for told in (*projector.project(event, before, state), *projector.gathered()):
            for frame in frames_of(told.body):
                client.apply(frame)
        now = shown(state)
        assert client.seq == projector.seq <= CHATS_STRIDE * state.seq
        assert client.messages == now["messages"], f"{name} at {state.seq} ({event})"
        assert client.thread == without_nulls(now["thread"])
        assert client.runtime["queued_items"] == now["runtime"]["queued_items"]
        if state.turn is None:
            assert client.runtime == now["runtime"], f"{name} at {state.seq} ({event})"


@pytest.mark.parametrize("name", NAMES)
def test_snapshot_at_any_event_and_what_follows_it_make_the_same_chat(name: str) -> None:
    events = events_of(name)
    states = [start_of(name)]
    for event in events:
        states.append(evolve(states[-1], event))
    for place in range(0, len(events), max(1, len(events) // 25)):
        projector = ChatsProjector(states[place])
        client = ChatsClient()
        client.apply(shown(states[place], projector.seq))
        steps = zip(events[place:], states[place:], states[place + 1 :], strict=False)
        for number, (event, before, after) in enumerate(steps, 1):
            # Events come alone or several at once, and what they say together is one frame.
            last = number % (1 + place % 7) == 0 or after is states[-1]
            for told in (*projector.project(event, before, after), *(projector.gathered() if last else ())):
                for frame in frames_of(told.body):
                    client.apply(frame)
        assert client.messages == shown(states[-1])["messages"], f"{name} from {states[place].seq}"


@pytest.mark.parametrize("name", NAMES)
def test_every_call_shown_at_rest_has_its_one_result(name: str) -> None:
    state = start_of(name)
    for event in events_of(name):
        state = evolve(state, event)
        if state.turn is not None or status_of(state) == "waiting_user_input":
            continue
        messages = shown(state)["messages"]
        calls = [call["id"] for message in messages for call in message.get("tool_calls", [])]
        results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        assert sorted(calls) == sorted(results), f"{name} at {state.seq}"


def test_renewed_view_is_told_as_a_snapshot_with_a_number_that_never_goes_back() -> None:
    projector = ChatsProjector(State(conversation="c", seq=3))
    for seq, least in ((9, 9 * CHATS_STRIDE), (2, 9 * CHATS_STRIDE)):
        (told,) = projector.renewed(State(conversation="c", seq=seq, title="Renewed"))
        (frame,) = frames_of(told.body)
        assert (frame["type"], frame["thread"]["title"], frame["seq"]) == ("snapshot", "Renewed", least)


@pytest.mark.parametrize("name", NAMES)
def test_states_follow_each_other_as_the_contract_draws_them(name: str) -> None:
    state = start_of(name)
    projector = ChatsProjector(state)
    known: Status = shown(state)["runtime"]["state"]
    for event in events_of(name):
        before, state = state, evolve(state, event)
        for told in projector.project(event, before, state):
            for frame in frames_of(told.body):
                if frame["type"] == "runtime_updated":
                    assert frame["state"] == known or frame["state"] in FOLLOWING[known], f"{name} at {state.seq}"
                    known = frame["state"]


def test_way_between_any_two_states_is_drawn() -> None:
    for known in FOLLOWING:
        for now in FOLLOWING:
            way = (known, *between(known, now), now)
            assert all(step == then or then in FOLLOWING[step] for step, then in pairwise(way)), way
