"""Messages that wait for their turn, in order. Editing holds one back on the server, so it cannot leave half-changed; removing
is final there, and putting back sends it again as it was: held, for its own agent, in its own mode.

Mounted once; told with `show(state)` after every change. Editing happens in the composer: this only asks for it.
"""

from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from palaver.clock import Clock
from palaver.core.queue import words_of
from palaver.schema.commands import Accepted, EditQueued, RemoveQueued
from palaver.schema.content import ImagePart
from palaver.schema.view import QueueItem, State
from palaver.tui.docks.keyline import Key
from palaver.tui.docks.queue_pause import is_paused, say_paused
from palaver.tui.docks.strip import Strip
from palaver.tui.intents import Order, Send
from palaver.tui.people import People, face_of
from palaver.tui.text import docks, words
from palaver.tui.text.safe import one_line, visible

UNDO_S = 5.0
"""Time to change one's mind."""


def whose(item: QueueItem) -> str | None:
    """Who put a message into the queue, when it was no person; what comes before a command, which is no message."""
    if item.command is not None:
        return docks.Queue.THEN
    agent = visible(item.origin.agent) if item.origin and item.origin.agent else None
    if item.trigger == "idle":
        return docks.Queue.IDLE
    if item.trigger == "callback":
        return docks.Queue.answer_of(agent or "")
    return docks.Queue.message_of(agent) if agent else None


