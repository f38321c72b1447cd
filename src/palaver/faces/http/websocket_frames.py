"""WebSocket messages framed once for all who get them, and written as they are.

uvicorn frames each message for each connection, which costs several times what passing the bytes on does. What a server
says is framed the same for everybody (only clients mask), so a face may frame what it says once and hand over many frames
in one piece: `listener.py` runs `FramedSockets`, which offers that as an ASGI extension. Where it is not offered (another
server, a test), `payloads` gives the messages back, to be sent one by one.
"""

from collections.abc import Iterator
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from palaver.errors import Invalid
from palaver.faces.http.connections import EXTENSION as CONNECTION
from palaver.faces.http.connections import Connection
from palaver.faces.http.http_bounds import response_of

EXTENSION = "palaver.websocket.frames"
"""In `scope["extensions"]`, and the type of the message."""

_TEXT = 0x81
"""The first byte of a text message that is one frame."""
_SHORT, _MEDIUM = 126, 1 << 16


def frame_text(text: bytes) -> bytes:
    """A text message as a server writes it (RFC 6455, 5.2)."""
    size = len(text)
    if size < _SHORT:
        return bytes((_TEXT, size)) + text
    if size < _MEDIUM:
        return bytes((_TEXT, 126)) + size.to_bytes(2, "big") + text
    return bytes((_TEXT, 127)) + size.to_bytes(8, "big") + text


def payloads(frames: bytes) -> Iterator[bytes]:
    """The messages of what `frame_text` made, joined or not."""
    at = 0
    while at < len(frames):
        size, at = frames[at + 1], at + 2
        if size >= _SHORT:
            wide = 2 if size == 126 else 8
            size, at = int.from_bytes(frames[at : at + wide], "big"), at + wide
        yield frames[at : at + size]
        at += size


class FramedSockets(WebSocketsSansIOProtocol):
    """uvicorn's own, and one more message: frames that are ready to be written."""

    def __init__(self, *arguments: Any, connection: Connection, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._connection = connection

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.release()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.handshake_initiated and not self.transport.is_closing():
            # The handshake comes in one piece: what the library could not read now it never will, and it says nothing.
            self.transport.write(response_of(Invalid("This is no WebSocket handshake.")))
            self.transport.close()

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            extensions: Any = self.scope["extensions"]
            extensions[EXTENSION] = {}
            extensions[CONNECTION] = self._connection
            self._connection.is_answered = self.transport.is_closing
            self._connection.refuse = self.transport.abort

    async def send(self, message: Any) -> None:
        if message["type"] != EXTENSION:
            await super().send(message)
            return
        if not self.writable.is_set():
            await self.writable.wait()
        if self.disconnected or self.close_sent or self.transport.is_closing():
            raise ClientDisconnected
        self.transport.write(message["body"])
