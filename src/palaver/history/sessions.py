"""The list of conversations as JSON lines: an overview to grep, and an inventory of what was exported. Pure."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from palaver.core.json_bounds import decode_json
from palaver.history.trajectory import moment
from palaver.schema.view import Listing

CHATS_NAME = "chat-sessions.jsonl"
"""The file of a workspace in which programs of the `stream` contract keep their list."""
NAME = "sessions.jsonl"
"""The file that lists what an export of everything holds."""


def write_listings(listings: Iterable[Listing]) -> Iterator[bytes]:
    for listing in listings:
        yield msgspec.json.encode(listing) + b"\n"


def write_chat_sessions(listings: Iterable[Listing]) -> Iterator[bytes]:
    """The same as `chat-sessions.jsonl` has it, for programs of the `stream` contract."""
    for listing in listings:
        yield msgspec.json.encode({"id": listing.id, **_metadata(listing)}) + b"\n"


def _metadata(listing: Listing) -> dict[str, Any]:
    return {
        "title": listing.title,
        "createdAt": moment(listing.created_at),
        "updatedAt": moment(listing.updated_at),
        "messageCount": listing.message_count,
        "agentId": listing.agent,
    }


def merge_chat_sessions(
    known: bytes, listings: Iterable[Listing], deleted: Collection[str], imported: Callable[[str], str]
) -> bytes:
    """A `chat-sessions.jsonl` brought up to date: each of our sessions on its line, new ones at the end.

    `known` is what it says now. Lines of other sessions, what cannot be read, and fields that are not ours are kept.
    `imported` is the id here of a session that another program may have written down under its own.
    """
    rows = {listing.id: listing for listing in listings}
    lines: list[bytes] = []
    written: set[str] = set()
    for line in known.splitlines():
        said = _session(line)
        names = (said["id"], imported(said["id"])) if said else ()
        ours = next((name for name in names if name in rows), None)
        if said and ours is not None:
            if ours not in written:
                lines.append(msgspec.json.encode({**said, **_metadata(rows[ours])}))
            written.add(ours)
        elif line.strip() and not any(name in deleted for name in names):
            lines.append(line)
    new = sorted((row for row in rows.values() if row.id not in written), key=lambda row: (row.created_at, row.id))
    return b"".join([*(line + b"\n" for line in lines), *write_chat_sessions(new)])


class SessionNote(Struct, frozen=True):
    """What a `chat-sessions.jsonl` says of a session; the times as they are written there."""

    title: str = ""
    created_at: Any = None
    updated_at: Any = None


def read_chat_sessions(known: bytes) -> dict[str, SessionNote]:
    """By the session's id; of several lines of one session the last counts."""
    found = [said for line in known.splitlines() if (said := _session(line))]
    return {
        said["id"]: SessionNote(
            title=said["title"] if isinstance(said.get("title"), str) else "",
            created_at=said.get("createdAt"),
            updated_at=said.get("updatedAt"),
        )
        for said in found
    }


def _session(line: bytes) -> dict[str, Any] | None:
    try:
        said = decode_json(line)
    except msgspec.DecodeError:
        return None
    return said if isinstance(said, dict) and isinstance(said.get("id"), str) else None


def is_listing(line: Any) -> bool:
    """A line of such a list, which tells of a conversation and does not hold it."""
    return isinstance(line, dict) and {"id", "status", "message_count"} <= line.keys()
