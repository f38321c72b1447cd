"""HTTP/1.1 connections with bounds: bytes and fields of a head, bytes of a body, requests ahead, and the time for each.

uvicorn's own protocol has none of them. `listener.py` runs it; what passes goes to the gate as ever. A request beyond a bound
is answered in the shape that all refusals have, and its connection is closed. Nothing here is logged: strangers could fill
the journal with it.
"""

import asyncio
import functools
import socket
import struct
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from palaver.errors import Busy, CallerError, Invalid, PalaverError, TooLarge, Unauthorized
from palaver.faces.http.connections import EXTENSION, Connection
from palaver.faces.http.errors import body_of

HEAD_BYTES = 64 << 10
"""Of the request line and all header fields: several times what browsers and proxies send."""
HEAD_FIELDS = 100
HEAD_S = 20.0
"""From the connection, or from the first byte of a later request, to the end of its head."""
BODY_S = 30.0
"""How long a body may pause; a stranger's as a whole."""
BODIES_S = 600.0
"""An attachment of full size over a slow line."""
FRAMING_BYTES = 64 << 10
"""Of a body beside its content: the sizes and extensions of chunks, and trailers."""
FRAMING_SHARE = 8
"""And this many bytes for each byte of content: chunks of one byte have five."""
STRANGER_BODY_BYTES = 1 << 20
"""All that a stranger has to say is a code or a token. A body that nobody reads is held back long before this."""
WAITING_REQUESTS = 8
"""Sent ahead on a connection, behind the one that is answered. Browsers and proxies send none."""
_DISCARD = struct.pack("ii", 1, 0)
"""For SO_LINGER: a close discards what was not sent yet."""
UNREAD_S = 30.0
"""How long a stranger may leave an answer unread."""


class HeadTooLarge(CallerError):
    status = 431


class TooSlow(CallerError):
    status = 408


