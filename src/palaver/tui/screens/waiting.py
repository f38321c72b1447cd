"""The inbox: everything that waits for a person, in all conversations and at all depths, the oldest first, answered here.

Reads what waits every two seconds while it is open. The card that is shown is the one the keys mean; it is deaf whenever it
comes into sight, as in the dock.
"""

from collections.abc import Mapping, Sequence
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
from palaver.tui import words
from palaver.tui.docks.asked import Asked, asked_of, line_of, named
from palaver.tui.docks.card import RequestCard
from palaver.tui.docks.keyline import Key
from palaver.tui.docks.requests import card_for
from palaver.tui.intents import OpenConversation
from palaver.tui.keys import ANSWER_BINDINGS, Digit, tell_alt_from_letters
from palaver.tui.safe import one_line, visible
from palaver.tui.screens.frame import Sheet, chosen_id, fill
from palaver.tui.words_screens import Listed, Waiting

AGAIN_S = 2.0
KEPT_ANSWERED = 6
"""Those that are over and still shown: enough to see what became of the last ones."""


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

    def __init__(
        self, client: Client, clock: Clock, names: Mapping[str, str] | None = None, *, may_answer: bool = True
    ) -> None:
        super().__init__()
        self._client = client
        self._clock = clock
        self._names = names or {}
        self._may_answer = may_answer
        self._items: dict[str, WaitingRequest] = {}
        self._over: list[WaitingRequest] = []
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
        except PalaverError:
            self.say(Waiting.FAILED, is_bad=True)
            return
        self.show(items)

    def show(self, items: Sequence[WaitingRequest]) -> None:
        waiting = {item.request.id: item for item in items}
        gone = [item for request, item in self._items.items() if request not in waiting]
        self._over = [*self._over, *gone][-KEPT_ANSWERED:]
        self._items = waiting
        self._draw()

    def _draw(self) -> None:
        options = [Option(self._row(item), id=request) for request, item in self._items.items()]
        options += [Option(self._over_row(item), disabled=True) for item in self._over]
        fill(self.query_one(OptionList), options)
        self.say("" if self._items else Waiting.EMPTY)
        count = len(self._items)
        self.title_is(f"{Waiting.LABEL}: {count}" if count else Waiting.LABEL)
        self.read(self._show_card, group="card")
        self.retell()

    def _row(self, item: WaitingRequest) -> Content:
        agent = visible(named(item.agent, self._names))
        since = words.ago(item.request.ts, self._clock.now_ms())
        return Content.assemble(
            (one_line(line_of(item.request, agent)), "bold"),
            ("\n  ", ""),
            (one_line(item.title) or Listed.UNTITLED, "$ink-soft"),
            (f" · {Waiting.SINCE_NOW if since == 'now' else Waiting.since(since)}", "$ink-faint"),
        )

    def _over_row(self, item: WaitingRequest) -> Content:
        agent = visible(named(item.agent, self._names))
        return Content.styled(f"✓ {one_line(line_of(item.request, agent))} · {Waiting.ANSWERED}", "$ink-faint")

    @property
    def chosen(self) -> WaitingRequest | None:
        return self._items.get(chosen_id(self.query_one(OptionList)) or "")

    async def _show_card(self) -> None:
        chosen, card = self.chosen, self._card
        if card is not None and chosen is not None and card.asked.request.id == chosen.request.id:
            return
        had_focus = card is not None and card.has_focus_within
        if card is not None:
            self._card = None
            await card.remove()
        if chosen is not None:
            self._card = card_for(await self._asked(chosen), self._clock)
            self._card.may_answer = self._may_answer
            await self.query_one("#card").mount(self._card)
        if had_focus:
            self.query_one(OptionList).focus()

    async def _asked(self, item: WaitingRequest) -> Asked:
        """With what its conversation tells of it: whether a turn runs there, and whether that takes other arguments."""
        agent = visible(named(item.agent, self._names))
        try:
            state = await self._client.snapshot(item.conversation, 1)
        except PalaverError:
            return Asked(item.conversation, item.request, agent, is_resting=False)
        known = (one for one in asked_of(state, names=self._names) if one.request.id == item.request.id)
        return next(known, Asked(item.conversation, item.request, agent, is_resting=False))

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.read(self._show_card, group="card")
        self.retell()

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_region()

    def keys(self) -> list[Key]:
        if self.chosen is None:
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
        if self.chosen is not None:
            self.post_message(OpenConversation(self.chosen.conversation))
            self.action_close()

    @on(RequestCard.Left)
    def _left(self, event: RequestCard.Left) -> None:
        event.stop()
        self.query_one(OptionList).focus()

    @on(RequestCard.Sent)
    def _sent(self, event: RequestCard.Sent) -> None:
        event.stop()
        if event.card.has_focus_within:
            self.query_one(OptionList).focus()
