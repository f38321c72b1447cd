"""What was worked out for the conversations that were busy last: most of a history is the same at the next call.

Shared by all turns of a backend; only a matter of speed. One conversation has one turn at a time, so nobody else changes
what a turn is given here.
"""

from dataclasses import dataclass, field

from palaver.context.linearize import Arranged
from palaver.context.meter import Fixed
from palaver.context.prompt import Written
from palaver.context.reduce import Horizons
from palaver.context.tokens import Known, spec_tokens, text_tokens
from palaver.tools.base import ToolSpec

Told = tuple[str, str, tuple[ToolSpec, ...]]
"""The system prompt, the project's instructions in it, and the tools."""

CONVERSATIONS = 8
"""Each may keep a few megabytes of text alive."""


@dataclass(slots=True)
class Memory:
    shown_as: Horizons
    """Reduced otherwise, messages weigh otherwise."""
    weights: Known = field(default_factory=dict[tuple[str, int], int])
    arranged: Arranged = field(default_factory=Arranged)
    written: Written = field(default_factory=Written)
    told: Told = ("", "", ())
    fixed: Fixed = field(default_factory=Fixed)

    def weigh_fixed(self, told: Told) -> Fixed:
        """Of what stands before the conversation."""
        if told != self.told:
            system, instructions, tools = told
            own = text_tokens(instructions)
            self.told, self.fixed = told, Fixed(text_tokens(system) - own, spec_tokens(tools), own)
        return self.fixed


class Remembered:
    def __init__(self) -> None:
        self._conversations: dict[str, Memory] = {}

    def of(self, conversation: str, shown_as: Horizons) -> Memory:
        kept = self._conversations.pop(conversation, None)
        if kept is None or kept.shown_as != shown_as:
            kept = Memory(shown_as)
        self._conversations[conversation] = kept
        if len(self._conversations) > CONVERSATIONS:
            del self._conversations[next(iter(self._conversations))]
        return kept
