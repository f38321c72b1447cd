"""Every error a client can meet, in the one shape `{code, message, retryable, details}`.

Called by the gate for what never reaches a route, and by the web framework for what a route raised. Must never show a
traceback or a secret: an unforeseen failure is logged under an incident number, and the client is told that number.
"""

import re
import secrets
from typing import Any

import msgspec
from litestar import MediaType, Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.types import Receive, Scope, Send

from palaver.errors import REFUSALS, CallerError, Invalid, NotFound, PalaverError, TooLarge
from palaver.journal import Journal

logger = Journal(__name__)

RETRY_AFTER_S = {429: 5, 503: 1, 507: 30}
"""A queue moves in seconds, a restart takes about one, and a full disk needs somebody to look at it."""

_DISCONNECTED = "client disconnected prematurely"
"""What Litestar 2.25 says in the exception for a body that was cut off."""


class MethodNotAllowed(CallerError):
    status = 405


class Unforeseen(PalaverError):
    """A bug met at the border. `details` carries the incident number that the log has too."""


def body_of(error: PalaverError) -> bytes:
    """All four fields, always."""
    return msgspec.json.encode(
        {"code": error.code, "message": error.message, "retryable": error.retryable, "details": error.details},
        enc_hook=str,
    )


def headers_of(error: PalaverError) -> dict[str, str]:
    wait_s = RETRY_AFTER_S.get(error.status)
    return {} if wait_s is None else {"Retry-After": str(wait_s)}


async def refuse(scope: Scope, receive: Receive, send: Send, error: PalaverError, body: bytes | None = None) -> None:
    """Answer in place of the application: an HTTP response, also to a WebSocket that was not accepted yet.

    `body` is the error in the words of another protocol.
    """
    body = body_of(error) if body is None else body
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers_of(error)}
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    # Only an HTTP request has a method.
    prefix = "" if scope.get("method") else "websocket."
    if prefix and "websocket.http.response" not in (scope.get("extensions") or {}):
        await receive()
        await send({"type": "websocket.close", "code": 4000 + error.status, "reason": error.message[:100]})
        return
    start: Any = {"type": f"{prefix}http.response.start", "status": error.status, "headers": raw}
    end: Any = {"type": f"{prefix}http.response.body", "body": body, "more_body": False}
    await send(start)
    await send(end)


# -- what a route raised


def answer(request: Request[Any, Any, Any], failure: Exception) -> Response[bytes]:
    error = as_error(failure, f"{request.method} {request.url.path}")
    headers = headers_of(error)
    if isinstance(failure, HTTPException) and failure.headers:
        headers.update(failure.headers)
    return Response(body_of(error), status_code=error.status, headers=headers, media_type=MediaType.JSON)


def as_error(failure: Exception, where: str) -> PalaverError:
    match failure:
        case PalaverError():
            return failure
        case ValidationException():
            return Invalid(_validation_message(failure))
        case HTTPException(status_code=404):
            return NotFound(f"There is nothing at {where}.")
        case HTTPException(status_code=405):
            return MethodNotAllowed(f"{where} is not possible; the `Allow` header says what is.")
        case HTTPException(status_code=413):
            return TooLarge("The body is too large for this address.")
        case HTTPException(status_code=status) if status < 500 or failure.detail == _DISCONNECTED:
            return _CLIENT_ERRORS.get(status, Invalid)(failure.detail)
        case _:
            return unforeseen(failure, where)


_CLIENT_ERRORS: dict[int, type[CallerError]] = {kind.status: kind for kind in REFUSALS.values()}


def unforeseen(failure: Exception, where: str) -> Unforeseen:
    incident = secrets.token_hex(4)
    logger.error("unforeseen failure", incident=incident, where=where, exc_info=failure)
    return Unforeseen(
        f"Something went wrong inside the server. Its log has the details under incident {incident}.", incident=incident
    )


def _validation_message(failure: ValidationException) -> str:
    extra: Any = failure.extra or []
    problems = [f"`{problem.get('key', '?')}`: {_in_words(str(problem.get('message', '')))}" for problem in extra]
    return "; ".join(problems) or failure.detail


def _in_words(message: str) -> str:
    # Litestar names a missing parameter by its name alone.
    return "is required." if re.fullmatch(r"'\w+'", message) else f"{message}."
