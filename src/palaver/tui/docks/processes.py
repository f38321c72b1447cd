"""What agents left running in the background: each command with the time it has been running, to be stopped from here.

Mounted once; told with `show(state)` after every change. A process outlives the turn that began it, so this stands whether or
not the agent works.
"""

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widgets import Static

from palaver.clock import Clock
from palaver.schema.commands import StopProcess
from palaver.schema.view import Process, State
from palaver.tui import words, words_docks
from palaver.tui.docks.keyline import Key, KeyLine
from palaver.tui.intents import Order, Say
from palaver.tui.safe import one_line

SHOWN = 4
"""More would push the conversation off a small screen; the list moves with its cursor."""


class ProcessStrip(Vertical, can_focus=True):
    DEFAULT_CSS = """
    ProcessStrip {
        height: auto; padding: 0 1; color: $ink-soft; border-left: outer $line-strong;
        &:focus { border-left: thick $live; }
        .items { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
        KeyLine { height: auto; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("x,delete", "stop", show=False),
        Binding("escape", "leave", show=False),
    ]

    class Left(Message):
        """Whoever was in it wants to go on writing."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(classes="region")
        self._clock = clock
        self._conversation = ""
        self._known: tuple[Process, ...] = ()
        self._at_work: tuple[Process, ...] = ()
        self._stopping: set[str] = set()
        self._at = 0
        self.display = False

    def compose(self) -> ComposeResult:
        yield Static(classes="items")
        yield KeyLine()

    def on_mount(self) -> None:
        self.set_interval(1.0, self.tick)

    def show(self, state: State) -> None:
        # Told with every token; drawn only when something of it changed.
        if state.conversation == self._conversation and state.processes is self._known:
            return
        chosen = self.process
        self._conversation, self._known = state.conversation, state.processes
        self._at_work = tuple(process for process in state.processes if process.running)
        self._stopping &= {process.id for process in self._at_work}
        # The cursor stays with its process, whichever of the others ended.
        places = [at for at, process in enumerate(self._at_work) if chosen is not None and process.id == chosen.id]
        self._at = max(0, min(places[0] if places else self._at, len(self._at_work) - 1))
        self.draw()

    @property
    def process(self) -> Process | None:
        return self._at_work[self._at] if self._at < len(self._at_work) else None

    def tick(self) -> None:
        if self._at_work:
            self.draw()

    def draw(self) -> None:
        had_focus = self.has_focus
        self.display = bool(self._at_work)
        if had_focus and not self.display:
            self.post_message(self.Left())
        if not self.query(KeyLine):
            return
        self.query_one(".items", Static).update(self._lines())
        keys = self.query_one(KeyLine)
        keys.show([Key("X", words_docks.Processes.STOP, self.action_stop)] if self._can_stop() else [])
        keys.display = bool(keys.keys)

    def _lines(self) -> Content:
        first = max(0, min(self._at - SHOWN + 1 if self.has_focus else 0, len(self._at_work) - SHOWN))
        shown = list(enumerate(self._at_work))[first : first + SHOWN]
        lines = [self._line(at, process) for at, process in shown]
        if (left := len(self._at_work) - first - len(shown)) > 0:
            lines.append(Content.styled(f"  {words_docks.more(left)}", "$ink-faint"))
        return Content("\n").join(lines)

    def _line(self, at: int, process: Process) -> Content:
        here = self.has_focus and at == self._at
        began = process.started_at
        state = words_docks.Processes.STOPPING if process.id in self._stopping else words_docks.Processes.RUNNING
        since = words.elapsed(self._clock.now_ms() - began) if began is not None else None
        return Content.assemble(
            ("▸ " if here else "  ", "bold $live"),
            (one_line(" ".join(process.command.split())), "bold $ink" if here else "$ink"),
            (f"  {words.join(state, since)}", "$ink-faint"),
        ).stylize(Style.from_meta({"process": at}))

    def watch_has_focus(self, has_focus: bool) -> None:
        # Not `on_focus`: that is called before the focus counts as here, and would draw what was.
        super().watch_has_focus(has_focus)
        self.draw()

    def on_click(self, event: events.Click) -> None:
        at = event.style.meta.get("process")
        if isinstance(at, int):
            self._at = at
            self.draw()

    # -- what can be done with one

    def _can_stop(self) -> bool:
        return self.has_focus and self.process is not None and self.process.id not in self._stopping

    def action_move(self, by: int) -> None:
        self._at = max(0, min(len(self._at_work) - 1, self._at + by))
        self.draw()

    def action_stop(self) -> None:
        process = self.process
        if process is None or not self._can_stop():
            return

        def refused(why: str) -> None:
            self._stopping.discard(process.id)
            self.post_message(Say(why, is_trouble=True))
            self.draw()

        self._stopping.add(process.id)
        self.post_message(Order(self._conversation, StopProcess(process=process.id), refused=refused))
        self.draw()

    def action_leave(self) -> None:
        self.post_message(self.Left())
