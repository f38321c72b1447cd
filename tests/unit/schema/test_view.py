"""The view on the wire: every field is there, and it comes back as it went."""

import json
from typing import Any

import msgspec

from palaver.schema.view import Message, State
from tests.golden.make import HERE as GOLDEN


def test_view_always_shows_every_field() -> None:
    assert json.loads(msgspec.json.encode(State())).keys() == set(State.__struct_fields__)
    message = Message(id="m", role="user", seq=1, updated_seq=1, ts=1)
    assert json.loads(msgspec.json.encode(message)).keys() == set(Message.__struct_fields__)


def test_view_comes_back_as_it_went() -> None:
    for path in sorted(GOLDEN.glob("*.states.json")):
        states: dict[str, Any] = json.loads(path.read_bytes())
        for seq, shown in states.items():
            state = msgspec.convert(shown, State)
            assert json.loads(msgspec.json.encode(state)) == shown, f"{path.name} at {seq}"


def test_view_of_a_newer_server_can_be_read() -> None:
    newer = json.loads(msgspec.json.encode(State())) | {"weather": "grey"}
    assert msgspec.convert(newer, State) == State()
