"""What the description of the API says beyond its routes: errors in our one shape, what needs no token, bodies as they come.

Litestar describes what a route declares. A route that reads its body itself, or answers in one of several formats, says so
with `operation`; everything else that any route may answer is added here, in one place, when the description is shown.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from litestar.openapi.spec import (
    OpenAPIFormat,
    OpenAPIMediaType,
    OpenAPIResponse,
    OpenAPIType,
    Operation,
    RequestBody,
    Schema,
)

from palaver.faces.http.errors import RETRY_AFTER_S
from palaver.faces.http.gate import OPEN
from palaver.schema.errors import ErrorCode

TEXT = Schema(type=OpenAPIType.STRING)
BYTES = Schema(type=OpenAPIType.STRING, format=OpenAPIFormat.BINARY)
OBJECT = Schema(type=OpenAPIType.OBJECT)

_ANYWHERE = {
    "403": "The token may not do this, or the request comes from another site.",
    "405": "Not with this method.",
    "429": "Too much at once; wait `Retry-After` seconds.",
    "500": "A bug; `details.incident` is its number in the server's log.",
    "503": "Not now; wait `Retry-After` seconds.",
    "507": "The disk is full.",
}
_WITH_A_TOKEN = {"401": "No token, or not ours."}
_WHERE_SOMETHING_IS_NAMED = {
    "400": "Something in the request is wrong; `message` names it.",
    "404": "No such thing.",
    "409": "It contradicts what is so.",
    "410": "It was deleted.",
}
_WITH_A_BODY = {"413": "Too large."}

_ERROR = {
    "type": "object",
    "title": "Error",
    "properties": {
        "code": {"type": "string", "enum": list(get_args(ErrorCode))},
        "message": {"type": "string"},
        "retryable": {"type": "boolean"},
        "details": {"type": "object", "additionalProperties": True},
    },
    "required": ["code", "message", "retryable", "details"],
}
_SHAPE = {"$ref": "#/components/schemas/Error"}
_WAIT = {
    "Retry-After": {"description": "Seconds", "schema": {"type": "string", "pattern": "^[0-9]+$"}, "required": True}
}


def operation(
    *, body: Mapping[str, Schema] | None = None, answer: Mapping[str, Schema] | None = None
) -> type[Operation]:
    """For a route's `operation_class`: what it reads, and what it answers when all is well, by media type."""

    @dataclass
    class Described(Operation):
        def __post_init__(self) -> None:
            if body:
                self.request_body = RequestBody(content=_content(body), required=True)
            if answer:
                for status, response in (self.responses or {}).items():
                    if status < "300" and isinstance(response, OpenAPIResponse):
                        response.content = _content(answer)

    return Described


def _content(kinds: Mapping[str, Schema]) -> dict[str, OpenAPIMediaType]:
    return {media_type: OpenAPIMediaType(schema=kind) for media_type, kind in kinds.items()}


def complete(schema: dict[str, Any]) -> dict[str, Any]:
    """With every status each operation may answer. Litestar describes its own errors; ours have another shape."""
    schema["components"]["schemas"]["Error"] = _ERROR
    for path, item in schema["paths"].items():
        for method, described in item.items():
            is_open = (method.upper(), path) in OPEN
            if is_open:
                described["security"] = []
            for status, meaning in _statuses(described, is_open):
                described["responses"][status] = _refusal(described["responses"].get(status), status, meaning)
            # Litestar gives an answer without a body a body of null.
            described["responses"].get("204", {}).pop("content", None)
    return schema


def _statuses(described: dict[str, Any], is_open: bool) -> Iterator[tuple[str, str]]:
    names_something = bool(described.get("parameters") or described.get("requestBody"))
    yield from _ANYWHERE.items()
    if not is_open or names_something:
        yield from _WITH_A_TOKEN.items()
    if names_something:
        yield from _WHERE_SOMETHING_IS_NAMED.items()
    if described.get("requestBody"):
        yield from _WITH_A_BODY.items()


def _refusal(own: dict[str, Any] | None, status: str, meaning: str) -> dict[str, Any]:
    """A route's own words for a status stay beside the shape that all have: the door refuses before the route is asked."""
    said = (own or {}).get("content", {}).get("application/json", {}).get("schema", {})
    kept = "$ref" in said and said != _SHAPE
    shape = {"anyOf": [said, _SHAPE]} if kept else said if "anyOf" in said else _SHAPE
    described: dict[str, Any] = {
        "description": (own or {}).get("description", meaning) if shape is not _SHAPE else meaning,
        "content": {"application/json": {"schema": shape}},
    }
    if int(status) in RETRY_AFTER_S and shape is _SHAPE:
        described["headers"] = _WAIT
    return described
