"""Who is asking which inbox: what a request carries from the door to the MCP server behind it."""

from dataclasses import dataclass

from palaver.people.authentication import Principal

VISIT = "palaver.inbox"
"""Under which key a request's scope holds its visit."""


@dataclass(frozen=True, slots=True)
class Visit:
    conversation: str
    caller: Principal
    client: str | None
    begun: bool = True
    """False: the default inbox, to which nobody has posted yet."""
