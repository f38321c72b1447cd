"""HTTP as the client needs it: a request over a connection of asyncio's, and its answer as httptools reads it, piece by piece.

Beneath `connection`, its only caller, which bounds every wait for an answer. Here connections are opened, kept for the next
request, and dropped the moment an exchange ends before its answer does: by a refusal, by a timeout, by whoever gave up. Every
failure is an OSError in the words of the system. It knows nothing of Palaver (docs/decisions: why no library does this).
"""

import asyncio
import os
import zlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from io import BufferedIOBase
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, urlencode, urljoin, urlsplit

import httptools

from palaver import __version__

if TYPE_CHECKING:
    import ssl

CONNECT_S = 5.0
"""A server that is there takes a connection at once; the rest is for names, certificates and long ways."""
NEXT_ADDRESS_S = 0.25
"""A name may stand for several addresses, and the first of them may lead nowhere: then the next is tried beside it."""
IDLE_S = 15.0
"""Routers forget a silent connection, and say nothing of it: an older one is not used again."""
HELD_BYTES = 1 << 20
"""More than this is left with the system until somebody reads what is here."""
PIECE_BYTES = 256 << 10
"""Of a file that is sent: as much of it is in memory."""
REDIRECTS = 5
REPEATABLE = ("GET", "PUT", "DELETE")
"""Asked twice they do what they do once."""
IN_A_PATH = "/%:@!$&'()*+,;=~"
"""What stands in a path as it is. What was quoted before stays so."""

Body = bytes | BufferedIOBase
"""What is sent: all of it, or a file that is read from its beginning whenever it is sent."""


