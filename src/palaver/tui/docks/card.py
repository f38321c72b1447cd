"""One request with the way its answer is sent. Stands in the dock and in the inbox.

It never takes the focus by itself, and it is deaf at first: what was meant for something else must not answer it. An answer
is an `Order`; the first one in the log wins, and a refusal is said on the card. Each kind of request is a subclass.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from palaver.clock import Clock
from palaver.core.text.approval_text import Reading, Shown
from palaver.schema.commands import Command, DecideTools, ResolveRequest
from palaver.tui.docks.keyline import Key, KeyLine
from palaver.tui.docks.reader import Reader
from palaver.tui.docks.request_choice import Asked, heading_of, meta_of
from palaver.tui.intents import Order, Send
from palaver.tui.keys import ALTERNATIVES, Digit
from palaver.tui.text import docks, words
from palaver.tui.text.safe import visible

DEAF_S = 0.4
"""Longer than the last keystroke of somebody who did not see it come."""

Hearing = Literal["deaf", "open", "sending"]


class RequestCard(Vertical, can_focus=True):
    DEFAULT_CSS = """
    RequestCard {
        height: auto; padding: 0 1; border-left: outer $wait; background: $wait-soft; color: $ink;
        &:focus-within { border-left: thick $wait; }
        .top { height: auto; layout: horizontal; }
        .heading { width: 1fr; max-height: 3; text-style: bold; }
        .place { width: auto; color: $ink-soft; padding-left: 2; }
        .body { height: auto; max-height: 40vh; padding: 0 0 0 2; scrollbar-size-vertical: 1; }
        .meta { height: auto; max-height: 4; color: $wait; }
        .note { height: auto; color: $ink-soft; }
        .note.is-bad { color: $bad; }
        .form { height: auto; max-height: 40vh; padding: 0 0 0 2; }
        Input, TextArea { border: none; height: 1; padding: 0 1; background: $panel-strong; }
        Input:focus, TextArea:focus { border: none; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", show=False),
        Binding("up", "scroll_body(-1)", show=False),
        Binding("down", "scroll_body(1)", show=False),
        Binding("pageup", "scroll_body(-8)", show=False),
        Binding("pagedown", "scroll_body(8)", show=False),
        Binding("end", "scroll_to_end", show=False),
        *(Binding(str(digit), f"answer({digit})", show=False) for digit in ALTERNATIVES),
    ]

    class Sent(Message):
        """It was answered here; the log has not said so yet."""

        def __init__(self, card: "RequestCard") -> None:
            super().__init__()
            self.card = card

    class Left(Message):
        """Whoever was in it wants to go on writing."""

    class Turned(Message):
        """Another request is to be shown: the next one, or the one before."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def __init__(self, asked: Asked, clock: Clock) -> None:
        super().__init__(classes="region")
        self.asked = asked
        self.clock = clock
        self.place = ""
        self._heading = heading_of(asked)
        self.failed = ""
        self.is_keyed = True
        """Of several in sight, one is meant by the keys that answer."""
        self.may_answer = True
        """Else it is there to be read."""
        self.together: Sequence[Asked] = ()
        """Those that one answer could decide with it."""
        self._heard_from_s = clock.monotonic_s() + DEAF_S
        self._is_sending = False

    # -- for the kinds of requests

    def lines(self) -> Sequence[Shown]:
        """What is asked, to be read, where it is lines."""
        return ()

    def compose_body(self) -> ComposeResult:
        """What is asked, to be read, where it is more than lines."""
        yield from ()

    def choices(self) -> list[Key]:
        """The keys that answer, without those of a stage that is open."""
        return []

    def more_choices(self) -> list[Key]:
        """What is also possible for someone who came into the card."""
        return []

    def answer(self, digit: Digit) -> None:
        """What Alt and this digit mean."""

    # -- what all of them do

    @property
    def hearing(self) -> Hearing:
        if self._is_sending:
            return "sending"
        return "deaf" if self.clock.monotonic_s() < self._heard_from_s else "open"

    @property
    def is_heard(self) -> bool:
        return self.may_answer and self.hearing == "open"

    def compose(self) -> ComposeResult:
        with Widget(classes="top"):
            yield Static(Content(self._heading), classes="heading")
            yield Static(classes="place")
        with Reader(self.lines(), classes="body"):
            yield from self.compose_body()
        yield Static(classes="meta")
        yield Vertical(classes="form")
        yield KeyLine(classes="bar")
        yield Static(classes="note")

    def on_mount(self) -> None:
        self.query_one(".form").display = False
        self.listen_anew()
        self.call_after_refresh(self.retell)
        self.set_interval(1, self.retell)

    def listen_anew(self) -> None:
        """The keys became its own just now."""
        self._heard_from_s = self.clock.monotonic_s() + DEAF_S
        if self._is_drawn:
            self.set_timer(DEAF_S * 1.05, self.retell)
            self.retell()

    @property
    def _is_drawn(self) -> bool:
        # What stands within another part is there a moment later than the part.
        return self.is_attached and bool(self.query(".note")) and bool(self.query(".place"))

    def retell(self) -> None:
        """Bring everything up to date that is not written once for ever."""
        if not self._is_drawn:
            return
        heading = heading_of(self.asked)
        if heading != self._heading:
            # The agent's name may be known later than its request.
            self._heading = heading
            self.query_one(".heading", Static).update(Content(heading))
        self.query_one(".place", Static).update(Content(self.place))
        meta = self.query_one(".meta", Static)
        said = meta_of(self.asked.request, self.clock.now_ms())
        meta.update(Content(said))
        meta.display = bool(said)
        self.query_one(".bar", KeyLine).show(self._keys())
        note = self.query_one(".note", Static)
        waits = "" if self.may_answer else docks.Approval.NOT_YOURS
        left = self.reading.left if self.may_answer else 0
        unread = docks.Approval.unread(left) if left else ""
        told = docks.Approval.RESOLVING if self._is_sending else self.failed or waits or unread
        note.update(Content(visible(told)))
        note.set_class(bool(self.failed) and not self._is_sending, "is-bad")
        note.display = bool(told)

    def _keys(self) -> list[Key]:
        if not self.query_one(".form").display:
            more = self.more_choices() if self.may_answer else self.turning()
            if not self.has_focus_within and (more or self.query_one(".body", Reader).max_scroll_y > 0):
                more = [Key("F6", docks.Approval.MORE, self.focus)]
            return [*(self.choices() if self.may_answer else ()), *more]
        return self.stage_keys()

    def turning(self) -> list[Key]:
        return [Key("→", docks.Approval.NEXT, lambda: self.action_turn(1))] if self.place else []

    def stage_keys(self) -> list[Key]:
        return [Key("Esc", docks.Approval.BACK, self.action_back)]

    def on_descendant_focus(self) -> None:
        self.retell()

    def on_focus(self) -> None:
        self.call_after_refresh(self.retell)

    def on_blur(self) -> None:
        self.call_after_refresh(self.retell)

    def update(self, asked: Asked, place: str) -> None:
        self.asked, self.place = asked, place
        self.retell()

    def reply(self, answer: ResolveRequest) -> None:
        self.order(answer)

    @property
    def reading(self) -> Reading:
        """How much of what an answer would allow has been in sight."""
        return self.query_one(".body", Reader).reading if self._is_drawn else Reading(None, 0)

    @property
    def may_allow(self) -> bool:
        return self.is_heard and self.reading.may_allow

    def order(self, command: Command) -> None:
        """Every answer goes through here: none allows what was not there to be read."""
        if not allows(command) or self.is_read_to_its_end():
            self.post(Order(self.asked.conversation, command, refused=self.refused))

    def is_read_to_its_end(self) -> bool:
        """Else it says so."""
        if not self.is_heard or self.reading.may_allow:
            return True
        self.failed = docks.Approval.unread(self.reading.left)
        self.retell()
        return False

    def post(self, answer: Order | Send) -> None:
        """Send the one answer, if it is heard."""
        if not self.is_heard:
            return
        self._is_sending, self.failed = True, ""
        self.post_message(answer)
        self.post_message(self.Sent(self))
        self.retell()

    def refused(self, sentence: str) -> None:
        self._is_sending = False
        self.failed = words.in_typographic_quotes(sentence) or docks.Approval.FAILED
        self.retell()

    # -- stages: a form in place of the choices

    async def open_stage(self, *widgets: Widget, focus: Widget) -> None:
        form = self.query_one(".form")
        await form.remove_children()
        await form.mount(*widgets)
        form.display = True
        focus.focus()
        self.retell()

    async def close_stage(self) -> None:
        form = self.query_one(".form")
        form.display = False
        had_focus = form.has_focus_within
        await form.remove_children()
        if had_focus:
            self.focus()
        self.retell()

    @property
    def has_stage(self) -> bool:
        return self._is_drawn and self.query_one(".form").display

    # -- keys of someone who is in it

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        return self.may_answer or action in ("back", "scroll_body", "scroll_to_end", "turn")

    async def action_back(self) -> None:
        if self.has_stage:
            await self.close_stage()
        else:
            self.post_message(self.Left())

    def action_answer(self, digit: Digit) -> None:
        self.answer(digit)

    @property
    def scrolled(self) -> Reader:
        """What the keys move."""
        return self.query_one(".body", Reader)

    def action_scroll_body(self, by: int) -> None:
        self.scrolled.scroll_relative(y=by, animate=False)

    def action_scroll_to_end(self) -> None:
        self.scrolled.scroll_end(animate=False)

    def on_reader_moved(self, event: Reader.Moved) -> None:
        event.stop()
        if not self._is_sending and self.failed.startswith(docks.Approval.UNREAD):
            self.failed = ""
        self.call_after_refresh(self.retell)

    def action_turn(self, by: int) -> None:
        self.post_message(self.Turned(by))

    def on_click(self, event: events.Click) -> None:
        event.stop()


def allows(command: Command) -> bool:
    """Whether it lets something happen that was asked for; an answer to a question may."""
    match command:
        case ResolveRequest(verdict="allow") | DecideTools(accepted=True):
            return True
        case ResolveRequest(answers=answers):
            return len(answers) > 0
        case DecideTools(decisions=decisions):
            return any(decision.accepted for decision in decisions)
        case _:
            return False


def digit_key(card: RequestCard, digit: Digit, label: str, *, allows: bool = False) -> Key:
    """A choice with its key; the keys of another request are not shown. `allows`: deaf until all of it has been in sight."""
    shown = f"Alt+{digit}" if card.is_keyed else str(digit)
    is_heard = card.may_allow if allows else card.is_heard
    return Key(shown, label, lambda: card.answer(digit), is_heard)
