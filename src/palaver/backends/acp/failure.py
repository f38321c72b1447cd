"""What an ACP agent's refusal means, in words for a person. Pure; called by the link."""

from collections.abc import Mapping
from typing import Any

import msgspec

from palaver.errors import AgentError, NotLoggedIn, ProviderRefused, ProviderUnavailable

AUTH_REQUIRED = -32000
"""The protocol's own number for "log in first"."""


def refusal_error(name: str, code: int, message: str, data: Any) -> AgentError:
    details = data.get("details") or data.get("message") if isinstance(data, Mapping) else None
    said = _readable(f"{message}: {details}" if isinstance(details, str) and details not in message else message)
    if code == AUTH_REQUIRED or code in (401, 403):
        return NotLoggedIn(f"{name} is not logged in: {said} Start it once in a terminal and log in.", code=code)
    if code == 429 or 500 <= code < 600:
        return ProviderUnavailable(f"{name}'s model service failed: {said}", code=code)
    return ProviderRefused(f"{name} could not answer: {said}", code=code)


def _readable(message: str) -> str:
    """Gemini puts its service's whole answer into the message."""
    try:
        told = msgspec.json.decode(message)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return message
    match told:
        case {"error": {"message": str(inner)}} | [{"error": {"message": str(inner)}}]:
            return inner
        case _:
            return message
