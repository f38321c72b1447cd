"""The inbox: everything that waits for a person, in all conversations and at all depths, the oldest first, answered here.
Below it the requests that came to an end last, with what became of each: who missed one sees that it expired.

Reads what waits every two seconds while it is open. The card that is shown is the one the keys mean; it is deaf whenever it
comes into sight, as in the dock.
"""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from palaver.client.client import Client, WaitingRequest
from palaver.clock import Clock
from palaver.errors import PalaverError
from palaver.tui.docks.card import RequestCard
from palaver.tui.docks.keyline import Key
from palaver.tui.docks.request_choice import Asked, line_of, name_of, requests_of
from palaver.tui.docks.requests import card_for
from palaver.tui.intents import OpenConversation
from palaver.tui.keys import ANSWER_BINDINGS, Digit, tell_alt_from_letters
from palaver.tui.people import People
from palaver.tui.screens.frame import Sheet, fill, heading, selected_id
from palaver.tui.text import words
from palaver.tui.text.answers import say_resolution
from palaver.tui.text.safe import one_line, visible
from palaver.tui.text.screens import Listed, Waiting

AGAIN_S = 2.0
RECENT = 20
"""Those that are over and still shown: enough to see what became of the last ones."""
_OVER = "over:"
"""Before the id of a row whose request is over."""
_SIGNS = {"answered": "✓", "expired": "⚠", "cancelled": "○", "superseded": "○", "open": "◆"}


