"""Every action with its key, and every conversation by its title: typed for, chosen, done. Opened by Ctrl+K."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets.option_list import Option

from palaver.client.client import Client
from palaver.schema.view import Listing, State
from palaver.tui.docks.keyline import Key
from palaver.tui.intents import Act, OpenConversation
from palaver.tui.screens.actions import Action, actions_for
from palaver.tui.screens.field import FieldSheet
from palaver.tui.screens.frame import fill, heading
from palaver.tui.screens.listing import title_of
from palaver.tui.text.screens import OPEN, Palette

CONVERSATIONS = 100
SHOWN_CONVERSATIONS = 8
WIDTH = 66
"""Of a row, so that keys stand in one column."""


def matching(query: str, text: str) -> bool:
    """Every word of the query is somewhere in the text."""
    held = text.lower()
    return all(word in held for word in query.lower().split())


class CommandPalette(FieldSheet):
    LABEL = Palette.LABEL
    PLACEHOLDER = Palette.PLACEHOLDER
    SHAPE = "is-box"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+k", "close", show=False)]

    def __init__(
        self,
        client: Client | None,
        state: State | None,
        names: Mapping[str, str] | None = None,
        *,
        may_write: bool = True,
    ) -> None:
        super().__init__()
        self._client = client
        self._actions: Sequence[Action] = actions_for(state, may_write=may_write)
        self._here = state.conversation if state else ""
        self._names = names or {}
        self._listings: list[Listing] = []

    def on_mount(self) -> None:
        self.look()
        if self._client is not None:
            self.read(partial(self._load, self._client))

    async def _load(self, client: Client) -> None:
        self._listings = [one for one in await client.conversations(CONVERSATIONS) if one.id != self._here]
        self.look()

    def look(self) -> None:
        query = self.typed
        actions = [one for one in self._actions if matching(query, f"{one.label} {one.word} {one.key}")]
        found = [one for one in self._listings if matching(query, title_of(one))][:SHOWN_CONVERSATIONS]
        options = [Option(_action_row(one), id=f"action:{one.name}") for one in actions]
        if found and (query or not options):
            options += [heading(Palette.CONVERSATIONS)]
            options += [Option(self._conversation_row(one), id=f"conversation:{one.id}") for one in found]
        self.listed.highlighted = None
        fill(self.listed, options)
        self.say("" if options else Palette.NONE)

    def _conversation_row(self, listing: Listing) -> Content:
        agent = self._names.get(listing.agent, listing.agent)
        return Content.assemble((title_of(listing)[: WIDTH - 20], ""), (f"  {agent}", "$ink-faint"))

    def keys(self) -> list[Key]:
        return [Key("Enter", OPEN, self.take_chosen)]

    def take(self, chosen: str) -> None:
        kind, _, name = chosen.partition(":")
        action = next((one for one in self._actions if one.name == name), None)
        if kind == "conversation":
            self.post_message(OpenConversation(name))
        elif action is not None:
            self.post_message(Act(action.name))
        else:
            return
        self.action_close()


def _action_row(action: Action) -> Content:
    key = action.key or f"/{action.word}"
    return Content.assemble(
        (action.label.ljust(WIDTH - 14), ""), (key.rjust(12), "$ink-soft" if action.key else "$ink-faint")
    )
