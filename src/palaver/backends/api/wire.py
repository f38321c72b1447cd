"""A model service over HTTP, in one of the wire formats: what all of them share.

Implements the `Provider` seam for Anthropic Messages, OpenAI Chat Completions and OpenAI Responses. A format says where
requests go, what they look like and how an answer is read; nothing here knows which it is.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from palaver.backends.api.endpoint import READ_TIMEOUT_S, Endpoint, Reader
from palaver.backends.api.failure import Service
from palaver.backends.api.provider import ModelEvent, ModelRequest


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    path: str
    default_url: str
    default_model: str
    """Taken when nobody chose one and the service has it; else the first that the service lists."""
    headers: Callable[[str, str], dict[str, str]]
    """What the format says of the caller, by the address and the key. Not every server has keys."""
    body: Callable[[ModelRequest, str], dict[str, Any]]
    """The request, for a service at this host."""
    reader: Callable[[Service], Reader]


class WireProvider:
    def __init__(
        self,
        format: Format,
        base_url: str | None,
        api_key: str | None,
        model: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        """`headers` are what somebody set up for this service."""
        address, key = base_url or format.default_url, api_key or ""
        own = format.headers(address, key)
        self._format = format
        self._endpoint = Endpoint(address, own, key=key, extra=headers, read_timeout_s=read_timeout_s)
        self._model = model

    @property
    def identity(self) -> str:
        return f"{self._format.name}@{self._endpoint.host}"

    async def default_model(self) -> str:
        if self._model is None:
            preferred, listed = self._format.default_model, await self._endpoint.models()
            if not listed:
                return preferred
            self._model = preferred if preferred in listed else listed[0]
        return self._model

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        body = self._format.body(request, self._endpoint.host)
        return self._endpoint.answer(
            self._format.path, body, request.model, self._format.reader(self._endpoint.service)
        )

    async def close(self) -> None:
        await self._endpoint.close()
