"""What went wrong with a service, as an AgentError that tells a person what to do.

Used by the endpoint and the adapters. `details` carry what retries and fallbacks look at: `status`, `reason`,
`retry_after_s` and `unreachable`. The key never appears in a message, not even when the service repeats it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec

from palaver.backends.api.retry import RETRIED_STATUSES, retry_after_s
from palaver.errors import (
    AgentError,
    NotLoggedIn,
    ProtocolBroken,
    ProviderRefused,
    ProviderUnavailable,
    StreamCut,
    TimedOut,
)

SAID_CHARS = 400
"""Of the service's own words: enough to act on, not a page of HTML."""

CONTEXT_WORDS = (
    "prompt is too long",
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "too many tokens",
)
CREDIT_WORDS = ("insufficient_quota", "credit balance", "payment required", "billing_hard_limit")
CONTENT_WORDS = (
    "content_policy",
    "content policy",
    "content_filter",
    "invalid_prompt",
    "moderation",
    "flagged",
    "usage policy",
)
"""A service that will not hear this. Nobody else is asked in its place."""
SECRET_CHARS = 6
"""Shorter ones are words, and taking them out of a sentence would only garble it."""

_FINAL_KINDS = (
    "invalid",
    "authentication",
    "permission",
    "not_found",
    "too_large",
    "billing",
    "insufficient",
    "context",
)
"""Errors within a stream that would come again. Every other one, known or not, may pass."""


@dataclass(frozen=True, slots=True)
class Service:
    """Who is spoken to, for messages."""

    address: str
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def words(self, text: str) -> str:
        """The service's words: without the key, on one line, of bearable length."""
        for secret in self.secrets:
            if len(secret) >= SECRET_CHARS:
                text = text.replace(secret, "[key]")
        clean = " ".join(text.split())
        return clean if len(clean) <= SAID_CHARS else clean[:SAID_CHARS] + "…"

    # -- instead of an answer

    def refused(self, status: int, body: bytes, headers: Mapping[str, str], model: str) -> AgentError:
        said, kind = _message_of(body)
        words = self.words(said)
        told = f" It said: {words}" if words else ""
        search = f"{kind} {said}".lower()
        details: dict[str, Any] = {"status": status, "kind": kind}
        if (asked_s := retry_after_s(headers)) is not None:
            details["retry_after_s"] = asked_s
        reason = _reason(search)
        if reason == "no_credit" or (reason == "content" and status < 500):
            details["reason"] = reason
        if reason == "no_credit":
            return ProviderRefused(
                f"The account at {self.address} has no credit left ({status}). Add credit, or choose another agent.{told}",
                **details,
            )
        if reason == "context_exceeded" and status in (400, 413, 422):
            details["reason"] = "context_exceeded"
            return ProviderRefused(
                f"The conversation no longer fits what {model} can read. Start a new one, or branch from an earlier "
                f"message.{told}",
                **details,
            )
        match status:
            case 401:
                return NotLoggedIn(
                    f"The provider refused the key ({self.address} answered 401). Check the API key of this agent.{told}",
                    **details,
                )
            case 403:
                return ProviderRefused(
                    f"{self.address} does not allow this with the given key (403). Check the account, or choose another "
                    f"model than {model}.{told}",
                    **details,
                )
            case 404:
                return ProviderRefused(
                    f"{self.address} does not know the model {model!r}, or the address is wrong (404). Choose another model, "
                    f"or correct the address.{told}",
                    **details,
                )
            case 413:
                return ProviderRefused(
                    f"The request is too large for {self.address} (413). Send smaller images or start a new "
                    f"conversation.{told}",
                    **details,
                )
            case 429:
                return ProviderUnavailable(f"{self.address} takes no more requests for now (429).{told}", **details)
            case _ if status in RETRIED_STATUSES:
                return ProviderUnavailable(
                    f"{self.address} is overloaded or broken ({status}). Try again later.{told}", **details
                )
            case _ if 300 <= status < 400:
                return ProviderRefused(
                    f"{self.address} points to another address ({headers.get('location', 'unknown')}). Use that one.",
                    **details,
                )
            case _:
                return ProviderRefused(f"{self.address} refused the request ({status}).{told}", **details)

    def unreachable(self, error: Exception) -> AgentError:
        match error:
            case aiohttp.InvalidURL():
                return ProviderRefused(
                    f"{self.address} is not an address. It should look like https://host or http://host:port.",
                    unreachable=True,
                )
            case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
                return ProviderRefused(
                    f"The certificate of {self.address} is not trusted. {self.words(str(error))}", unreachable=True
                )
            case aiohttp.ClientConnectorError():
                reason = error.os_error.strerror or str(error.os_error)
                return ProviderUnavailable(
                    f"Nothing answers at {self.address} ({reason}). Start the service there, or correct the address.",
                    unreachable=True,
                )
            case aiohttp.ConnectionTimeoutError():
                return ProviderUnavailable(
                    f"{self.address} could not be reached in time. Check the network.", unreachable=True
                )
            case TimeoutError():
                return self.silent()
            case ValueError():
                return ProviderRefused(
                    f"The key for {self.address} holds characters that cannot be sent. Enter it again."
                )
            case _:
                return ProviderUnavailable(f"{self.address} closed the connection before it answered.")

    def not_a_stream(self, content_type: str) -> AgentError:
        return ProtocolBroken(
            f"{self.address} answered with {content_type} instead of a stream of events. Is this the address of a model "
            "service?",
        )

    # -- in the middle of an answer

    def silent(self) -> AgentError:
        return TimedOut(f"{self.address} fell silent before its answer was whole. Try again, or choose another model.")

    def cut(self) -> AgentError:
        return StreamCut(f"The connection to {self.address} broke in the middle of an answer. Try again.")

    def malformed(self) -> AgentError:
        return StreamCut(f"{self.address} sent something that is not valid JSON in the middle of an answer. Try again.")

    def failed(self, kind: str, message: str) -> AgentError:
        """The stream itself said that it failed."""
        words = self.words(message) or kind
        details: dict[str, Any] = {"kind": kind}
        if reason := _reason(f"{kind} {message}".lower()):
            details["reason"] = reason
        if reason or any(word in kind for word in _FINAL_KINDS):
            return ProviderRefused(f"{self.address} refused to go on: {words}", **details)
        return ProviderUnavailable(f"{self.address} failed in the middle of an answer: {words}", **details)


def _reason(search: str) -> str | None:
    """Why, where the service's words tell: it decides whether somebody else is asked."""
    if any(word in search for word in CREDIT_WORDS):
        return "no_credit"
    if any(word in search for word in CONTENT_WORDS):
        return "content"
    return "context_exceeded" if any(word in search for word in CONTEXT_WORDS) else None


def _message_of(body: bytes) -> tuple[str, str]:
    """The message and the kind of an error body, whatever its shape."""
    try:
        answer = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.decode(errors="replace"), ""
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    if not isinstance(error, dict):
        return str(error), ""
    message = error.get("message") or error.get("detail") or ""
    kinds = [str(error[key]) for key in ("code", "type") if error.get(key)]
    return str(message), " ".join(kinds)
