"""Events on the wire: names, what is left out, and how a line of another release is read."""

import json
import re

import msgspec
import pytest

from palaver.schema.base import Origin, Usage
from palaver.schema.events import (
    EVENT_TYPES,
    Delta,
    DraftSet,
    MessageAdded,
    TextDelta,
    TurnFinished,
    UnknownEvent,
    decode_event,
    encode_event,
)
from tests.golden.make import HERE as GOLDEN

LINES = [line for path in sorted(GOLDEN.glob("*.jsonl")) for line in path.read_bytes().splitlines()]


def test_event_names_are_dotted_and_fragments_end_in_delta() -> None:
    assert all(re.fullmatch(r"[a-z]+(\.[a-z]+)+", name) for name in EVENT_TYPES)
    fragments = {name for name in EVENT_TYPES if name.endswith(".delta")}
    assert fragments == {kind.__struct_config__.tag for kind in Delta.__args__}


def test_event_leaves_out_what_is_absent() -> None:
    line = encode_event(TextDelta(seq=4, id="e4", ts=9, conversation="c", turn="t", message="m", block=0, text="hi"))
    assert json.loads(line) == {
        "type": "text.delta",
        "seq": 4,
        "id": "e4",
        "ts": 9,
        "conversation": "c",
        "turn": "t",
        "message": "m",
        "block": 0,
        "text": "hi",
    }


def test_event_is_one_line_whatever_it_holds() -> None:
    line = encode_event(DraftSet(text="a\nb\r\u2028\x85 🌱\x00"))
    assert b"\n" not in line
    assert line.splitlines() == [line]
    assert decode_event(line) == DraftSet(text="a\nb\r\u2028\x85 🌱\x00")


def test_golden_lines_of_known_events_are_read_and_written_to_the_same_bytes() -> None:
    own = [line for line in LINES if not isinstance(event := decode_event(line), UnknownEvent) and event.id]
    rewritten = [encode_event(event) for line in own if not isinstance(event := decode_event(line), UnknownEvent)]
    # Lines of another release carry more than we know; all others come out as they went in.
    differing = [line for line, again in zip(own, rewritten, strict=True) if json.loads(line) != json.loads(again)]
    assert all(b'"conversation":"unknown"' in line for line in differing)
    assert len(own) > 900


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"weather.changed","seq":3,"id":"e","ts":9,"conversation":"c","sky":[1,{"a":null}]}',
        b'{"type":"draft.set","seq":3,"id":"e","ts":9,"conversation":"c","text":7}',
        b'{"type":"draft.set","seq":3,"id":"e","ts":9,"conversation":"c"}',
        b'{"type":"turn.status","seq":3,"id":"e","ts":9,"conversation":"c","status":"dreaming"}',
        b'{"type":"draft.set","seq":3,"id":"e","ts":9,"conversation":"c","text":"x","turn":5}',
    ],
)
def test_event_that_cannot_be_read_keeps_its_place(line: bytes) -> None:
    event = decode_event(line)
    assert isinstance(event, UnknownEvent)
    assert (event.seq, event.id, event.ts, event.conversation) == (3, "e", 9, "c")


def test_unknown_fields_are_passed_over() -> None:
    line = b'{"type":"draft.set","seq":3,"text":"x","mood":"good","origin":{"face":"bus","planet":"Mars"}}'
    assert decode_event(line) == DraftSet(seq=3, text="x", origin=Origin(face="bus"))


def test_event_without_usage_counts_nothing() -> None:
    assert decode_event(b'{"type":"turn.finished","outcome":"completed"}') == TurnFinished(outcome="completed")
    assert Usage(input_tokens=1, cached_tokens=2) + Usage(input_tokens=3, output_tokens=4) == Usage(
        input_tokens=4, output_tokens=4, cached_tokens=2
    )


def test_events_cannot_be_changed() -> None:
    event = MessageAdded(message="m")
    with pytest.raises(AttributeError):
        event.message = "other"  # type: ignore[misc]


def test_broken_line_is_not_an_event() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_event(b'{"type":"draft.set"')
