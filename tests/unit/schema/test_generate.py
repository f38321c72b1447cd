"""What other programs are told of the contracts is what the contracts say."""

from typing import get_args

import msgspec

from palaver.schema.events import EVENT_TYPES, KnownEvent, TextDelta, encode_event
from palaver.schema.generate import schema, shapes
from palaver.schema.view import State

STAMP = ("seq", "id", "ts", "conversation", "turn", "origin", "client_request_id", "body_hash", "exchange")
"""What every event carries, whatever its type."""


def test_schema_defines_every_event_and_names_it_once() -> None:
    definitions = schema()["$defs"]
    members = [member["$ref"].rpartition("/")[2] for member in definitions["KnownEvent"]["anyOf"]]
    assert members == [kind.__name__ for kind in get_args(KnownEvent)]
    assert [definitions[name]["properties"]["type"]["enum"] for name in members] == [[tag] for tag in EVENT_TYPES]


def test_schema_refers_only_to_what_it_defines() -> None:
    document = schema()
    text = msgspec.json.encode(document).decode()
    referred = {part.partition('"')[0] for part in text.split('"$ref":"#/$defs/')[1:]}
    assert referred <= document["$defs"].keys()


def test_schema_requires_what_a_reader_always_finds() -> None:
    definitions = schema()["$defs"]
    line = encode_event(TextDelta(seq=1, id="e", ts=1, conversation="c", message="m", block=0, text=""))
    assert set(definitions["TextDelta"]["required"]) == msgspec.json.decode(line).keys()
    assert set(definitions["State"]["required"]) == msgspec.json.decode(msgspec.json.encode(State())).keys()


def test_shapes_hold_every_event_with_its_own_fields() -> None:
    text = shapes()
    for tag, kind in EVENT_TYPES.items():
        line = next(line for line in text.splitlines() if line.startswith(f'  "{tag}": '))
        own = {field.name for field in msgspec.structs.fields(kind)} - set(STAMP)
        assert set(msgspec.json.decode(line.partition(": ")[2].rstrip(","))) - {"exchange"} == own
    assert '"exchange.sent": {"exchange":["str"]' in text, (
        "what an event insists on is its own, though others may have it"
    )
