"""`GET /api/events`: everything that happens on the server, or in one project or session, as it happens."""

import re
from typing import Annotated

from litestar import get
from litestar.params import FromQuery, HeaderParameter
from litestar.types import ASGIApp

from palaver.errors import Invalid
from palaver.faces.bus.pump import EVERYTHING, Choice
from palaver.faces.bus.views import names_of
from palaver.faces.http.sse import EventStream, describe_stream
from palaver.faces.live import Live
from palaver.faces.server import Server

_NUMBER = re.compile(r"-?\d+", re.ASCII)
_DIGITS = 18
"""Of the longest number that is ours."""
_NEVER = (1 << 62) - 1
"""What a cursor of another kind counts as: one that nobody here knows."""


@get(
    "/api/events",
    media_type="text/event-stream",
    responses={200: describe_stream("`id:` the number, `data:` the event; no `event:` line")},
    operation_id="bus_events",
    tags=["bus"],
)
async def events(
    server: Server,
    live: Live,
    project_root: FromQuery[str | None] = None,
    session_id: FromQuery[str | None] = None,
    after: FromQuery[str | None] = None,
    last_event_id: Annotated[str | None, HeaderParameter(name="Last-Event-ID")] = None,
) -> ASGIApp:
    """Follow the bus. `after`, or `Last-Event-ID` of a reconnect, is the last number seen; without it, from now on."""
    names = frozenset(await names_of(project_root))
    cursor = _cursor(after, last_event_id)
    items = live.bus.follow(cursor, Choice(session_id, names) if session_id or names else EVERYTHING)
    # The log was asked, and whoever was told of the headers misses nothing that happens after them.
    first = await anext(items)
    return EventStream("the bus", first, items, bytes, server.streams)


def _cursor(after: str | None, last_event_id: str | None) -> int | None:
    # A browser that reconnects repeats the address of its first try, so what it saw last counts.
    if last_event_id:
        return _number(last_event_id)
    if after is None:
        return None
    if not _NUMBER.fullmatch(after):
        raise Invalid("`after` is the `seq` of the last event seen, or absent.")
    return _number(after)


def _number(cursor: str) -> int:
    return int(cursor) if cursor.isdecimal() and len(cursor) <= _DIGITS else _NEVER


ROUTES = [events]
