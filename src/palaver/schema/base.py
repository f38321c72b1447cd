"""What every wire type is made of: two struct kinds, ids, references to blobs, and who did it."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

ID_PATTERN = "^[A-Za-z0-9_-]{1,128}$"

Id = Annotated[str, Meta(pattern=ID_PATTERN)]
"""One id space for everything. Ids made here are UUIDv7 text; a client may choose its own within the pattern."""


Delivery = Literal["turn", "boundary"]
"""`turn`: a turn of its own once the running one ends. `boundary`: into the running turn, before its next model call."""

Verdict = Literal["allow", "deny"]
Then = Literal["continue", "stop"]
Scope = Literal["once", "conversation", "agent", "project"]
Decision = Literal["allow", "ask", "deny_continue", "deny_abort"]
"""What a rule says of a call. `deny_continue` gives the model a refusal to go on with, `deny_abort` ends the turn."""
Strength = Literal["absent", "low", "medium", "high"]
"""How far a history had to be compressed to fit."""


class Wire(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a command or an event: absent optionals are left out of the JSON."""


class Shown(Struct, frozen=True, kw_only=True):
    """A part of the folded view: every field is always there, so that a client never asks "missing or empty?"."""


class BlobRef(Wire):
    """A payload too large for its event, kept once under the SHA-256 of its bytes."""

    id: str
    size: int
    mime: str = "application/octet-stream"


IMPORT_FACE = "import"
"""The face of words that were read from a file: what it calls a user's was not said here."""


class Origin(Wire):
    """Who caused an event and through which face; a face that must not echo a client filters on it."""

    face: str = "native"
    client: str | None = None
    user: str | None = None
    agent: str | None = None
    conversation: str | None = None
    """Where an agent spoke from: another conversation of this server."""
    agent_token: bool = False
    """It came with a token that may not decide, as agents hold: what it says is no person's word."""
    human_token: bool = False
    """It came with a token that may decide, but not change agents or rules: what it allows holds in one conversation."""

    @property
    def is_foreign(self) -> bool:
        """Whether the words are not those of a person who speaks here."""
        return self.agent is not None or self.agent_token or self.face == IMPORT_FACE


class Usage(Wire):
    """Tokens a provider counted. Cached tokens are part of `input_tokens`."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )
