"""What a model is shown, before any provider's words: the messages of a request in one neutral form.

Made by `linearize` from the view, turned into a wire format by each provider's adapter. Roles alternate, the first and the
last message are the user's, no text is blank, and every `Call` has exactly one `Outcome` in the message that follows it.
"""

from typing import Any

from msgspec import Struct

# Structs rather than dataclasses, and none for the garbage collector to look at: a long history makes thousands of them for
# every model call. They hold nothing that could lead back to them.


class Text(Struct, frozen=True, gc=False):
    text: str


class Image(Struct, frozen=True, gc=False):
    mime: str
    base64: str


class Outcome(Struct, frozen=True, gc=False):
    """The result of a call, as text."""

    call: str
    text: str
    failed: bool = False


class Thought(Struct, frozen=True, gc=False):
    """Thinking that its own provider wants back untouched. `data` is what the provider keeps encrypted."""

    text: str
    signature: str | None = None
    data: str | None = None


class Call(Struct, frozen=True, gc=False):
    """`id` is unique within a request. `opaque` is what the provider attached to the call and wants back."""

    id: str
    name: str
    arguments: dict[str, Any]
    opaque: Any = None


class UserMessage(Struct, frozen=True, gc=False):
    """Outcomes come first."""

    parts: tuple[Outcome | Text | Image, ...]


class AssistantMessage(Struct, frozen=True, gc=False):
    parts: tuple[Thought | Text | Call, ...]


PromptMessage = UserMessage | AssistantMessage
