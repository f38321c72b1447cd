"""Who works for the conversation that is shown, at any depth, and what of theirs waits for a person.

Held by the conversation screen, which asks anew while somebody is at work. Reads through the client; changes nothing.
"""

from collections.abc import Iterable

from palaver.client.client import Client, WaitingRequest
from palaver.errors import PalaverError
from palaver.schema.view import Listing, State
from palaver.tui.subagents import Member, members_of

LISTED = 200
"""More than one conversation sets going; what is beyond is still in its own transcript."""


class Relatives:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._listings: tuple[Listing, ...] = ()
        self.below: tuple[WaitingRequest, ...] = ()
        """What they ask of a person."""

    def forget(self) -> None:
        """Another conversation is shown."""
        self._listings, self.below = (), ()

    def members(self, state: State) -> list[Member]:
        return members_of(state, self._listings, frozenset(asked.conversation for asked in self.below))

    def is_worth_asking(self, state: State) -> bool:
        return any(child.status == "running" for child in state.subagents) or bool(self.below)

    async def ask(self, state: State) -> tuple[tuple[Listing, ...], tuple[WaitingRequest, ...]] | None:
        """What the server says now, to be told with `heard`; None when it could not be reached."""
        root = state.parent.root if state.parent else state.conversation
        try:
            listings = await self._client.conversations(LISTED, root=root)
            asked = await self._client.requests()
        except PalaverError:
            return None  # The connection line says it.
        mine = {child.conversation for child in state.subagents}
        below = _below(state.conversation, listings) | mine
        return tuple(listings), tuple(one for one in asked if one.conversation in below)

    def heard(self, listings: tuple[Listing, ...], below: tuple[WaitingRequest, ...]) -> None:
        self._listings, self.below = listings, below


def _below(conversation: str, listings: Iterable[Listing]) -> set[str]:
    """All that began from a conversation, at any depth."""
    known = list(listings)
    found = {conversation}
    while True:
        more = {listing.id for listing in known if listing.parent in found} - found
        if not more:
            return found - {conversation}
        found |= more