class WaitingInbox(Sheet):
    DEFAULT_CSS = """
    WaitingInbox OptionList { height: 1fr; }
    WaitingInbox #card { height: auto; max-height: 65%; }
    """
    LABEL = Waiting.LABEL
    LEAD = Waiting.LEAD
    BINDINGS: ClassVar[list[BindingType]] = [
        *ANSWER_BINDINGS,
        Binding("f6", "region", show=False, priority=True),
        Binding("o", "open", show=False),
    ]

    def __init__(self, client: Client, clock: Clock, people: People | None = None) -> None:
        super().__init__()
        self._client = client
        self._clock = clock
        self._people = people or People()
        self._items: dict[str, WaitingRequest] | None = None
        self._over: dict[str, WaitingRequest] = {}
        self._card: RequestCard | None = None

    def compose_body(self) -> ComposeResult:
        yield OptionList()
        yield Vertical(id="card")

    def on_mount(self) -> None:
        tell_alt_from_letters()
        self.query_one(OptionList).focus()
        self.say(Waiting.LOADING)
        self.load()
        self.set_interval(AGAIN_S, self.load)

    def load(self) -> None:
        self.read(self._load)

    async def _load(self) -> None:
        try:
            items = await self._client.requests()
            # One that came to an end is no longer among those that wait.
            recent = (
                None
                if self._items is not None and self._items.keys() == {item.request.id for item in items}
                else (await self._client.recent_requests(RECENT))
            )
        except PalaverError:
            self.say(Waiting.FAILED, is_bad=True)
            return
        self.show(items, recent)

    def show(self, items: Sequence[WaitingRequest], recent: Sequence[WaitingRequest] | None = None) -> None:
        """`recent`: those that came to an end, the latest first; None: as they were."""
        self._items = {item.request.id: item for item in items}
        if recent is not None:
            self._over = {f"{_OVER}{item.request.id}": item for item in recent}
        self._draw()

    def _draw(self) -> None:
        waiting = self._items or {}
        options = [Option(self._row(item), id=request) for request, item in waiting.items()]
        if self._over:
            options += [
                heading(Waiting.RECENT),
                *(Option(self._over_row(item), id=id) for id, item in self._over.items()),
            ]
        fill(self.query_one(OptionList), options)
        self.say("" if waiting else Waiting.EMPTY)
        count = len(waiting)
        self.title_is(f"{Waiting.LABEL}: {count}" if count else Waiting.LABEL)
        self.read(self._show_card, group="card")
        self.retell()

    def _row(self, item: WaitingRequest) -> Content:
        agent = visible(name_of(item.agent, self._people.names))
        since = words.ago(item.request.ts, self._clock.now_ms())
        return Content.assemble(
            (one_line(line_of(item.request, agent)), "bold"),
            ("\n  ", ""),
            (one_line(item.title) or Listed.UNTITLED, "$ink-soft"),
            (f" · {Waiting.SINCE_NOW if since == 'now' else Waiting.since(since)}", "$ink-faint"),
        )

    def _over_row(self, item: WaitingRequest) -> Content:
        request, agent = item.request, visible(name_of(item.agent, self._people.names))
        ended = request.resolution.ts if request.resolution else request.ts
        missed = request.status == "expired"
        became = words.join(Waiting.MISSED if missed else None, say_resolution(request, self._people))
        return Content.assemble(
            (f"{_SIGNS[request.status]} ", "$wait" if missed else "$ink-faint"),
            (one_line(line_of(request, agent)), "$ink-soft"),
            (f"\n  {became}", "$wait" if missed else "$ink-soft"),
            (
                f" · {words.join(one_line(item.title) or Listed.UNTITLED, words.ago(ended, self._clock.now_ms()))}",
                "$ink-faint",
            ),
        )

    @property
    def chosen(self) -> WaitingRequest | None:
        """The one that waits, to be answered."""
        return (self._items or {}).get(selected_id(self.query_one(OptionList)) or "")

    @property
    def _current_request(self) -> WaitingRequest | None:
        return self.chosen or self._over.get(selected_id(self.query_one(OptionList)) or "")

    async def _show_card(self) -> None:
        chosen, card = self.chosen, self._card
        if card is not None and chosen is not None and card.asked.request.id == chosen.request.id:
            return
        had_focus = card is not None and card.has_focus_within
        if card is not None:
            self._card = None
            await card.remove()
        if chosen is not None:
            self._card = card_for(await self._with_context(chosen), self._clock)
            self._card.may_answer = self._people.may_decide
            await self.query_one("#card").mount(self._card)
        if had_focus:
            self.query_one(OptionList).focus()

    async def _with_context(self, item: WaitingRequest) -> Asked:
        """With what its conversation tells of it: whether a turn runs there, and whether that takes other arguments."""
        agent = visible(name_of(item.agent, self._people.names))
        try:
            state = await self._client.snapshot(item.conversation, 1)
        except PalaverError:
            return Asked(item.conversation, item.request, agent, is_resting=False)
        known = (one for one in requests_of(state, names=self._people.names) if one.request.id == item.request.id)
        return next(known, Asked(item.conversation, item.request, agent, is_resting=False))

    @on(OptionList.OptionHighlighted)
    def _on_highlight(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.read(self._show_card, group="card")
        self.retell()

    @on(OptionList.OptionSelected)
    def _on_select(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_region()

    def keys(self) -> list[Key]:
        if self._current_request is None:
            return []
        return [Key("↑↓", Waiting.CHOOSE), Key("O", Waiting.OPEN, self.action_open)]

    def action_answer(self, digit: Digit) -> None:
        if self._card is not None:
            self._card.answer(digit)

    def action_region(self) -> None:
        """Between the list and the card."""
        if self._card is not None and not self._card.has_focus_within:
            self._card.focus()
        else:
            self.query_one(OptionList).focus()

    def action_open(self) -> None:
        if (item := self._current_request) is not None:
            self.post_message(OpenConversation(item.conversation))
            self.action_close()

    @on(RequestCard.Left)
    def _left(self, event: RequestCard.Left) -> None:
        event.stop()
        self.query_one(OptionList).focus()

    @on(RequestCard.Sent)
    def _on_sent(self, event: RequestCard.Sent) -> None:
        event.stop()
        if event.card.has_focus_within:
            self.query_one(OptionList).focus()
