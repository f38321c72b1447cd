"""The question at the end, where the server was started for this terminal: keep it running, or stop it."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from palaver.tui.docks.keyline import Key, KeyLine
from palaver.tui.text import rows


class Leaving(ModalScreen[str]):
    DEFAULT_CSS = """
    Leaving {
        align: center middle;
        & > Vertical { width: 64; max-width: 90%; height: auto; padding: 1 2; background: $raised; border: round $line-strong; }
        .heading { text-style: bold; color: $ink; }
        .body { color: $ink-soft; margin: 1 0; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "choose('keep')", show=False),
        Binding("s", "choose('stop')", show=False),
        Binding("escape", "choose('')", show=False),
    ]

    def __init__(self, at_work: int) -> None:
        super().__init__()
        self._at_work = at_work

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(rows.LEAVE_HEADING), classes="heading")
            yield Static(Content(rows.leave_body(self._at_work)), classes="body")
            yield KeyLine(
                [
                    Key("K", rows.LEAVE_KEEP, lambda: self.dismiss("keep")),
                    Key("S", rows.LEAVE_STOP, lambda: self.dismiss("stop")),
                    Key("Esc", rows.LEAVE_STAY, lambda: self.dismiss("")),
                ]
            )

    def action_choose(self, choice: str) -> None:
        _ = self.dismiss(choice)
