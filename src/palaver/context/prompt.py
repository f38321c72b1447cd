"""What a model is shown, before any provider's words: the messages of a request in one neutral form.

Made by `linearize` from the view, turned into a wire format by each provider's adapter. Roles alternate, the first and the
last message are the user's, no text is blank, and every `Call` has exactly one `Outcome` in the message that follows it.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Image:
    mime: str
    base64: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call, as text."""

    call: str
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Thought:
    """Thinking that its own provider wants back untouched. `data` is what the provider keeps encrypted."""

    text: str
    signature: str | None = None
    data: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """`id` is unique within a request. `opaque` is what the provider attached to the call and wants back."""

    id: str
    name: str
    arguments: dict[str, Any]
    opaque: Any = None


@dataclass(frozen=True, slots=True)
class UserMessage:
    """Outcomes come first."""

    parts: tuple[Outcome | Text | Image, ...]


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    parts: tuple[Thought | Text | Call, ...]


PromptMessage = UserMessage | AssistantMessage
