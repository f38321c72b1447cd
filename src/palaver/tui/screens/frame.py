"""What every screen of the terminal has: a title, a body, a line that says how it went, and the keys. Esc closes it.

A screen reads through the client it is given; what changes something goes to the app as an intent. A failed reading is said
in a sentence with what to do, and what was read before stays.
"""

from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import Worker

from palaver.errors import PalaverError
from palaver.tui.background import Work, begin, defect_in
from palaver.tui.docks.keyline import Key, KeyLine, offer_keys
from palaver.tui.text import screens, words
from palaver.tui.text.safe import visible


class Sheet(ModalScreen[None]):
    DEFAULT_CSS = """
    Sheet {
        background: $paper 60%; color: $ink;
        .sheet { background: $paper; width: 100%; height: 100%; padding: 0 1; }
        .heading { height: 1; text-style: bold; color: $ink; border-bottom: none; }
        .lead { height: auto; color: $ink-soft; }
        .said { height: auto; color: $ink-soft; }
        .said.is-bad { color: $bad; }
        .keys { dock: bottom; height: auto; border-top: solid $line; background: $paper; }
        OptionList {
            height: 1fr; border: none; padding: 0; background: $paper; scrollbar-size-vertical: 1;
            background-tint: $paper 0%;
            &:focus { border: none; background-tint: $paper 0%; }
            &.is-empty { height: 1; }
            & > .option-list--option-disabled { color: $ink-faint; text-style: bold; }
        }
        Input { border: none; height: 1; padding: 0 1; background: $panel-strong; &:focus { border: none; } }
    }
    Sheet.is-left { align: left top; }
    Sheet.is-left .sheet { width: 46; max-width: 100%; border-right: outer $line-strong; background: $paper-side; }
    Sheet.is-left OptionList, Sheet.is-left .keys { background: $paper-side; }
    Sheet.is-box { align: center middle; }
    Sheet.is-box .sheet {
        width: 72; max-width: 100%; height: auto; max-height: 90%; border: round $line-strong; padding: 0 1;
    }
    Sheet.is-box OptionList { height: auto; max-height: 60vh; }
    Sheet.is-box .keys { dock: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", show=False)]

    LABEL: ClassVar[str] = ""
    LEAD: ClassVar[str] = ""
    SHAPE: ClassVar[str] = "is-full"
    WRITING: ClassVar[frozenset[str]] = frozenset()
    """Actions that change something: who may only read has no key for them."""

    may_write = True

    def __init__(self) -> None:
        super().__init__(classes=self.SHAPE)

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(Content(self.LABEL), classes="heading")
            lead = Static(Content(self.LEAD), classes="lead")
            lead.display = bool(self.LEAD)
            yield lead
            yield from self.compose_body()
            said = Static(classes="said")
            said.display = False
            yield said
            yield KeyLine(classes="keys")

    def on_mount(self) -> None:
        # Textual calls this after the screen's own `on_mount`.
        self.retell()

    def compose_body(self) -> ComposeResult:
        yield from ()

    def keys(self) -> list[Key]:
        """Those of this screen; closing is added."""
        return []

    def retell(self) -> None:
        closing = Key("Esc", screens.CLOSE, self.action_close)
        self.query_one(".keys", KeyLine).show([*offer_keys(self.keys(), may_write=self.may_write), closing])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        return self.may_write or action not in self.WRITING

    def title_is(self, title: str) -> None:
        self.query_one(".heading", Static).update(Content(visible(title)))

    def say(self, sentence: str, *, is_bad: bool = False) -> None:
        """How it stands: loading, empty and what to do, or what went wrong and what to do."""
        said = self.query_one(".said", Static)
        said.update(Content(visible(words.in_typographic_quotes(sentence))))
        said.set_class(is_bad, "is-bad")
        said.display = bool(sentence)

    def refused(self, sentence: str) -> None:
        """For intents: the server's no is said here, if one still looks."""
        if self.is_attached:
            self.say(sentence, is_bad=True)

    def read(self, reading: Work, group: str = "read") -> None:
        """Run something that asks the server; the newest of a group wins, a failure is said."""
        begin(self, partial(self._guard, reading), group, newest=True)

    async def _guard(self, reading: Work) -> None:
        try:
            await reading()
        except PalaverError as failure:
            self.say(failure.message, is_bad=True)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if defect := defect_in(event):
            self.log.error(event.worker.error)
            self.post_message(defect)

    def action_close(self) -> None:
        _ = self.dismiss()


def fill(listed: OptionList, options: list[Option]) -> None:
    """New rows; the cursor stays on its row, or else where it was."""
    at = listed.highlighted
    chosen = listed.get_option_at_index(at).id if at is not None else None
    listed.clear_options()
    listed.add_options(options)
    # What is said of an empty list stands where its rows would.
    listed.set_class(not options, "is-empty")
    places = [place for place, option in enumerate(options) if not option.disabled]
    if not places:
        return
    same = next((place for place in places if chosen is not None and options[place].id == chosen), None)
    listed.highlighted = same if same is not None else min(places, key=lambda place: abs(place - (at or 0)))


def heading(words: str) -> Option:
    """A row that only names those below it."""
    return Option(Content.styled(words, "bold $ink-faint"), disabled=True)


def selected_id(listed: OptionList) -> str | None:
    return None if listed.highlighted is None else listed.get_option_at_index(listed.highlighted).id
