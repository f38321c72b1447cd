"""One conversation's events as server-sent events: everything after a cursor, then whatever happens, for ever.

Written straight to ASGI. The bytes of an event are those the log stored; many that wait go out as one write. Reading ends
with the connection, with the key it came with, or when a write hangs.
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Annotated, Any, assert_never

import structlog
from litestar import Request, get
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath, FromQuery, HeaderParameter
from litestar.types import ASGIApp, Receive, Scope, Send

from palaver.errors import Invalid, PalaverError
from palaver.faces.hanging import Hanging
from palaver.faces.keys import Principal
from palaver.faces.native.lines import HEARTBEAT_COMMENT, snapshot_line
from palaver.faces.server import Server, needs
from palaver.faces.streams import StreamEnded, Streams
from palaver.feed.feed import CaughtUp, Heartbeat, Item, Reason, Snapshot
from palaver.feed.frames import Frame

logger = structlog.get_logger(__name__)

SEND_S = 20.0
"""A reader that takes nothing for this long is gone, whatever its connection says."""

_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # Proxies of the nginx kind gather a response before they pass it on; not this one.
    (b"x-accel-buffering", b"no"),
]


@get(
    "/api/conversations/{conversation:str}/events",
    guards=[needs("read")],
    media_type="text/event-stream",
    responses={
        200: ResponseSpec(
            str, media_type="text/event-stream", description="`id: seq` and `data: event`", generate_examples=False
        )
    },
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
    first = await anext(items)
    return EventStream(conversation, server.log.epoch, items, first, "epoch" if moved_store else None, server.streams)


def _cursor(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise Invalid(f"`{name}`: a cursor is the number of the last event seen, not {text[:40]!r}.")
    return int(text)


class EventStream:
    """The ASGI response."""

    def __init__(
        self,
        conversation: str,
        epoch: str,
        items: AsyncGenerator[Item, None],
        first: Item,
        first_reason: Reason | None,
        streams: Streams,
    ) -> None:
        self._conversation = conversation
        self._epoch = epoch
        self._items = items
        self._first = first
        self._first_reason = first_reason
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._items):
            try:
                async with self._streams.open(scope["auth"]):
                    start: Any = {"type": "http.response.start", "status": 200, "headers": _HEADERS}
                    await send(start)
                    await self._until_gone(receive, send)
            except StreamEnded:
                with suppress(TimeoutError):
                    async with asyncio.timeout(SEND_S):
                        await send(_body(b"", more=False))
            except TimeoutError:
                logger.info("a reader hangs and was let go", conversation=self._conversation)

    async def _until_gone(self, receive: Receive, send: Send) -> None:
        writes = Hanging(send)
        writing = asyncio.create_task(self._write_all(writes), name=f"events of {self._conversation}")
        leaving = asyncio.create_task(_disconnected(receive), name=f"reader of {self._conversation}")
        try:
            await _until_either(writing, leaving, writes)
        finally:
            for task in (writing, leaving):
                task.cancel()
            await asyncio.wait({writing, leaving})
        if not writing.cancelled() and (failure := writing.exception()) is not None:
            raise failure

    async def _write_all(self, writes: Hanging) -> None:
        await writes.send(_body(self._encoded(self._first, self._first_reason)))
        try:
            async for item in self._items:
                await writes.send(_body(self._encoded(item, None)))
        except PalaverError as refusal:
            # Deleted while somebody read; whoever comes back is told so by a status.
            logger.info("a stream ended", conversation=self._conversation, reason=refusal.message)
        await writes.send(_body(b"", more=False))

    def _encoded(self, item: Item, reason: Reason | None) -> bytes:
        match item:
            case Frame():
                return item.sse()
            case Snapshot():
                line = snapshot_line(self._conversation, self._epoch, item, reason)
                return b"event: snapshot\nid: %d\ndata: %s\n\n" % (item.seq, line)
            case CaughtUp():
                return b": caught up at %d\n\n" % item.seq
            case Heartbeat():
                return HEARTBEAT_COMMENT
            case _:
                assert_never(item)


def _body(body: bytes, *, more: bool = True) -> Any:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _until_either(writing: asyncio.Task[None], leaving: asyncio.Task[None], writes: Hanging) -> None:
    while True:
        done, _ = await asyncio.wait({writing, leaving}, timeout=SEND_S, return_when=asyncio.FIRST_COMPLETED)
        if done:
            return
        if writes.look():
            raise TimeoutError


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


ROUTES = [events]
