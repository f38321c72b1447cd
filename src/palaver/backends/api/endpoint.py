"""One address of a model service: the HTTP side of every adapter.

Used by the adapters, one endpoint and one shared connection pool a provider. It opens a stream, reads it through a `Reader`
of the wire format, and closes the connection at once when the iteration is closed or cancelled. It retries nothing, reads
no environment, follows no redirect (a key must not travel), and never puts the key in a message.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any, Protocol

import aiohttp
import msgspec

from palaver.backends.api.failure import Service
from palaver.backends.api.provider import ModelEvent, join_pieces
from palaver.backends.api.sse import SseParser
from palaver.errors import AgentError

READ_TIMEOUT_S = 120.0
"""Between bytes. Services send a ping every 10 to 30 s; a model that is still being loaded sends nothing for a minute."""
CONNECT_TIMEOUT_S = 15.0
"""A handshake that takes longer will not get better."""
ANSWER_LIMIT_S = 7_200.0
"""The longest answer a model can give, at a slow pace. A stream of pings without an end is a fault."""
TAIL_S = 1.0
"""After the end was said, for the body to end too: then the connection can be used again."""
LIST_TIMEOUT_S = 10.0
ERROR_LIMIT_BYTES = 64 << 10
LIST_LIMIT_BYTES = 8 << 20
"""Of a service's list of models; the longest are near one."""
SLICE_BYTES = 16 << 10
"""Of a chunk, parsed at once: some milliseconds, whatever is in it."""

_VERSION = re.compile(r"/v\d+[a-z0-9]*(/|$)")
_KNOWN_PATHS = re.compile(r"/(chat/completions|responses|messages|models)/?$")
_NOT_FOR_CHAT = re.compile(r"embed|rerank|whisper|tts|moderation|dall-e|image", re.IGNORECASE)


class Reader(Protocol):
    """The decoder of one answer."""

    ended: bool
    """The format's own end was seen; nothing that matters follows."""
    stopped: bool
    """The answer is whole, whatever becomes of the rest of the stream."""

    def read(self, data: bytes) -> list[ModelEvent]: ...


class Endpoint:
    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        *,
        key: str,
        extra: Mapping[str, str] | None = None,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        """`extra` headers are the person's own: they win, and may be as secret as the key."""
        self._base = with_version(base_url)
        own = {**headers, "content-type": "application/json", "accept-encoding": "identity"}
        chosen = {name.lower(): value for name, value in (extra or {}).items()}
        self._headers = {**own, **chosen}
        self._read_timeout_s = read_timeout_s
        self._session: aiohttp.ClientSession | None = None
        self.service = Service(address=self._base, secrets=(key, *chosen.values()))

    @property
    def host(self) -> str:
        return self._base.split("://", 1)[-1].split("/", 1)[0]

    async def answer(self, path: str, body: Any, model: str, reader: Reader) -> AsyncGenerator[ModelEvent, None]:
        """One answer, piece by piece. Raises an AgentError; what arrived before it has been given."""
        response = await self._open(path, msgspec.json.encode(body), model)
        try:
            parser = SseParser()
            while not reader.ended and (chunk := await self._next(response)):
                for part in _slices(chunk):
                    events, failure = _read(parser, part, reader, self.service)
                    for event in join_pieces(events):
                        yield event
                    if failure is not None:
                        raise failure
                    if reader.ended:
                        break
                    # Others get their turn: a chunk may hold thousands of events that say nothing.
                    await asyncio.sleep(0)
            if not reader.stopped:
                raise self.service.cut()
            await _drain(response)
        except AgentError:
            # A whole answer is not taken back because its stream broke behind it.
            if not reader.stopped:
                raise
        finally:
            response.close()

    async def models(self) -> list[str]:
        """The models the service lists that can hold a conversation; empty when it lists none."""
        try:
            async with asyncio.timeout(LIST_TIMEOUT_S):
                async with self._open_session().get(
                    f"{self._base}/models", headers=self._headers, allow_redirects=False
                ) as response:
                    listed = msgspec.json.decode(await _read_body(response, LIST_LIMIT_BYTES))
        except (
            aiohttp.ClientError,
            OSError,
            TimeoutError,
            ValueError,
            RecursionError,
        ):  # a DecodeError is a ValueError
            return []
        data = listed.get("data") if isinstance(listed, dict) else None
        names = [entry.get("id") for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
        return [name for name in names if isinstance(name, str) and not _NOT_FOR_CHAT.search(name)]

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # Not limited here: how many turns run at once is decided where they are started.
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(
                    total=ANSWER_LIMIT_S, sock_connect=CONNECT_TIMEOUT_S, sock_read=self._read_timeout_s
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def _open(self, path: str, body: bytes, model: str) -> aiohttp.ClientResponse:
        try:
            response = await self._open_session().post(
                f"{self._base}{path}", data=body, headers=self._headers, allow_redirects=False
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self.service.unreachable(error) from error
        try:
            if response.status != 200:
                raise self.service.refused(response.status, await _error_body(response), response.headers, model)
            if response.content_type not in ("text/event-stream", "application/octet-stream"):
                raise self.service.not_a_stream(response.content_type)
        except BaseException:
            response.close()
            raise
        return response

    async def _next(self, response: aiohttp.ClientResponse) -> bytes:
        try:
            return await response.content.readany()
        except TimeoutError as error:
            raise self.service.silent() from error
        except (aiohttp.ClientError, OSError) as error:
            raise self.service.cut() from error


def with_version(base_url: str) -> str:
    """The address that paths are added to, given with or without its version, or with the whole path."""
    base = _KNOWN_PATHS.sub("", base_url.strip().rstrip("/")).rstrip("/")
    path = "/" + base.split("://", 1)[-1].partition("/")[2]
    return base if _VERSION.search(path) else f"{base}/v1"


def _slices(chunk: bytes) -> Iterator[bytes]:
    return (chunk[at : at + SLICE_BYTES] for at in range(0, len(chunk), SLICE_BYTES))


def _read(
    parser: SseParser, chunk: bytes, reader: Reader, service: Service
) -> tuple[list[ModelEvent], AgentError | None]:
    """What a chunk holds. A failure comes with what stood before it, which was said all the same."""
    events: list[ModelEvent] = []
    try:
        for data in parser.feed(chunk):
            events.extend(reader.read(data))
    except (msgspec.DecodeError, RecursionError):
        return events, service.malformed()
    except AgentError as failure:
        return events, failure
    return events, None


async def _read_body(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
    """Raises ValueError for a body that is longer."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit_bytes:
            raise ValueError(f"A body of more than {limit_bytes:,} bytes.")
    return bytes(body)


async def _error_body(response: aiohttp.ClientResponse) -> bytes:
    try:
        return await response.content.read(ERROR_LIMIT_BYTES)
    except (aiohttp.ClientError, OSError):
        return b""


async def _drain(response: aiohttp.ClientResponse) -> None:
    try:
        async with asyncio.timeout(TAIL_S):
            while await response.content.readany():
                pass
    except (aiohttp.ClientError, OSError):
        pass
