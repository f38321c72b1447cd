"""What a model is shown, before any provider's words: the messages of a request in one neutral form.

Made by `linearize` from the view, turned into a wire format by each provider's adapter. Roles alternate, the first and the
last message are the user's, no text is blank, and every `Call` has exactly one `Outcome` in the message that follows it.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec import Struct

T = TypeVar("T")

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


class Written:
    """The messages of a conversation in the wire format they were last sent in.

    Only a matter of speed: a history grows at its end, and a message that did not change is the same object. Whoever is
    given what was made of it must not change that.
    """

    def __init__(self) -> None:
        self._write: Callable[[Any], Any] | None = None
        self._messages: Sequence[PromptMessage] = ()
        self._made: Sequence[Any] = ()

    def each(self, messages: Sequence[PromptMessage], write: Callable[[PromptMessage], T]) -> list[T]:
        # Another format, of a model that took over, has another way of writing.
        same = _same(self._messages, messages) if self._write is write else 0
        made = [*self._made[:same], *map(write, messages[same:])]
        # Pictures are not worth their memory.
        kept = next((at for at in range(same, len(messages)) if _has_picture(messages[at])), len(messages))
        self._write, self._messages, self._made = write, messages[:kept], made[:kept]
        return made


def _same(before: Sequence[PromptMessage], now: Sequence[PromptMessage]) -> int:
    """How many at the beginning are the same objects."""
    pairs = enumerate(zip(before, now, strict=False))
    return next((at for at, (one, other) in pairs if one is not other), min(len(before), len(now)))


def _has_picture(message: PromptMessage) -> bool:
    return any(isinstance(part, Image) for part in message.parts)
