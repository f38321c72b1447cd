"""What deciding may come to: events, a refusal, or nothing because it is so already; and what fits into a message.

Used by decide and history, and by the owner, who turns each into an answer.
"""

from dataclasses import dataclass, field
from typing import Any

from palaver.schema.content import Content, ImagePart, TextPart
from palaver.schema.errors import ErrorCode
from palaver.schema.events import KnownEvent

MESSAGE_BYTES = 1 << 20
"""Of text. Longer reading belongs in a file, which an agent can read in parts."""
ATTACHMENTS = 10
"""Images a message may carry: what every provider takes in one request."""


@dataclass(frozen=True, slots=True)
class Refusal:
    code: ErrorCode
    message: str
    details: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Already:
    """Nothing to do: what the command asks for is so. Answered like success, and says why."""

    note: str
    id: str | None = None


Decision = list[KnownEvent] | Refusal | Already


def unfit(content: Content) -> Refusal | None:
    """Why this cannot be a message, if it cannot."""
    size = content_bytes(content)
    if size > MESSAGE_BYTES:
        return Refusal(
            "too_large",
            f"A message may hold 1 MiB; this one holds {size:,} bytes. Attach it as a file instead.",
            {"limit_bytes": MESSAGE_BYTES, "size_bytes": size},
        )
    if sum(isinstance(part, ImagePart) for part in content) > ATTACHMENTS:
        return Refusal("too_large", f"A message may carry {ATTACHMENTS} attachments.", {"limit": ATTACHMENTS})
    if all(isinstance(part, TextPart) and not part.text.strip() for part in content):
        return Refusal("invalid", "A message needs text or an image.")
    return None


def content_bytes(content: Content) -> int:
    return sum(len(part.text.encode()) if isinstance(part, TextPart) else len(part.image_url.url) for part in content)
