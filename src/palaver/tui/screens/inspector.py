"""The log as it is: every event by its seq, filtered by type, copied as JSON; and the view as it was after any of them.

Follows the conversation from its first event with the client's own fold, so what is shown at an event is what `evolve` made
of all before it. Nothing here is kept beyond the screen.
"""

from dataclasses import dataclass
from typing import ClassVar

import msgspec
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from palaver.client.client import Client
from palaver.core.fold.evolve import fold
from palaver.core.state import message_count, open_requests
from palaver.schema.events import Event, UnknownEvent
from palaver.schema.view import State
from palaver.tui.docks.keyline import Key
from palaver.tui.intents import Copy, ViewAt
from palaver.tui.screens.frame import Sheet, fill, selected_id
from palaver.tui.text import words
from palaver.tui.text.safe import limit_lines, one_line, visible
from palaver.tui.text.screens import COPY, Inspector

CHECKPOINT = 200
"""A view is kept every so many events, so that any moment is a short fold away."""
DRAW_S = 0.2
"""A log of thousands arrives in a moment; it is drawn a few times, not thousands."""


@dataclass(frozen=True, slots=True)
class Book:
    """Events in order, and the views before some of them."""

    events: list[Event]
    checkpoints: list[tuple[int, State]]

    def take(self, event: Event, after: State) -> None:
        self.events.append(event)
        if len(self.events) % CHECKPOINT == 0:
            self.checkpoints.append((len(self.events), after))

    def view_at(self, seq: int) -> State:
        """As it was after this event."""
        count, state = next((one for one in reversed(self.checkpoints) if one[1].seq <= seq), self.checkpoints[0])
        return fold(state, tuple(event for event in self.events[count:] if event.seq <= seq))


def type_of(event: Event) -> str:
    if isinstance(event, UnknownEvent):
        return visible(event.type)
    return str(type(event).__struct_config__.tag)


def as_json(event: Event) -> str:
    return msgspec.json.format(msgspec.json.encode(event), indent=2).decode()