class QueueStrip(Strip[QueueItem]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+up,K", "carry(-1)", show=False),
        Binding("shift+down,J", "carry(1)", show=False),
        Binding("enter,e", "edit", show=False),
        Binding("d,delete,backspace", "remove", show=False),
        Binding("s", "steer", show=False),
        Binding("l", "let_go", show=False),
        Binding("a", "let_all_go", show=False),
        Binding("u", "put_back", show=False),
    ]

    class Edit(Message):
        """This one is to be edited, in the composer."""

        def __init__(self, item: QueueItem) -> None:
            super().__init__()
            self.item = item

    def __init__(self, clock: Clock, steps_to: Callable[[Widget], int]) -> None:
        """`steps_to`: how often F6 is pressed to come to a region from where the focus is."""
        super().__init__()
        self._clock = clock
        self._steps_to = steps_to
        self._steps = 0
        self._can_steer = False
        self._removed: QueueItem | None = None
        self._undo_until_s = 0.0
        self._paused = ""
        self._edited: str | None = None
        self.people = People()

    def on_mount(self) -> None:
        self.set_interval(0.5, self.tick)

    def show(self, state: State, edited: str | None = None) -> None:
        """`edited`: the message that is in the composer now."""
        can_steer = state.turn is not None and state.turn.steerable
        paused = say_paused(state, self.people) if is_paused(state, edited) else ""
        # Told with every token; drawn only when something of it changed.
        told = (state.conversation, can_steer, paused, edited)
        known = (self.conversation, self._can_steer, self._paused, self._edited)
        if told == known and state.queue is self.items:
            return
        if state.conversation != self.conversation:
            self._removed = None
        self._can_steer, self._paused, self._edited = can_steer, paused, edited
        self.hold(state.conversation, state.queue)

    def tell_way(self) -> None:
        """It may be another now: the focus went somewhere, or a region came or left."""
        if self.display and self._steps_to(self) != self._steps:
            self.draw()

    def tick(self) -> None:
        if self._removed is not None and self._clock.monotonic_s() >= self._undo_until_s:
            self._removed = None
            self.draw()

    def is_worth_showing(self) -> bool:
        return super().is_worth_showing() or self._removed is not None

    def lead(self) -> str:
        return self._paused

    def line(self, item: QueueItem, at: int, *, here: bool) -> Content:
        images = sum(isinstance(part, ImagePart) for part in item.content)
        face = face_of(item.origin)
        steers = item.delivery == "boundary"
        state = words.join(
            docks.Queue.HELD
            if item.held
            else docks.Queue.STEERS
            if steers
            else docks.Queue.NEXT_UP
            if at == 0
            else None,
            docks.Queue.images(images) if images else None,
            words.via(face) if face else None,
        )
        by = whose(item)
        return Content.assemble(
            (f"{at + 1} ", "$ink-faint"),
            (f"{by}: " if by else "", "$ink-soft"),
            (one_line(words_of(item)), "bold $ink" if here else "$ink"),
            (f"  {state}" if state else "", "$wait" if item.held else "$ink-faint"),
        )

    def keys(self) -> list[Key]:
        said, item = docks.Queue, self.item
        # Away from the strip a letter belongs to the message that is written.
        self._steps = self._steps_to(self)
        way = "F6 " * self._steps
        undo = [Key(f"{way}U", said.PUT_BACK, self.action_put_back)] if self._removed is not None else []
        held = sum(one.held for one in self.items)
        all_go = said.LET_ALL_GO if held > 1 or self.has_focus else said.LET_GO
        let_go = [Key(f"{way}A", all_go, self.action_let_all_go)] if self._edited is None else []
        if not self.has_focus or item is None:
            return [*undo, *(let_go if self._paused else [])]
        own = whose(item) is None
        return [
            *undo,
            *([Key("L", said.LET_GO, self.action_let_go)] if self._can_let_go(item) else []),
            *(let_go if held > item.held else []),
            *([Key("E", said.EDIT, self.action_edit)] if own else []),
            Key("D", said.REMOVE, self.action_remove),
            *([Key("S", said.STEER, self.action_steer)] if own and self._can_steer else []),
            *([Key("Shift+↑↓", said.MOVE)] if len(self.items) > 1 else []),
        ]

    # -- what can be done with one

    def action_carry(self, by: int) -> None:
        item, to = self.item, self._at + by
        if item is None or not 0 <= to < len(self.items):
            return
        # Before the one above, or before the one after the next; nothing after it means the end.
        after = self.items[to + 1].id if by > 0 and to + 1 < len(self.items) else ""
        before = self.items[to].id if by < 0 else after
        self._order(EditQueued(item=item.id, before=before))

    def action_edit(self) -> None:
        if self.item is not None and whose(self.item) is None:
            self.post_message(self.Edit(self.item))

    def edit_last(self) -> bool:
        """Whether there is one of a person's that can be edited."""
        if not self.may_write:
            return False
        for at in reversed(range(len(self.items))):
            if whose(self.items[at]) is None:
                self._at = at
                self.action_edit()
                return True
        return False

    def action_remove(self) -> None:
        item, conversation = self.item, self.conversation
        if item is None:
            return

        def removed(accepted: Accepted) -> None:
            # What no person wrote cannot be sent again as a person's; what had left before was not removed. And another
            # conversation, opened meanwhile, is not the one to put it back into.
            if accepted.applied and whose(item) is None and conversation == self.conversation:
                self._removed, self._undo_until_s = item, self._clock.monotonic_s() + UNDO_S
                self.draw()

        self._order(RemoveQueued(item=item.id), removed)

    def action_put_back(self) -> None:
        item, self._removed = self._removed, None
        if item is not None:
            back = Send(
                self.conversation,
                item.content,
                item.delivery,
                priority=item.priority,
                merge=item.merge,
                held=item.held,
                agent=item.agent,
                mode=item.mode,
            )
            self.post_message(back)
        self.draw()

    def action_steer(self) -> None:
        """Out of the queue and into the running turn: sent only once it is surely out."""
        item, conversation = self.item, self.conversation
        if item is None or whose(item) is not None or not self._can_steer:
            return

        def removed(accepted: Accepted) -> None:
            if accepted.applied:
                self.post_message(Send(conversation, item.content, "boundary"))

        self._order(RemoveQueued(item=item.id), removed)

    def _can_let_go(self, item: QueueItem) -> bool:
        """What is edited here goes when it is saved: else it would leave half-changed."""
        return item.held and item.id != self._edited

    def action_let_go(self) -> None:
        if self.item is not None and self._can_let_go(self.item):
            self._order(EditQueued(item=self.item.id, held=False))

    def action_let_all_go(self) -> None:
        """In their order, in one step: those that share a turn still do. Not while one of them is edited here."""
        if self._edited is None and any(item.held for item in self.items):
            self._order(EditQueued(held=False))

    def _order(self, command: EditQueued | RemoveQueued, accepted: Callable[[Accepted], None] | None = None) -> None:
        self.post_message(Order(self.conversation, command, accepted=accepted))
