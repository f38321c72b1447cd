"""Event lines: a log read back under another id keeps its events, its order and what points from one to another."""

from typing import Any

import msgspec
import pytest

from palaver.core.fold.evolve import fold
from palaver.errors import Invalid
from palaver.history.lines import read_events, readdress
from palaver.history.parts import Json
from palaver.schema.events import (
    ContextCompressed,
    ConversationCreated,
    LogCompacted,
    MessageAdded,
    MessageTruncated,
    TextFinished,
    decode_event,
    encode_event,
)
from palaver.schema.view import State


def parsed(data: bytes) -> list[Json]:
    return list(read_events(data.split(b"\n")))


def log(*events: Any) -> bytes:
    return b"".join(encode_event(event) + b"\n" for event in events)


CREATED = ConversationCreated(seq=1, id="e1", ts=5, conversation="old", project="/elsewhere", title="T")
ADDED = MessageAdded(seq=2, id="e2", ts=6, conversation="old", message="m", content=())


def test_events_come_back_under_another_id_and_folder() -> None:
    lines = readdress(parsed(log(CREATED, ADDED)), "new", "/here")

    events = [decode_event(line) for line in lines]
    assert [(event.seq, event.id, event.ts, event.conversation) for event in events] == [
        (1, "e1", 5, "new"),
        (2, "e2", 6, "new"),
    ]
    state = fold(State(), events)
    assert (state.project, state.title, len(state.messages)) == ("/here", "T", 1)


def test_no_later_event_chooses_a_folder_or_a_task_either() -> None:
    parent = {"conversation": "p", "kind": "subagent", "root": "p"}
    later = [
        {"type": "conversation.created", "seq": 2, "agent": "a", "project": "/etc", "parent": parent},
        {"type": "conversation.updated", "seq": 3, "project": "/etc", "parent": parent},
        {"type": "conversation.updated", "seq": 4, "title": "Tale"},
    ]
    data = log(CREATED) + b"".join(msgspec.json.encode(event) + b"\n" for event in later)
    state = fold(State(), (decode_event(line) for line in readdress(parsed(data), "new", "/here")))
    assert (state.project, state.parent, state.title) == ("/here", None, "Tale")


def test_gaps_of_compaction_are_closed_and_pointers_follow() -> None:
    data = log(
        CREATED,
        ADDED,
        LogCompacted(seq=40, first=3, chain="00"),
        TextFinished(seq=41, message="a", block=0, text="x"),
        ContextCompressed(seq=42, stage="limit", strength="low", before_tokens=2, after_tokens=1, horizon=41),
        MessageTruncated(seq=43, index=1, first_seq=2),
    )

    events = [msgspec.json.decode(line) for line in readdress(parsed(data), "new", "/here")]

    assert [event["seq"] for event in events] == [1, 2, 3, 4, 5]
    assert "log.compacted" not in [event["type"] for event in events]
    assert (events[3]["horizon"], events[4]["first_seq"]) == (3, 2)


def test_second_time_changes_nothing() -> None:
    once = readdress(parsed(log(CREATED, ADDED)), "new", "/here")

    assert readdress(parsed(b"\n".join(once)), "new", "/here") == once


def test_event_of_a_later_release_is_kept_as_it_came() -> None:
    strange = b'{"type":"moon.risen","seq":2,"id":"x","ts":1,"conversation":"old","phase":{"full":true}}'

    lines = readdress(parsed(log(CREATED) + strange), "new", "/here")

    assert msgspec.json.decode(lines[1]) == {
        **msgspec.json.decode(strange),
        "conversation": "new",
    }


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "no events"),
        (b"\n\n", "no events"),
        (b"hello", "Line 1"),
        (log(CREATED) + b"{", "Line 2"),
        (log(CREATED) + b'{"type":"x"}', "Line 2"),
        (log(CREATED) + b'{"seq":2}', "Line 2"),
        (log(CREATED) + b'{"type":"text.delta","seq":"two"}', "Line 2"),
        (log(ADDED), "begins with"),
        (log(CREATED, CREATED), "does not follow"),
        (log(CREATED) + b'{"type":"x","seq":2,"deep":' + b"[" * 80 + b"]" * 80 + b"}", "64"),
        (log(CREATED) + b"\xff\xfe", "Line 2"),
    ],
)
def test_broken_file_is_refused_with_the_place(data: bytes, word: str) -> None:
    with pytest.raises(Invalid, match=word):
        parsed(data)
