"""The wire of the client: requests with a bound on every wait, and a server's refusals as the errors they are.

Beneath every part of `Client`, which all share one transport and one token. It knows paths and bytes, and nothing of what
they mean.
"""

import asyncio
import errno
import os
import re
from collections.abc import Mapping
from io import BufferedIOBase
from typing import TypeVar
from uuid import uuid4

import msgspec

from palaver.client.transport import Body, Transport, size_of
from palaver.errors import REFUSALS, LogUnavailable, PalaverError, StorageFull
from palaver.schema.errors import WireError

SILENCE_S = 40.0
"""Two heartbeats and a bit: a stream silent for longer is dead, whatever TCP thinks."""
ANSWER_S = 30.0
BYTES_A_S = 1 << 20
"""A slow way to a slow disk: so much longer may the answer to a large body take."""
TRIES = 6
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0

T = TypeVar("T")


class Unreachable(PalaverError):
    code = "unavailable"
    retryable = True


class Connection:
    def __init__(self, base_url: str, token: str, http: Transport, name: str | None = None) -> None:
        self._base_url = base_url.rstrip("/")
        self.name = name or str(uuid4())
        """In the origin of every event that is caused through here: by it one's own are known again."""
        self._headers = {"Authorization": f"Bearer {token}", "Palaver-Client": self.name}
        self._http = http

    async def _get(self, path: str, kind: type[T], query: Mapping[str, object] | None = None) -> T:
        params = {key: str(value) for key, value in (query or {}).items() if value is not None}
        return await self._request("GET", path, kind, params=params)

    async def _send(
        self,
        method: str,
        path: str,
        body: object,
        kind: type[T],
        params: Mapping[str, str] | None = None,
    ) -> T:
        """For what may be repeated: sent again until it is answered, or has been tried often enough."""
        pause_s = FIRST_PAUSE_S
        data = body if isinstance(body, bytes | BufferedIOBase) else msgspec.json.encode(body)
        # What takes long to send takes long to read.
        limit_s = ANSWER_S + size_of(data) / BYTES_A_S
        for attempt in range(1, TRIES + 1):
            try:
                return await self._request(method, path, kind, params, data, limit_s)
            except (Unreachable, LogUnavailable):
                if attempt == TRIES:
                    raise
                await asyncio.sleep(pause_s)
                pause_s = min(LONGEST_PAUSE_S, pause_s * 2)
        raise AssertionError("unreachable")

    async def _request(
        self,
        method: str,
        path: str,
        kind: type[T],
        params: Mapping[str, str] | None = None,
        data: Body | None = None,
        limit_s: float = ANSWER_S,
    ) -> T:
        return msgspec.json.decode(await self._body(method, path, params, data, limit_s), type=kind)

    async def _body(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        data: Body | None = None,
        limit_s: float = ANSWER_S,
    ) -> bytes:
        headers = {"Content-Type": "application/json"} if data is not None else {}
        return await self._exchange(method, path, headers, params, data, limit_s)

    async def _exchange(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        params: Mapping[str, str] | None,
        data: Body | None,
        limit_s: float,
    ) -> bytes:
        asked = self._http.request(method, self._base_url + path, {**self._headers, **headers}, params, data)
        try:
            async with asyncio.timeout(limit_s), asked as response:
                body = await response.read()
        except OSError as failure:
            raise self._unreachable(failure) from failure
        if response.status >= 400:
            raise error_of(response.status, body)
        return body

    def _unreachable(self, failure: OSError) -> Unreachable:
        return Unreachable(
            f"No answer from {self._base_url} ({_reason(failure)}). "
            "Is the server running? Start it with `palaver serve`."
        )


def _reason(failure: OSError) -> str:
    """In the words of the system, where it has any: the libraries' own speak of their insides."""
    if isinstance(failure, TimeoutError):
        return os.strerror(errno.ETIMEDOUT)
    # OpenSSL has numbers and words of its own.
    if words := getattr(failure, "verify_message", None) or getattr(failure, "reason", None):
        return str(words)
    # Where several addresses were tried asyncio puts all failures into one text; they are mostly the same.
    number = failure.errno or next((int(found[1]) for found in re.finditer(r"\[Errno (\d+)\]", str(failure))), 0)
    return os.strerror(number) if number > 0 else failure.strerror or str(failure) or type(failure).__name__


def error_of(status: int, body: bytes) -> PalaverError:
    try:
        wire = msgspec.json.decode(body, type=WireError)
    except msgspec.MsgspecError:
        wire = WireError(code="internal", message=f"The server answered {status} without saying why.")
    kind: type[PalaverError] = REFUSALS.get(wire.code, PalaverError)
    if status == 503:
        kind = LogUnavailable
    elif status == 507:
        kind = StorageFull
    return kind(wire.message, **wire.details)