class Response:
    """The answer to one request: its head, and its body as it comes."""

    def __init__(self, wire: "_Wire", silence_s: float | None) -> None:
        self._wire = wire
        self._silence_s = silence_s
        self.status = wire.status
        self.headers = wire.headers

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Raises ConnectionError when it breaks off."""
        while True:
            async with asyncio.timeout(self._silence_s):
                piece = await self._wire.piece()
            if not piece:
                return
            yield piece


class Transport:
    """Requests to one server, each over a connection of its own; one that is free is used again."""

    def __init__(self) -> None:
        self._free: dict[tuple[str, str], list[_Wire]] = {}

    async def close(self) -> None:
        for wires in self._free.values():
            for wire in wires:
                wire.drop()
        self._free.clear()
        # The loop lets go of a socket in its next round.
        await asyncio.sleep(0)

    @asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        params: Mapping[str, str] | None = None,
        body: Body | None = None,
        *,
        silence_s: float | None = None,
    ) -> AsyncIterator[Response]:
        """Until the head of the answer is there. Raises OSError; TimeoutError after so long a silence, here or in the body.

        Without `silence_s` the caller bounds the whole.
        """
        address = _address(url, params)
        for _ in range(REDIRECTS):
            async with asyncio.timeout(silence_s):
                wire = await self._exchange(method, address, headers, body)
            try:
                place = wire.headers.get("location")
                if place is None or wire.status not in (301, 302, 303, 307, 308):
                    yield Response(wire, silence_s)
                    return
            finally:
                self._leave(address, wire)
            method, headers, body = _redirect(wire.status, method, headers, body)
            before, address = address, urlsplit(urljoin(address.geturl(), place))
            if not _is_same_host(before, address):
                headers = {name: value for name, value in headers.items() if name != "Authorization"}
        raise ConnectionError("it sends from one address to the next, without an end")

    async def _exchange(
        self, method: str, address: SplitResult, headers: Mapping[str, str], body: Body | None
    ) -> "_Wire":
        head = _head(method, address, headers, body)
        while wire := self._take_idle(address):
            try:
                return await self._send_request(wire, head, body)
            except ConnectionError:
                # The server closed it while we wrote. Whether it read what it was sent nobody knows.
                if wire.status or method not in REPEATABLE:
                    raise
        return await self._send_request(await _connect(address), head, body)

    async def _send_request(self, wire: "_Wire", head: bytes, body: Body | None) -> "_Wire":
        try:
            await wire.ask(head, body)
        except BaseException:
            wire.drop()
            raise
        return wire

    def _take_idle(self, address: SplitResult) -> "_Wire | None":
        wires = self._free.get((address.scheme, address.netloc), [])
        while wires:
            wire = wires.pop()
            if wire.may_be_used(asyncio.get_running_loop().time() - IDLE_S):
                return wire
            wire.drop()
        return None

    def _leave(self, address: SplitResult, wire: "_Wire") -> None:
        if wire.rest():
            self._free.setdefault((address.scheme, address.netloc), []).append(wire)
        else:
            wire.drop()


class _Wire(asyncio.Protocol):
    """One connection. asyncio and httptools call it; between `ask` and `rest` one exchange goes over it."""

    status = 0
    headers: dict[str, str]

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self._is_full = False
        """What was written waits for the network."""
        self._lost: Exception | None = None
        # Nothing was asked yet, and nothing may be said.
        self._rests_since: float | None = 0.0

    # -- for the transport above

    async def ask(self, head: bytes, body: Body | None) -> None:
        """Until the head of the answer is there. The body is not waited for: a refusal may come before all of it is sent."""
        self._parser = httptools.HttpResponseParser(self)
        self.status, self.headers = 0, {}
        self._pieces = deque[bytes]()
        self._held_bytes = 0
        self._unpack: zlib._Decompress | None = None
        self._has_head = self._is_whole = self._is_measured = self._is_paused = self._stays = False
        self._rests_since = None
        if body is None or isinstance(body, bytes):
            self._socket.write(head + (body or b""))
        else:
            self._socket.write(head)
            await self._send(body)
        while not self._has_head:
            await self._more()

    async def _send(self, body: BufferedIOBase) -> None:
        """As fast as it is taken; the rest stays in its file when the answer comes before the end."""
        body.seek(0)
        while piece := body.read(PIECE_BYTES):
            if self._has_head:
                self._stays = False
                return
            self._socket.write(piece)
            while self._is_full and not self._has_head:
                await self._more()

    async def piece(self) -> bytes:
        """What came since the last one; nothing at the end."""
        while not self._pieces:
            if self._is_whole:
                return b""
            await self._more()
        piece = b"".join(self._pieces)
        self._pieces.clear()
        self._held_bytes = 0
        if self._is_paused:
            self._is_paused = False
            self._socket.resume_reading()
        return piece

    def rest(self) -> bool:
        """Whether the connection can be used again."""
        self._rests_since = asyncio.get_running_loop().time()
        return self._lost is None and self._is_whole and self._stays

    def may_be_used(self, since: float) -> bool:
        return self._lost is None and self._rests_since is not None and self._rests_since > since

    def drop(self) -> None:
        self._lost = self._lost or ConnectionAbortedError("given up")
        self._socket.abort()

    async def _more(self) -> None:
        if self._lost is not None:
            raise self._lost
        self._news.clear()
        await self._news.wait()

    # -- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._socket = transport

    def data_received(self, data: bytes) -> None:
        if self._rests_since is not None:
            # Words that nobody asked for answer nothing that will be asked.
            self.drop()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, zlib.error) as problem:
            self._lost = ConnectionError(f"what it says is no HTTP: {problem}")
            self._socket.abort()
        self._news.set()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._news.set()

    def connection_lost(self, failure: Exception | None) -> None:
        if self._rests_since is None and self._has_head and not self._is_measured and failure is None:
            # Of an answer without a length the end of the connection is the end.
            self._is_whole = True
        self._lost = (
            self._lost or failure or ConnectionResetError("the connection was closed before the answer was whole")
        )
        self._news.set()

    # -- called by httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._has_head = self.status >= 200
        # Asked now: with the end of the answer the parser forgets it.
        self._stays = self._parser.should_keep_alive()
        self._is_measured = "content-length" in self.headers or "transfer-encoding" in self.headers
        if self.headers.get("content-encoding") == "gzip":
            self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)

    def on_body(self, body: bytes) -> None:
        piece = body if self._unpack is None else self._unpack.decompress(body)
        if not piece:
            return
        self._pieces.append(piece)
        self._held_bytes += len(piece)
        if self._held_bytes > HELD_BYTES and not self._is_paused:
            self._is_paused = True
            self._socket.pause_reading()

    def on_message_complete(self) -> None:
        if self._has_head:
            self._is_whole = True
        else:
            # Only a word on the way (103 Early Hints); the answer follows.
            self.status, self.headers = 0, {}


async def _connect(address: SplitResult) -> _Wire:
    is_https = address.scheme == "https"
    host, port = address.hostname or "", address.port or (443 if is_https else 80)
    # A number is one address. To race it would gain nothing, and a race that is cancelled at its end leaves the socket open.
    is_number = ":" in host or host.replace(".", "").isdigit()
    async with asyncio.timeout(CONNECT_S):
        _, wire = await asyncio.get_running_loop().create_connection(
            _Wire,
            host,
            port,
            ssl=_certificates() if is_https else None,
            happy_eyeballs_delay=None if is_number else NEXT_ADDRESS_S,
        )
    return wire


@lru_cache(1)
def _certificates() -> "ssl.SSLContext":
    """Those that the system trusts. Reading them takes a moment."""
    import ssl

    return ssl.create_default_context()


def _address(url: str, params: Mapping[str, str] | None) -> SplitResult:
    refusal = ConnectionError("an address begins with http:// or https:// and a name")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise refusal from None
    if not usable:
        raise refusal
    return parts._replace(query=urlencode(params or {}))


def _head(method: str, address: SplitResult, headers: Mapping[str, str], body: Body | None) -> bytes:
    target = quote(address.path or "/", safe=IN_A_PATH) + (f"?{address.query}" if address.query else "")
    host = address.netloc.rpartition("@")[2]
    fields = {
        "Host": host if host.isascii() else host.encode("idna").decode(),
        "User-Agent": f"palaver/{__version__}",
        "Accept": "*/*",
        "Accept-Encoding": "gzip",
        **headers,
    }
    if body is not None or method != "GET":
        fields["Content-Length"] = str(size_of(body))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    if any(character in line for line in lines for character in "\r\n\0"):
        raise ConnectionError("a token or a name with a line break cannot be sent")
    return "\r\n".join((*lines, "", "")).encode()


def size_of(body: Body | None) -> int:
    return body.seek(0, os.SEEK_END) if isinstance(body, BufferedIOBase) else len(body or b"")


def _redirect(
    status: int, method: str, headers: Mapping[str, str], body: Body | None
) -> tuple[str, Mapping[str, str], Body | None]:
    """What is asked at the new address, as browsers do it."""
    if status == 303 or (status in (301, 302) and method == "POST"):
        return "GET", {name: value for name, value in headers.items() if name != "Content-Type"}, None
    return method, headers, body


def _is_same_host(one: SplitResult, other: SplitResult) -> bool:
    """Whom a token may be told: the same server, or the same name where it now speaks https."""
    if one.hostname != other.hostname:
        return False
    return (one.scheme, one.port) == (other.scheme, other.port) or (one.scheme, other.scheme) == ("http", "https")
