"""Server-sent events written straight to ASGI, for every face that has them.

A face gives the items and how each is encoded; many that wait go out as one write. The stream ends with the connection,
with the key it came with, or when a write hangs.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, Generic, TypeVar

from litestar.openapi.datastructures import ResponseSpec
from litestar.types import Receive, Scope, Send

from palaver.errors import PalaverError
from palaver.faces.http.open_streams import StreamEnded, Streams
from palaver.faces.http.stall import Hanging
from palaver.journal import Journal

logger = Journal(__name__)

T = TypeVar("T")

SEND_S = 20.0
"""A reader that takes nothing for this long is gone, whatever its connection says."""

HEARTBEAT_COMMENT = b": heartbeat\n\n"
BEHIND_COMMENT = b": behind\n\n"
"""Written to whoever fell behind, before it begins anew. It goes out when there is room again, and so does what follows."""

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # Proxies of the nginx kind gather a response before they pass it on; not this one.
    (b"x-accel-buffering", b"no"),
]


def describe_stream(description: str) -> ResponseSpec:
    """A stream as the API's description has it: nobody can say more of its body than what each event holds."""
    return ResponseSpec(str, media_type="text/event-stream", description=description, generate_examples=False)


class EventStream(Generic[T]):
    """The ASGI response. `first` was taken from `items` already, so that a refusal could still be a status."""

    def __init__(
        self,
        name: str,
        first: bytes,
        items: AsyncGenerator[T, None],
        encode: Callable[[T], bytes],
        streams: Streams,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        self._name = name
        self._headers = [*HEADERS, *headers]
        self._first = first
        self._items = items
        self._encode = encode
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._items):
            try:
                async with self._streams.open(scope["auth"]) as stream:
                    start: Any = {"type": "http.response.start", "status": 200, "headers": self._headers}
                    await send(start)
                    await self._until_gone(receive, Hanging(send, stream))
            except StreamEnded:
                with suppress(TimeoutError):
                    async with asyncio.timeout(SEND_S):
                        await send(_body(b"", more=False))
            except TimeoutError:
                logger.info("a reader hangs and was let go", stream=self._name)

    async def _until_gone(self, receive: Receive, writes: Hanging) -> None:
        writing = asyncio.create_task(self._write_all(writes), name=f"events of {self._name}")
        leaving = asyncio.create_task(_wait_for_disconnect(receive), name=f"reader of {self._name}")
        try:
            await _until_either(writing, leaving, writes)
        finally:
            for task in (writing, leaving):
                task.cancel()
            await asyncio.wait({writing, leaving})
        if not writing.cancelled() and (failure := writing.exception()) is not None:
            raise failure

    async def _write_all(self, writes: Hanging) -> None:
        await writes.send_bytes(_body(self._first), len(self._first))
        try:
            async for item in self._items:
                body = self._encode(item)
                await writes.send_bytes(_body(body), len(body))
        except PalaverError as refusal:
            # Deleted while somebody read; whoever comes back is told so by a status.
            logger.info("a stream ended", stream=self._name, reason=refusal.message)
        await writes.send(_body(b"", more=False))


def _body(body: bytes, *, more: bool = True) -> Any:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _until_either(writing: asyncio.Task[None], leaving: asyncio.Task[None], writes: Hanging) -> None:
    while True:
        done, _ = await asyncio.wait({writing, leaving}, timeout=SEND_S, return_when=asyncio.FIRST_COMPLETED)
        if done:
            return
        if writes.look():
            raise TimeoutError


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
