"""Keys one after the other: what a key does is done before the next one is read, however fast they come.

The app is one of these. Textual 8.2.8 passes every key at once to whatever has the focus at that moment; a choice, a change of
focus or a list that opens is a message which is handled later. So keys that come together, from quick hands or over a slow
line, would be answered by what was on the screen before: Enter without what was chosen, letters for the wrong field.

A mark follows each key through every part of the screen that the key could reach. It comes back to the app behind whatever the
key set going; what is typed meanwhile is held, and not for longer than a moment.
"""

from collections import deque
from collections.abc import Awaitable, Callable

from textual import events, on
from textual.app import App
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, TextArea

ROUNDS = 3
"""A key moves the focus, the part that got it passes it on, and what was chosen is told to those around it."""
HELD_S = 0.5
"""Something hangs, or what had the focus is gone: a late key is better than a lost one."""


class Settled(Message):
    """The mark: goes the way a key goes."""

    def __init__(self, number: int, round: int) -> None:
        super().__init__()
        # Textual ends a message at the widget whose handler made it; this one has to come back.
        self._sender = None
        self.number = number
        self.round = round


class Typing(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self._held: deque[events.Key | events.Paste] = deque()
        self._number = 0
        self._is_settled = True
        self._is_text = False
        self._opening = 0
        self._patience: Timer | None = None

    async def on_event(self, event: events.Event) -> None:
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
        elif self._held or not (self._is_settled or self._goes_on(event)):
            self._held.append(event)
        else:
            await self._pass_on(event)

    def _goes_on(self, event: events.Key | events.Paste) -> bool:
        """Letters into a text that is being written need not wait for each other."""
        return self._is_text and self._is_written(event)

    def _is_written(self, event: events.Key | events.Paste) -> bool:
        is_letter = isinstance(event, events.Key) and event.is_printable
        return is_letter and isinstance(self._reader(), Input | TextArea)

    def _reader(self) -> Widget | None:
        """What reads the next key: nobody, once the app is being taken down."""
        return (self.focused or self.screen) if self.screen_stack else None

    async def _pass_on(self, event: events.Key | events.Paste) -> None:
        if self._reader() is None:
            return
        self._is_text = self._is_written(event)
        await super().on_event(event)
        self._mark(ROUNDS)

    def _mark(self, round: int) -> None:
        target = self._reader()
        if target is None:
            return
        self._is_settled = False
        self._number += 1
        if self._patience is not None:
            self._patience.stop()
        self._patience = self.set_timer(HELD_S, self._wait)
        if not target.post_message(Settled(self._number, round)):
            self.post_message(Settled(self._number, 0))

    @on(Settled)
    async def _on_settled(self, mark: Settled) -> None:
        mark.stop()
        if mark.number != self._number:
            return
        if mark.round:
            self._mark(mark.round - 1)
        elif not self._opening:
            await self._go_on()

    async def _wait(self) -> None:
        self._number += 1
        await self._go_on()

    async def _go_on(self) -> None:
        self._is_settled = True
        if self._patience is not None:
            self._patience.stop()
            self._patience = None
        while self._held and (self._is_settled or self._goes_on(self._held[0])):
            await self._pass_on(self._held.popleft())

    async def opening(self, work: Callable[[], Awaitable[object]]) -> None:
        """Does what brings something up. Keys wait for it: they are meant for what comes."""
        self._opening += 1
        self._is_settled = False
        try:
            await work()
        finally:
            self._opening -= 1
            if self.is_running:
                self._mark(ROUNDS)
