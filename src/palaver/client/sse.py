"""Reading a stream of server-sent events: bytes in any pieces, whole events out."""

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerSent:
    event: str
    data: bytes
    id: str | None = None


async def server_sent(chunks: AsyncIterable[bytes]) -> AsyncIterator[ServerSent | None]:
    """Events as they complete; None for a comment, which is how a server says it is alive.

    Split on newline bytes only: U+2028 may stand inside the JSON.
    """
    pending = b""
    event, data, cursor = "message", list[bytes](), None
    async for chunk in chunks:
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            line = line.rstrip(b"\r")
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if not line:
                if data:
                    yield ServerSent(event, b"\n".join(data), cursor)
                event, data = "message", []
            elif not field:
                yield None
            elif field == b"event":
                event = value.decode()
            elif field == b"data":
                data.append(value)
            elif field == b"id":
                cursor = value.decode()
