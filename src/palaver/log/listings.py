"""The conversation list: its order, its cursor, and which rows wait or are unfinished.

The SQLite store asks its read connection through the functions below; the memory store shares the meaning. A row keeps its
`Listing` as JSON beside the few columns that the list is found and sorted by, so a new field needs no migration.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from palaver.errors import Invalid
from palaver.schema.view import Listing

if TYPE_CHECKING:
    pass

_listing = msgspec.json.Decoder(Listing)


class Place(NamedTuple):
    """A row's place in the list, which is sorted by it, downwards."""

    updated_at: int
    number: int
    """The conversation's number in its store: of two that changed in the same millisecond the newer comes first."""


def cursor_of(place: Place) -> str:
    """Names the row a page ended with: the next page begins there, whatever has moved to the top since."""
    return urlsafe_b64encode(b"%d.%d" % place).decode().rstrip("=")


def place_of(cursor: str) -> Place:
    """Raises Invalid."""
    try:
        updated_at, number = urlsafe_b64decode(cursor.encode() + b"===").split(b".")
        return Place(int(updated_at), int(number))
    except ValueError:
        raise Invalid("This cursor is not one of ours. Leave it out to begin with the first page.") from None


def is_waiting(listing: Listing) -> bool:
    return listing.open_requests > 0 and not listing.deleted


def is_unfinished(listing: Listing) -> bool:
    """An open turn must be settled whatever became of the conversation; the queue of a deleted one is void."""
    return listing.turn is not None or (listing.queue_size > 0 and not listing.deleted)
