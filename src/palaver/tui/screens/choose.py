"""Small boxes over the conversation: choose a mode, give a title, say yes to something that cannot be undone."""

from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Input, Static

from palaver.schema.commands import Command, DeleteConversation, SetParams, UpdateConversation
from palaver.schema.view import State
from palaver.tui.docks.choices import Choice, Choices
from palaver.tui.docks.keyline import Key
from palaver.tui.intents import Order
from palaver.tui.screens.frame import Sheet
from palaver.tui.text import words
from palaver.tui.text.safe import one_line, prose
from palaver.tui.text.screens import Choose, Listed

MODES: Final = ("plan", "ask", "accept_edits", "auto", "full")


class Box(Sheet):
    """Sends one command and closes when the server took it; a refusal is said in it."""

    SHAPE = "is-box"

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state

    def order(self, command: Command) -> None:
        self.post_message(
            Order(self.state.conversation, command, accepted=lambda _: self._take(), refused=self.refused)
        )

    def _take(self) -> None:
        if self.is_attached:
            self.action_close()


class ChooseMode(Box):
    LABEL = Choose.MODE

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._is_asking = False

    def compose_body(self) -> ComposeResult:
        mode = self.state.params.get("mode", "ask")
        chosen = [MODES.index(mode)] if mode in MODES else []
        yield Choices([Choice(words.Modes.NAMES[one], words.Modes.HINTS[one]) for one in MODES], chosen=chosen)

    def on_mount(self) -> None:
        self.query_one(Choices).focus()

    def keys(self) -> list[Key]:
        return [Key("Enter", Choose.FULL_YES if self._is_asking else Choose.TAKE)]

    @on(Choices.Changed)
    def _on_change(self, event: Choices.Changed) -> None:
        event.stop()
        if self._is_asking:
            self._is_asking = False
            self.say("")
            self.retell()

    @on(Choices.Ready)
    def _ready(self, event: Choices.Ready) -> None:
        event.stop()
        mode = MODES[event.choices.chosen[0]]
        if mode == "full" and not self._is_asking and self.state.params.get("mode") != "full":
            # Everything else is one key away from being taken back; this is not.
            self._is_asking = True
            self.call_after_refresh(self._ask)
            return
        self.order(SetParams(patch={"mode": mode}))

    def _ask(self) -> None:
        self._is_asking = True
        self.say(f"{Choose.FULL} {Choose.FULL_BODY}", is_bad=True)
        self.retell()


class Rename(Box):
    LABEL = Choose.RENAME

    def compose_body(self) -> ComposeResult:
        yield Input(prose(self.state.title), placeholder=Listed.RENAME_LABEL, select_on_focus=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def keys(self) -> list[Key]:
        return [Key("Enter", Choose.SAVE)]

    @on(Input.Submitted)
    def _on_submit(self, event: Input.Submitted) -> None:
        event.stop()
        if title := event.value.strip():
            self.order(UpdateConversation(title=title))


class ConfirmDelete(Box):
    LABEL = Listed.DELETE_HEADING
    BINDINGS = [Binding("y", "yes", show=False)]

    def compose_body(self) -> ComposeResult:
        title = one_line(self.state.title) or Listed.UNTITLED
        yield Static(Content(Listed.delete_asked(title)))

    def keys(self) -> list[Key]:
        return [Key("Y", Listed.DELETE_YES, self.action_yes)]

    def action_yes(self) -> None:
        self.order(DeleteConversation())