class BoundedHttp(HttpToolsProtocol):
    def __init__(self, *arguments: Any, connection: Connection, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._connection = connection
        self._timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._head_fields = 0
        self._in_body = False
        self._body_ends_s = 0.0
        self._has_moved = False
        self._raw_body_bytes = 0
        self._content_bytes = 0
        self._unread_timer: asyncio.TimerHandle | None = None
        self._refusal: PalaverError | None = None
        socket_protocol: Any = self.ws_protocol_class
        self.ws_protocol_class = functools.partial(socket_protocol, connection=connection)  # type: ignore[assignment]

    # -- the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._connection.close = transport.abort
        self._connection.is_answered = self._is_answered
        self._connection.refuse = self._refuse_stranger
        self._set_timer(HEAD_S, self._on_slow_head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_timer()
        self._clear_unread_timer()
        # Nobody is there for the answers any more.
        self.pipeline.clear()
        self._connection.release()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._connection.key is None and self._unread_timer is None:
            self._unread_timer = self.loop.call_later(UNREAD_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._clear_unread_timer()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if self.transport.is_closing():
            return
        self._has_moved = True
        if self._in_body:
            self._raw_body_bytes += len(data)
        else:
            self._head_bytes += len(data)
            if self._timer is None:
                self._set_timer(HEAD_S, self._on_slow_head)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            if self._should_upgrade():
                self._clear_timer()
                self.handle_websocket_upgrade()
        except httptools.HttpParserError:
            self._refuse(self._refusal or Invalid("This is not HTTP/1.1, or its head is malformed."))
        else:
            if self._in_body:
                self._check_body()
            elif self._timer is not None and self._head_bytes > HEAD_BYTES:
                self._refuse(_too_large())

    def _check_body(self) -> None:
        if self._raw_body_bytes > FRAMING_BYTES + (1 + FRAMING_SHARE) * self._content_bytes:
            self._refuse(TooLarge("The chunks or trailers of this body have too much beside its content."))
        elif self._connection.key is None and self._raw_body_bytes > STRANGER_BODY_BYTES:
            self._refuse(TooLarge("Without a token a body cannot be this large.", limit_bytes=STRANGER_BODY_BYTES))

    # -- the parser

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= WAITING_REQUESTS:
            self._give_up(Busy("Wait for answers before you send more requests on this connection."))
        super().on_message_begin()
        scope: Any = self.scope
        scope["extensions"] = {EXTENSION: self._connection}
        self._head_fields = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_fields += 1
        if self._head_fields > HEAD_FIELDS:
            self._give_up(_too_large())
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        size_bytes = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size_bytes > HEAD_BYTES:
            self._give_up(_too_large())
        if not self.url.isascii():
            self._give_up(Invalid("An address is ASCII: percent-encode its other characters, as UTF-8."))
        super().on_headers_complete()
        self._in_body = True
        self._has_moved = False
        self._raw_body_bytes = self._content_bytes = 0
        self._body_ends_s = self.loop.time() + BODIES_S
        self._set_timer(BODY_S, self._on_body_pause)

    def on_body(self, body: bytes) -> None:
        self._content_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        # What follows in the same piece belongs to the next head; its size is counted anew from the next piece on.
        self._head_bytes = 0
        self._clear_timer()
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        wait_s = self._connection.wait_s(self.loop.time())
        if wait_s > 0:
            self.loop.call_later(wait_s, self._start_late, cycle, app)
        else:
            super()._start_asgi_task(cycle, app)

    def _start_late(self, cycle: RequestResponseCycle, app: Any) -> None:
        if not cycle.disconnected and not self.transport.is_closing():
            super()._start_asgi_task(cycle, app)

    # -- bounds

    def _on_slow_head(self) -> None:
        if self._head_bytes == 0:
            # Nothing was asked: a browser's speculative connection, or somebody who only looks.
            self.transport.close()
        else:
            self._refuse(TooSlow(f"The head of a request must be complete within {HEAD_S:.0f} seconds."))

    def _on_body_pause(self) -> None:
        is_late = self.loop.time() > self._body_ends_s or self._connection.key is None
        # While the application does not take what has come, nobody is late.
        is_waiting = not self._has_moved and not self.flow.read_paused
        if is_late or is_waiting:
            self._refuse(TooSlow("The body of this request did not come in time."))
            return
        self._has_moved = False
        self._set_timer(BODY_S, self._on_body_pause)

    def _give_up(self, refusal: PalaverError) -> None:
        self._refusal = refusal
        raise refusal

    def _refuse(self, refusal: PalaverError) -> None:
        """Answers if no answer has begun, and closes."""
        self._clear_timer()
        cycle: RequestResponseCycle | None = self.cycle
        is_free = cycle is None or (not cycle.response_started if self._in_body else cycle.response_complete)
        # An answer to what was sent ahead must not overtake another.
        if is_free and not self.pipeline:
            self.transport.write(response_of(refusal))
        self.transport.close()

    def _is_answered(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return (cycle is None or cycle.response_complete) and not self.transport.get_write_buffer_size()

    def _refuse_stranger(self) -> None:
        """Its principal was let in when the request began, and is not any more."""
        cycle: RequestResponseCycle | None = self.cycle
        if self._in_body and cycle is not None and not cycle.response_started:
            self._refuse(Unauthorized("Your token or sign-in ended before this request was complete."))
            return
        # What the system holds for its reader goes too. Nothing else is said: whether the request took effect is not known here.
        with suppress(AttributeError, OSError):
            connected: Any = self.transport.get_extra_info("socket")
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DISCARD)
        self.transport.abort()

    def _set_timer(self, seconds: float, run: Any) -> None:
        self._clear_timer()
        self._timer = self.loop.call_later(seconds, run)

    def _clear_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _clear_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def response_of(refusal: PalaverError) -> bytes:
    """A whole HTTP response, for what never reaches the application."""
    body = body_of(refusal)
    head = (
        f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nx-content-type-options: nosniff\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


def _too_large() -> HeadTooLarge:
    return HeadTooLarge(
        f"The head of a request may have {HEAD_FIELDS} fields and {HEAD_BYTES >> 10} KiB.", limit_bytes=HEAD_BYTES
    )
