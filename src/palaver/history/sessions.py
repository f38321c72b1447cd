"""The list of conversations as JSON lines: an overview to grep, and an inventory of what was exported. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from palaver.schema.view import Listing

NAME = "sessions.jsonl"
"""The file that lists what an export of everything holds."""


def written(listings: Iterable[Listing]) -> Iterator[bytes]:
    for listing in listings:
        yield msgspec.json.encode(listing) + b"\n"


def is_listing(line: Any) -> bool:
    """A line of such a list, which tells of a conversation and does not hold it."""
    return isinstance(line, dict) and {"id", "status", "message_count"} <= line.keys()
