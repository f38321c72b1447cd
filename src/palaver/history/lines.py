"""A conversation as the lines of its own log, and a log read from such lines under another id.

Export hands out the stored lines as they are. Import numbers them anew without the gaps that compaction left, gives them the
new conversation's id and moves the few numbers that point to other events along. Pure. Event types this release does not
know are kept like any other. The hash chain is the log's affair: it begins anew with the first line that is appended.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from palaver.errors import Invalid
from palaver.history.parts import Json, parse_json
from palaver.schema.base import IMPORT_FACE
from palaver.schema.events import UnknownEvent, decode_event, encode_event

FIRST_TYPE = "conversation.created"
_FRAMES = frozenset({FIRST_TYPE, "conversation.updated"})
"""Events that say where a conversation works and where it comes from."""
_SPOKEN = frozenset({"message.added", "queue.added"})
"""Events that hold words under somebody's name."""
LEFT_OUT = frozenset({"log.compacted"})
"""Stands for events that are gone. In a log without gaps there is nothing to stand for."""

_POINTERS = {"context.compressed": "horizon", "message.truncated": "first_seq"}
"""Fields that hold the number of another event of the same log."""


def read_events(lines: Iterable[bytes]) -> Iterator[Json]:
    """The events of an exported log, one after another. Raises Invalid, naming the line."""
    is_empty = True
    seq = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        event = _parse_line(line, number)
        if not seq and event["type"] != FIRST_TYPE:
            raise Invalid(f"Line {number} is {event['type']!r}; a log begins with {FIRST_TYPE!r}.", line=number)
        if event["seq"] <= seq:
            raise Invalid(f"Line {number} has seq {event['seq']}, which does not follow {seq}.", line=number)
        seq = event["seq"]
        if event["type"] not in LEFT_OUT:
            is_empty = False
            yield event
    if is_empty:
        raise Invalid("The file holds no events.")


def _parse_line(line: bytes, number: int) -> Json:
    try:
        event = parse_json(line)
        decode_event(line)
    except (Invalid, msgspec.MsgspecError) as problem:
        raise Invalid(f"Line {number} is no event: {problem}", line=number) from None
    if not isinstance(event, dict) or not isinstance(event.get("type"), str) or not isinstance(event.get("seq"), int):
        raise Invalid(f"Line {number} is no event: it has no `type` and `seq`.", line=number)
    return event


def readdress(events: Sequence[Json], conversation: str, project: str) -> list[bytes]:
    """The same events as lines 1, 2, 3 … of another conversation, in a folder of this machine."""
    numbers = [event["seq"] for event in events]
    lines: list[bytes] = []
    for seq, event in enumerate(events, 1):
        moved = {**event, "seq": seq, "conversation": conversation}
        pointer = _POINTERS.get(event["type"])
        if pointer and isinstance(event.get(pointer), int):
            moved[pointer] = bisect_left(numbers, event[pointer]) + 1
        if event["type"] in _FRAMES:
            moved |= _frame(event, project)
        if event["type"] in _SPOKEN:
            moved["origin"] = _foreign(event.get("origin"))
        lines.append(_canonical(msgspec.json.encode(moved)))
    return lines


def _frame(event: Json, project: str) -> Json:
    """A file chooses no folder, wherever it names one. And nobody here gave a task that it says it works on: a copy stands
    for itself, in the list like any other."""
    parent = event.get("parent")
    works = isinstance(parent, dict) and parent.get("kind") == "subagent"
    named = event["type"] == FIRST_TYPE or event.get("project") is not None
    return {"parent": None if works else parent, "project": project if named else None}


def _foreign(origin: Any) -> Json:
    """Who spoke according to the file, and that it is the file which says so."""
    return {**(origin if isinstance(origin, dict) else {}), "face": IMPORT_FACE}


def _canonical(line: bytes) -> bytes:
    """An event of ours in the very bytes its encoder makes; a stranger as it came."""
    event = decode_event(line)
    return line if isinstance(event, UnknownEvent) else encode_event(event)
