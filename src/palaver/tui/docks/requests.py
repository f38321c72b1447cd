"""What waits for a person, above the composer: one at a time, its own and those of the subagents that work for it.

Mounted once; told with `show(state)` after every change. It never takes the focus. One that was answered here, elsewhere or
by nobody says so for a moment; the transcript says it for ever.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from palaver.client.client import WaitingRequest
from palaver.clock import Clock
from palaver.core.state import find_request
from palaver.schema.view import Request, State
from palaver.tui.docks.card import RequestCard
from palaver.tui.docks.request_choice import Asked, group_together, place_of, question_in_answer, requests_of
from palaver.tui.keys import Digit, tell_alt_from_letters
from palaver.tui.people import People
from palaver.tui.text import docks
from palaver.tui.text.answers import say_resolution

if TYPE_CHECKING:
    from palaver.tui.docks.question import WrittenQuestionCard

FAREWELL_S = 6.0
"""How an answer ended is read in passing."""


def card_for(asked: Asked, clock: Clock) -> RequestCard:
    """Each is imported when the first of its kind is asked: most terminals begin with none."""
    match asked.request.kind:
        case "approval":
            from palaver.tui.docks.approval import ApprovalCard, MoneyCard

            return MoneyCard(asked, clock) if asked.request.tool is None else ApprovalCard(asked, clock)
        case "question":
            from palaver.tui.docks.question import QuestionCard, WrittenQuestionCard

            return WrittenQuestionCard(asked, clock) if asked.is_written else QuestionCard(asked, clock)
        case "plan":
            from palaver.tui.docks.plan import PlanCard

            return PlanCard(asked, clock)


class RequestDock(Vertical):
    DEFAULT_CSS = """
    RequestDock { height: auto; }
    RequestDock > .over { height: auto; max-height: 3; padding: 0 1; color: $ink-soft; border-left: outer $line-strong; }
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._conversation = ""
        self._told: tuple[object, ...] = ()
        self._requests: tuple[Request, ...] = ()
        self._asked: list[Asked] = []
        self._cards: dict[str, RequestCard] = {}
        self._shown: str | None = None
        self._dismissed: set[str] = set()
        self._over_until_s = 0.0
        self.people = People()
        self.display = False

    def compose(self) -> ComposeResult:
        yield Static(classes="over")

    def on_mount(self) -> None:
        tell_alt_from_letters()
        self.query_one(".over").display = False
        self.set_interval(1, self._say_farewell)

    @property
    def card(self) -> RequestCard | None:
        """The one that the keys mean."""
        return self._cards.get(self._shown or "")

    def show(self, state: State, below: Sequence[WaitingRequest] = ()) -> None:
        turn = (state.turn.id, state.turn.backend) if state.turn else None
        written = question_in_answer(state)
        told = (state.conversation, state.agent, turn, tuple(below), self.people, written and written.id)
        # Told with every token; drawn only when something of it changed.
        if told == self._told and state.requests is self._requests:
            return
        self._told, self._requests = told, state.requests
        if state.conversation != self._conversation:
            self._leave()
            self._conversation = state.conversation
        asked = requests_of(state, below, self.people.names)
        self._asked = [one for one in asked if one.request.id not in self._dismissed]
        self._tell_ends(state)
        self._draw()

    def answer(self, digit: Digit) -> None:
        if self.card is not None:
            self.card.answer(digit)

    def _draw(self) -> None:
        at = place_of(self._asked, self._shown)
        asked = self._asked[at] if self._asked else None
        if asked is not None:
            self._show_card(asked, at)
        else:
            self._shown = None
        for request, card in self._cards.items():
            card.display = request == self._shown
        self._show_self()

    def _show_card(self, asked: Asked, at: int) -> None:
        request = asked.request.id
        place = docks.Approval.place(at + 1, len(self._asked)) if len(self._asked) > 1 else ""
        card = self._cards.get(request)
        if card is None:
            card = self._cards[request] = card_for(asked, self._clock)
            _ = self.mount(card)
        card.together = group_together(self._asked, asked.conversation)
        if request != self._shown:
            self._shown = request
            card.listen_anew()
        card.may_answer = self.people.may_write if asked.is_written else self.people.may_decide
        card.update(asked, place)

    def _tell_ends(self, state: State) -> None:
        waiting = {one.request.id for one in self._asked}
        for request in [known for known in self._cards if known not in waiting]:
            card = self._cards.pop(request)
            if card.has_focus_within:
                card.post_message(RequestCard.Left())
            _dismiss(card)
            ended = find_request(state, request)
            if ended is not None and ended.status != "open":
                self._say_end(say_resolution(ended, self.people))
            elif card.asked.conversation != state.conversation:
                self._say_end(docks.Answered.QUESTION)

    def _say_end(self, said: str) -> None:
        over = self.query_one(".over", Static)
        over.update(Content(said))
        over.display = True
        self._over_until_s = self._clock.monotonic_s() + FAREWELL_S

    def _say_farewell(self) -> None:
        if self._clock.monotonic_s() >= self._over_until_s and self.query_one(".over").display:
            self.query_one(".over").display = False
            self._show_self()

    def _show_self(self) -> None:
        self.display = self._shown is not None or self.query_one(".over").display

    def _leave(self) -> None:
        for card in self._cards.values():
            _dismiss(card)
        self._cards.clear()
        self._shown = None
        self.query_one(".over").display = False

    def on_written_question_card_dismissed(self, event: "WrittenQuestionCard.Dismissed") -> None:
        event.stop()
        self._dismissed.add(event.request)
        card = self._cards.pop(event.request, None)
        if card is not None:
            if card.has_focus_within:
                card.post_message(RequestCard.Left())
            _dismiss(card)
        self._asked = [one for one in self._asked if one.request.id != event.request]
        self._draw()

    def on_request_card_turned(self, event: RequestCard.Turned) -> None:
        event.stop()
        if len(self._asked) < 2:
            return
        at = (place_of(self._asked, self._shown) + event.by) % len(self._asked)
        had_focus = self.card is not None and self.card.has_focus_within
        self._show_card(self._asked[at], at)
        self._draw()
        if had_focus and self.card is not None:
            self.card.focus()


def _dismiss(card: RequestCard) -> None:
    # It takes a moment to go, in which nobody is led there any more.
    card.remove_class("region")
    card.call_later(card.remove)
