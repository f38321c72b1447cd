"""One conversation's events as server-sent events: everything after a cursor, then whatever happens, for ever.

The bytes of an event are those the log stored.
"""

import re
from typing import Annotated, Any, assert_never

from litestar import Request, get
from litestar.params import FromPath, FromQuery, HeaderParameter
from litestar.types import ASGIApp

from palaver.errors import Invalid
from palaver.faces.http.sse import HEARTBEAT_COMMENT, EventStream, describe_stream
from palaver.faces.native.lines import snapshot_line
from palaver.faces.server import Server
from palaver.feed.feed import CaughtUp, Heartbeat, Item, Reason, Snapshot
from palaver.feed.frames import Frame
from palaver.people.authentication import Principal

_NUMBER = re.compile(r"\d{1,18}", re.ASCII)


@get(
    "/api/conversations/{conversation:str}/events",
    media_type="text/event-stream",
    responses={200: describe_stream("`id: seq` and `data: event`")},
    operation_id="follow_events",
    tags=["conversations"],
)
async def events(
    conversation: FromPath[str],
    request: Request[Principal, Principal, Any],
    server: Server,
    after: FromQuery[str | None] = None,
    last_event_id: Annotated[str | None, HeaderParameter(name="Last-Event-ID")] = None,
    epoch: FromQuery[str | None] = None,
) -> ASGIApp:
    """Follow a conversation. `after`, or `Last-Event-ID` of a reconnect, names the last event seen; without it, from now on."""
    # A browser that reconnects repeats the address of its first try, so what it saw last counts.
    cursor = _cursor("Last-Event-ID", last_event_id) if last_event_id else _cursor("after", after)
    moved_store = epoch is not None and epoch != server.log.epoch
    items = server.feed.subscribe(conversation, cursor, snapshot_first=moved_store)
    # The first item comes at once, or the refusal does: before any header is out.
    epoch_here = server.log.epoch
    first = _encode(await anext(items), conversation, epoch_here, "epoch" if moved_store else None)
    return EventStream(conversation, first, items, lambda item: _encode(item, conversation, epoch_here), server.streams)


def _cursor(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise Invalid(f"`{name}`: a cursor is the number of the last event seen, not {text[:40]!r}.")
    return int(text)


def _encode(item: Item, conversation: str, epoch: str, reason: Reason | None = None) -> bytes:
    match item:
        case Frame():
            return item.sse()
        case Snapshot():
            return b"event: snapshot\nid: %d\ndata: %s\n\n" % (
                item.seq,
                snapshot_line(conversation, epoch, item, reason),
            )
        case CaughtUp():
            return b": caught up at %d\n\n" % item.seq
        case Heartbeat():
            return HEARTBEAT_COMMENT
        case _:
            assert_never(item)


ROUTES = [events]
