"""The one shape of an error on the wire, and the codes it may carry."""

from typing import Any, Literal

from palaver.schema.base import Wire

ErrorCode = Literal[
    "invalid",
    "unauthorized",
    "forbidden",
    "not_found",
    "conflict",
    "gone",
    "too_large",
    "busy",
    "unavailable",
    "storage_full",
    "internal",
    # An agent's failures. They end a turn as an event; no request is ever answered with one.
    "not_installed",
    "not_logged_in",
    "protocol_broken",
    "timed_out",
    "exited",
    "provider_refused",
    "provider_unavailable",
    "stream_cut",
    "limit_reached",
]


class WireError(Wire):
    """`message` says what to do; `details` holds what a program may want."""

    code: str
    message: str
    retryable: bool = False
    details: dict[str, Any] = {}
