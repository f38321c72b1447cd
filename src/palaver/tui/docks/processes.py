"""What agents left running in the background: each command with the time it has been running, to be stopped from here.

Mounted once; told with `show(state)` after every change. A process outlives the turn that began it, so this stands whether or
not the agent works.
"""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from palaver.clock import Clock
from palaver.schema.commands import StopProcess
from palaver.schema.view import Process, State
from palaver.tui.docks.keyline import Key
from palaver.tui.docks.strip import Strip
from palaver.tui.intents import Order, Say
from palaver.tui.text import docks, words
from palaver.tui.text.safe import one_line


class ProcessStrip(Strip[Process]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("x,delete", "stop", show=False)]
    SHOWN = 4

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._known: tuple[Process, ...] = ()
        self._stopping: set[str] = set()

    def on_mount(self) -> None:
        self.set_interval(1.0, self.tick)

    def show(self, state: State) -> None:
        # Told with every token; drawn only when something of it changed.
        if state.conversation == self.conversation and state.processes is self._known:
            return
        self._known = state.processes
        running = tuple(process for process in state.processes if process.running)
        self._stopping &= {process.id for process in running}
        self.hold(state.conversation, running)

    def tick(self) -> None:
        if self.items:
            self.draw()

    def line(self, item: Process, at: int, *, here: bool) -> Content:
        began = item.started_at
        state = docks.Processes.STOPPING if item.id in self._stopping else docks.Processes.RUNNING
        since = words.running_time(self._clock.now_ms() - began) if began is not None else None
        return Content.assemble(
            (one_line(" ".join(item.command.split())), "bold $ink" if here else "$ink"),
            (f"  {words.join(state, since)}", "$ink-faint"),
        )

    def keys(self) -> list[Key]:
        return [Key("X", docks.Processes.STOP, self.action_stop)] if self._can_stop() else []

    def _can_stop(self) -> bool:
        return self.has_focus and self.item is not None and self.item.id not in self._stopping

    def action_stop(self) -> None:
        process = self.item
        if process is None or not self._can_stop():
            return

        def refused(why: str) -> None:
            self._stopping.discard(process.id)
            self.post_message(Say(why, is_trouble=True))
            self.draw()

        self._stopping.add(process.id)
        self.post_message(Order(self.conversation, StopProcess(process=process.id), refused=refused))
        self.draw()