class EventInspector(Sheet):
    DEFAULT_CSS = """
    EventInspector {
        .parts { height: 1fr; }
        #events { width: 45%; height: 100%; text-wrap: nowrap; text-overflow: ellipsis; }
        #event { width: 1fr; height: 100%; padding: 0 0 0 1; border-left: solid $line; scrollbar-size-vertical: 1; }
        #json { height: auto; color: $ink-soft; }
        #view { height: auto; color: $live; }
    }
    """
    LABEL = Inspector.LABEL
    LEAD = Inspector.LEAD
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "view", show=False),
        Binding("n", "now", show=False),
        Binding("c", "copy", show=False),
        Binding("slash", "filter", show=False),
    ]

    def __init__(self, client: Client, conversation: str) -> None:
        super().__init__()
        self._client = client
        self._conversation = conversation
        self._book = Book([], [(0, State(conversation=conversation))])
        self._has_gap = False
        self._is_stale = False
        self._drawn_query: str | None = None
        self._drawn_count = 0
        self._paused_at: int | None = None

    def compose_body(self) -> ComposeResult:
        yield Input(placeholder=Inspector.FILTER)
        with Horizontal(classes="parts"):
            yield OptionList(id="events")
            with VerticalScroll(id="event", can_focus=False):
                yield Static(id="view")
                yield Static(id="json")

    def on_mount(self) -> None:
        self.query_one(Input).display = False
        self._events.focus()
        self.read(self._follow)
        self.set_interval(DRAW_S, self._draw_news)

    @property
    def _events(self) -> OptionList:
        return self.query_one("#events", OptionList)

    @property
    def _query(self) -> str:
        return self.query_one(Input).value.strip().lower()

    async def _follow(self) -> None:
        async for followed in self._client.follow(self._conversation, State(conversation=self._conversation)):
            for event in followed.events:
                self._book.take(event, followed.state)
            if not followed.events and followed.state.seq:
                # The view came as a whole: what lies before it is not in the log any more.
                self._has_gap = True
                self._book.checkpoints.append((len(self._book.events), followed.state))
            self._is_stale = True

    def _draw_news(self) -> None:
        if self._is_stale:
            self._is_stale = False
            self.draw()

    def draw(self) -> None:
        was_last = self._events.highlighted in (None, self._events.option_count - 1)
        if self._drawn_query == self._query and self._events.option_count:
            # A log of thousands grows by a few: only those are drawn.
            self._events.add_options(self._rows(self._book.events[self._drawn_count :]))
        else:
            fill(self._events, self._rows(self._book.events))
        self._drawn_query, self._drawn_count = self._query, len(self._book.events)
        shown = self._events.option_count
        if was_last and shown and self._paused_at is None:
            self._events.highlighted = shown - 1
        where = Inspector.LIVE if self._paused_at is None else Inspector.paused(self._paused_at)
        self.title_is(words.join(Inspector.LABEL, Inspector.shown(shown, len(self._book.events)), where))
        self.say(self._describe(shown))

    def _rows(self, events: list[Event]) -> list[Option]:
        return [Option(_row(event), id=str(event.seq)) for event in events if self._query in type_of(event)]

    def _describe(self, shown: int) -> str:
        if not shown:
            return Inspector.none(self._query) if self._query else Inspector.EMPTY
        return Inspector.GAP if self._has_gap else ""

    def keys(self) -> list[Key]:
        return [
            Key("V", Inspector.VIEW, self.action_view),
            *([Key("N", Inspector.NOW, self.action_now)] if self._paused_at is not None else []),
            Key("C", COPY, self.action_copy),
            Key("/", Inspector.FILTERED, self.action_filter),
        ]

    @property
    def chosen(self) -> Event | None:
        seq = selected_id(self._events)
        return next((event for event in self._book.events if str(event.seq) == seq), None)

    @on(OptionList.OptionHighlighted)
    def _on_highlight(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        chosen = self.chosen
        if chosen is None:
            return
        view = self._book.view_at(chosen.seq)
        status = words.Status.WORDS[view.status]
        told = Inspector.view(status, message_count(view), len(view.queue), len(open_requests(view)))
        self.query_one("#view", Static).update(Content(told))
        self.query_one("#json", Static).update(Content(limit_lines(visible(as_json(chosen)))))
        self.query_one("#event", VerticalScroll).scroll_home(animate=False)

    @on(OptionList.OptionSelected)
    def _on_select(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_view()

    def action_view(self) -> None:
        """The conversation behind this screen as it was then."""
        if self.chosen is not None:
            self._paused_at = self.chosen.seq
            self.post_message(ViewAt(self.chosen.seq))
            self.draw()
            self.retell()

    def action_now(self) -> None:
        self._paused_at = None
        self.post_message(ViewAt(None))
        self.draw()
        self.retell()

    def action_copy(self) -> None:
        if self.chosen is not None:
            self.post_message(Copy(as_json(self.chosen)))

    def action_filter(self) -> None:
        self.query_one(Input).display = True
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _on_filter(self, event: Input.Changed) -> None:
        event.stop()
        self.draw()

    @on(Input.Submitted)
    def _to_rows(self, event: Input.Submitted) -> None:
        event.stop()
        self._events.focus()

    def action_close(self) -> None:
        field = self.query_one(Input)
        if field.display and field.has_focus:
            field.value = ""
            field.display = False
            self._events.focus()
        else:
            super().action_close()


def _row(event: Event) -> Content:
    text = getattr(event, "text", None)
    more = one_line(text, 60) if isinstance(text, str) else ""
    return Content.assemble(
        (f"{event.seq:>6} ", "$ink-faint"), (type_of(event), ""), (f"  {more}" if more else "", "$ink-soft")
    )
