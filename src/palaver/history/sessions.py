"""The list of conversations as JSON lines: an overview to grep, and an inventory of what was exported. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from palaver.history.trajectory import moment
from palaver.schema.view import Listing

NAME = "sessions.jsonl"
"""The file that lists what an export of everything holds."""


def written(listings: Iterable[Listing]) -> Iterator[bytes]:
    for listing in listings:
        yield msgspec.json.encode(listing) + b"\n"


def written_for_chats(listings: Iterable[Listing]) -> Iterator[bytes]:
    """The same as `chat-sessions.jsonl` has it, for programs of the `stream` contract."""
    for listing in listings:
        known = {
            "id": listing.id,
            "title": listing.title,
            "createdAt": moment(listing.created_at),
            "updatedAt": moment(listing.updated_at),
            "messageCount": listing.message_count,
            "agentId": listing.agent,
        }
        yield msgspec.json.encode(known) + b"\n"


def is_listing(line: Any) -> bool:
    """A line of such a list, which tells of a conversation and does not hold it."""
    return isinstance(line, dict) and {"id", "status", "message_count"} <= line.keys()
