"""Why a turn of Codex failed, in our words. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from palaver.errors import AgentError, NotLoggedIn, ProviderRefused, ProviderUnavailable, StreamCut

_WAIT = frozenset(
    {"serverOverloaded", "internalServerError", "rateLimitExceeded", "flexUnavailable", "responseTooManyFailedAttempts"}
)
_CUT = frozenset({"responseStreamDisconnected", "responseStreamConnectionFailed", "httpConnectionFailed"})
_UNAUTHORIZED = 401


def failure_of(error: Mapping[str, Any]) -> AgentError:
    """From `turn.error`. A kind that is not known is a refusal, with the words it came with."""
    info = error.get("codexErrorInfo")
    kind, status = _kind(info)
    message = _words(str(error.get("message") or "Codex did not say why."))
    details = {"kind": kind} | ({"status": status} if status else {})
    if kind == "unauthorized" or status == _UNAUTHORIZED or "401 Unauthorized" in message:
        return NotLoggedIn(f"Codex is not logged in: {message} Run `codex login`, or check its key.", **details)
    if kind == "contextWindowExceeded":
        return ProviderRefused(f"The conversation no longer fits the model: {message}", **details)
    if kind == "usageLimitExceeded":
        return ProviderRefused(f"The limit of your plan is reached: {message}", **details)
    if kind in _WAIT:
        return ProviderUnavailable(f"The service did not answer: {message} Try again later.", **details)
    if kind in _CUT or message.startswith("stream disconnected"):
        return StreamCut(f"The answer broke off: {message} Try again.", **details)
    return ProviderRefused(f"The service refused: {message}", **details)


def _kind(info: object) -> tuple[str, int | None]:
    if isinstance(info, str):
        return info, None
    if isinstance(info, dict) and info:
        name, more = next(iter(info.items()))
        status = more.get("httpStatusCode") if isinstance(more, dict) else None
        return str(name), status if isinstance(status, int) else None
    return "other", None


def _words(message: str) -> str:
    """A service's answer comes as it was sent: the sentence in it is what a person wants."""
    try:
        sent = msgspec.json.decode(message)
    except msgspec.DecodeError:
        sent = None
    match sent:
        case {"error": {"message": str(words)}} | {"message": str(words)} | {"detail": str(words)}:
            message = words
        case _:
            pass
    return message if message.endswith((".", "!", "?")) else f"{message}."
