"""The `Provider` seam: a model behind some wire format, as the loop sees it.

A provider streams one answer as neutral events and raises an AgentError that tells a person what to do. It retries nothing
and keeps nothing of a conversation. Its `identity` marks opaque data (signatures, encrypted thinking, call ids) as its
own, so that the data goes back to it and to nobody else.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from palaver.context.prompt import PromptMessage, Written
from palaver.schema.base import Usage
from palaver.tools.base import ToolSpec

FinishReason = Literal["stop", "tool_calls", "length", "refusal", "pause", "other"]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    model: str
    system: str
    messages: tuple[PromptMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    thinking_budget_tokens: int | None = None
    reasoning_effort: str | None = None
    written: Written = field(default_factory=Written, compare=False, repr=False)
    """What this conversation's messages came to the last time."""


# -- what a model says, piece by piece. `index` tells blocks of one answer apart; a new index ends text before it.


@dataclass(frozen=True, slots=True)
class Began:
    """The service took the request. Not yet a piece of the answer."""

    model: str | None = None


@dataclass(frozen=True, slots=True)
class TextPiece:
    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingPiece:
    """Pieces of one kind belong together by their index, else by their id, else by their signature."""

    index: int | None
    text: str
    signature: str | None = None
    """Comes once, at the end of its block; the latest wins."""
    data: str | None = None
    """What the provider wants back as it stands: all of a block that it keeps to itself, or what it keeps beside the text."""
    id: str | None = None
    """The provider's name for the block, where pieces of several come mixed."""
    kind: str = "thinking"


@dataclass(frozen=True, slots=True)
class ToolPiece:
    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    opaque: Any = None


@dataclass(frozen=True, slots=True)
class CitationPiece:
    """What the words of a block are taken from, in the provider's own shape."""

    index: int
    citation: Any


@dataclass(frozen=True, slots=True)
class ServerPiece:
    """A block of the provider's own, whole: a tool that it runs itself, or what that found."""

    block: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ExtraPiece:
    """Fields of the answer that only this provider knows. Shown to clients, never sent back."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class UsageSeen:
    """Counts so far; the latest holds."""

    usage: Usage
    written_tokens: int = 0
    """Of the input, those that went into the provider's prompt cache."""


@dataclass(frozen=True, slots=True)
class Stopped:
    reason: FinishReason
    word: str
    """The provider's own word for it."""


ModelEvent = (
    Began | TextPiece | ThinkingPiece | ToolPiece | CitationPiece | ServerPiece | ExtraPiece | UsageSeen | Stopped
)


class Provider(Protocol):
    @property
    def identity(self) -> str:
        """Wire format and host: whose opaque data may go back where."""
        ...

    async def default_model(self) -> str:
        """The model to use when nobody chose one."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """One answer. Closing or cancelling it closes the connection at once."""
        ...

    async def close(self) -> None: ...


def join_pieces(events: Sequence[ModelEvent]) -> Sequence[ModelEvent]:
    """Neighbouring pieces of one block become one: a burst that arrived together is one event, not fifty."""
    if len(events) < 2:
        return events
    found: list[ModelEvent] = [events[0]]
    for event in events[1:]:
        match found[-1], event:
            case TextPiece(at, before), TextPiece(index, more) if at == index:
                found[-1] = TextPiece(index, before + more)
            case ThinkingPiece(at, _, None, None, name, kind) as thought, ThinkingPiece(
                index, more, None, None, more_name, more_kind
            ) if (at, name, kind) == (index, more_name, more_kind):
                found[-1] = replace(thought, text=thought.text + more)
            case ToolPiece(at) as call, ToolPiece(index, None, None, more, None) if at == index:
                found[-1] = replace(call, arguments=call.arguments + more)
            case _:
                found.append(event)
    return found
