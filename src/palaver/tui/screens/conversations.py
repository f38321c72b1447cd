"""The list of conversations, at the left edge: groups, filter, and what can be done with one. Opened by Ctrl+L.

Reads through the client, again every two seconds while it is open; opening, renaming, archiving, deleting and branching go
to the app.
"""

from collections.abc import Mapping, Set
from functools import partial
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from palaver.client.client import Client
from palaver.clock import Clock
from palaver.schema.commands import Branch, CreateConversation, DeleteConversation, UpdateConversation
from palaver.schema.view import Listing
from palaver.tui.docks.keyline import Key
from palaver.tui.intents import Act, Begin, OpenConversation, Order
from palaver.tui.screens.frame import Sheet, fill, heading, selected_id
from palaver.tui.screens.listing import group_listings, row_of, title_of
from palaver.tui.text.safe import prose
from palaver.tui.text.screens import OPEN, Listed

AGAIN_S = 2.0
"""How old a list may be that somebody looks at."""
LIMIT = 200
TYPING_S = 0.3
"""A server is asked for words when the hands rest; titles are filtered at once."""


class ConversationList(Sheet):
    DEFAULT_CSS = """
    ConversationList .answer { margin: 0; }
    """
    LABEL = Listed.LABEL
    SHAPE = "is-left"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+l", "close", show=False),
        Binding("n", "new", show=False),
        Binding("r,f2", "rename", show=False),
        Binding("a", "archive", show=False),
        Binding("d,delete", "delete", show=False),
        Binding("b", "branch", show=False),
        Binding("full_stop", "archived", show=False),
        Binding("slash", "filter", show=False),
        Binding("y", "yes", show=False),
    ]
    WRITING = frozenset({"new", "rename", "archive", "delete", "branch"})

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        current: str = "",
        names: Mapping[str, str] | None = None,
        unread: Set[str] = frozenset(),
    ) -> None:
        super().__init__()
        self._client = client
        self._clock = clock
        self._current = current
        self._names = names or {}
        self._unread = unread
        self._known: dict[str, Listing] = {}
        self._found: frozenset[str] = frozenset()
        self._shows_archived = False
        self._deleting: Listing | None = None
        self._is_loaded = False

    def compose_body(self) -> ComposeResult:
        yield Input(placeholder=Listed.FILTER, id="filter")
        yield OptionList(id="rows")
        yield Input(placeholder=Listed.RENAME_LABEL, id="title", classes="answer", select_on_focus=False)

    def on_mount(self) -> None:
        self.query_one("#title").display = False
        self.query_one("#filter").display = False
        self._rows.focus()
        self.say(Listed.LOADING)
        self.load()
        self.set_interval(AGAIN_S, self.load)

    @property
    def _rows(self) -> OptionList:
        return self.query_one("#rows", OptionList)

    @property
    def _query(self) -> str:
        return self.query_one("#filter", Input).value.strip()

    @property
    def chosen(self) -> Listing | None:
        return self._known.get(selected_id(self._rows) or "")

    def load(self) -> None:
        self.read(self._load)

    async def _load(self) -> None:
        if self._shows_archived:
            items: list[Listing] = []
            async for listing in self._client.every_conversation():
                items.append(listing)
                if len(items) >= LIMIT * 5:
                    break
        else:
            items = await self._client.conversations(LIMIT)
        found = [known for known in self._known.values() if known.id in self._found]
        self._known = {listing.id: listing for listing in (*found, *items)}
        if not self._is_loaded:
            self._is_loaded = True
            self.say("")
        self.draw()

    def draw(self) -> None:
        now_ms, width = self._clock.now_ms(), max(20, self._rows.size.width - 3)
        options: list[Option] = []
        for group in group_listings(self._known.values(), self._query, self._found, now_ms):
            options.append(heading(Listed.GROUPS[group.name]))
            for item in group.items:
                is_current, is_unread = item.id == self._current, item.id in self._unread
                row = row_of(item, now_ms, width, self._names, is_current=is_current, is_unread=is_unread)
                options.append(Option(row, id=item.id))
        is_first = self._rows.option_count == 0
        fill(self._rows, options)
        if is_first and self._current in self._known and any(option.id == self._current for option in options):
            self._rows.highlighted = self._rows.get_option_index(self._current)
        if self._is_loaded and self._deleting is None and not self.query_one(".said").has_class("is-bad"):
            self.say("" if options else Listed.none(self._query) if self._query else Listed.EMPTY)
        self.retell()

    def on_resize(self) -> None:
        if self._is_loaded:
            self.call_after_refresh(self.draw)

    def keys(self) -> list[Key]:
        if self._deleting is not None:
            return [Key("Y", Listed.DELETE_YES, self.action_yes)]
        chosen = self.chosen
        archive = Listed.UNARCHIVE if chosen is not None and chosen.archived else Listed.ARCHIVE
        of_one = [
            Key("Enter", OPEN, self._open),
            Key("R", Listed.RENAME, self.action_rename, writes=True),
            Key("A", archive, self.action_archive, writes=True),
            Key("D", Listed.DELETE, self.action_delete, writes=True),
            Key("B", Listed.BRANCH, self.action_branch, writes=True),
        ]
        archived = Listed.HIDE_ARCHIVED if self._shows_archived else Listed.SHOW_ARCHIVED
        return [
            *(of_one if chosen is not None else []),
            Key("N", Listed.NEW, self.action_new, writes=True),
            Key("/", Listed.FIND, self.action_filter),
            Key(".", archived, self.action_archived),
        ]

    # -- choosing

    @on(OptionList.OptionSelected)
    def _on_select(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._open()

    @on(OptionList.OptionHighlighted)
    def _on_highlight(self) -> None:
        self.retell()

    def _open(self) -> None:
        if self.chosen is not None:
            self.post_message(OpenConversation(self.chosen.id))
            self.action_close()

    def action_new(self) -> None:
        self.post_message(Act("new"))
        self.action_close()

    # -- filtering

    def action_filter(self) -> None:
        self.query_one("#filter").display = True
        self.query_one("#filter").focus()

    @on(Input.Changed, "#filter")
    def _on_filter(self, event: Input.Changed) -> None:
        event.stop()
        self.draw()
        self.read(partial(self._find, event.value.strip()), group="find")

    async def _find(self, query: str) -> None:
        await self._clock.sleep(TYPING_S)
        items = await self._client.conversations(LIMIT, query) if query else []
        self._known |= {listing.id: listing for listing in items}
        self._found = frozenset(listing.id for listing in items)
        self.draw()

    @on(Input.Submitted, "#filter")
    def _take_first(self, event: Input.Submitted) -> None:
        event.stop()
        self._rows.focus()

    def on_key(self, event: events.Key) -> None:
        # From the filter straight into the rows, without a key for it.
        if event.key in ("down", "up") and self.query_one("#filter").has_focus:
            event.stop()
            self._rows.focus()

    def action_archived(self) -> None:
        self._shows_archived = not self._shows_archived
        self.load()

    # -- what can be done with one

    def action_rename(self) -> None:
        if self.chosen is not None:
            field = self.query_one("#title", Input)
            field.value = prose(self.chosen.title)
            field.cursor_position = len(field.value)
            field.display = True
            field.focus()

    @on(Input.Submitted, "#title")
    def _on_rename(self, event: Input.Submitted) -> None:
        event.stop()
        chosen, title = self.chosen, event.value.strip()
        if chosen is not None and title and title != chosen.title:
            self._order(chosen, UpdateConversation(title=title))
        self._close_field()

    def _close_field(self) -> None:
        self.query_one("#title").display = False
        self._rows.focus()

    def action_archive(self) -> None:
        if self.chosen is not None:
            self._order(self.chosen, UpdateConversation(archived=not self.chosen.archived))

    def action_delete(self) -> None:
        if self.chosen is not None:
            self._deleting = self.chosen
            self.say(Listed.delete_asked(title_of(self.chosen)), is_bad=True)
            self.retell()

    def action_yes(self) -> None:
        if self._deleting is not None:
            self._order(self._deleting, DeleteConversation())
            self._forget_deletion()

    def _forget_deletion(self) -> None:
        self._deleting = None
        self.say("")
        self.retell()

    def action_branch(self) -> None:
        if self.chosen is not None:
            self.post_message(
                Begin(CreateConversation(branch=Branch(conversation=self.chosen.id)), refused=self.refused)
            )
            self.action_close()

    def _order(self, listing: Listing, command: UpdateConversation | DeleteConversation) -> None:
        self.post_message(Order(listing.id, command, accepted=lambda _: self._finish_rename(), refused=self.refused))

    def _finish_rename(self) -> None:
        if self.is_attached:
            self.load()

    def action_close(self) -> None:
        """Esc closes the innermost thing first."""
        if self._deleting is not None:
            self._forget_deletion()
        elif self.query_one("#title").display:
            self._close_field()
        elif self.query_one("#filter").display and self.query_one("#filter").has_focus:
            self.query_one("#filter", Input).value = ""
            self.query_one("#filter").display = False
            self._rows.focus()
        else:
            super().action_close()
