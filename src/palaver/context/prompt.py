"""What a model is shown, before any provider's words: the messages of a request in one neutral form.

Made by `linearize` from the view, turned into a wire format by each provider's adapter. Roles alternate, the first and the
last message are the user's, no text is blank, and every `Call` has exactly one `Outcome` in the message that follows it.
"""

from typing import Any

from msgspec import Struct

# Structs rather than dataclasses: a long history makes thousands of them for every model call.


class Text(Struct, frozen=True):
    text: str


class Image(Struct, frozen=True):
    mime: str
    base64: str


class Outcome(Struct, frozen=True):
    """The result of a call, as text."""

    call: str
    text: str
    failed: bool = False


class Thought(Struct, frozen=True):
    """Thinking that its own provider wants back untouched. `data` is what the provider keeps encrypted."""

    text: str
    signature: str | None = None
    data: str | None = None


class Call(Struct, frozen=True):
    """`id` is unique within a request. `opaque` is what the provider attached to the call and wants back."""

    id: str
    name: str
    arguments: dict[str, Any]
    opaque: Any = None


class UserMessage(Struct, frozen=True):
    """Outcomes come first."""

    parts: tuple[Outcome | Text | Image, ...]


class AssistantMessage(Struct, frozen=True):
    parts: tuple[Thought | Text | Call, ...]


PromptMessage = UserMessage | AssistantMessage
