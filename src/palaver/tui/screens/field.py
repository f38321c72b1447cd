"""A screen with a field and what fits it below: one writes, the arrows move through the rows, Enter takes the chosen one.

The base of the palette and of the search. The field keeps the focus, so that one can go on writing at any time.
"""

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.widgets import Input, OptionList

from palaver.tui.screens.frame import Sheet, selected_id

_MOVES = {"up": "cursor_up", "down": "cursor_down", "pageup": "page_up", "pagedown": "page_down"}


class FieldSheet(Sheet):
    PLACEHOLDER: ClassVar[str] = ""

    def compose_body(self) -> ComposeResult:
        yield Input(placeholder=self.PLACEHOLDER)
        yield OptionList()

    def on_mount(self) -> None:
        self.listed.can_focus = False
        self.query_one(Input).focus()

    @property
    def typed(self) -> str:
        return self.query_one(Input).value.strip()

    @property
    def listed(self) -> OptionList:
        return self.query_one(OptionList)

    def look(self) -> None:
        """Something else is written: show what fits it."""
        raise NotImplementedError

    def take(self, chosen: str) -> None:
        """The row with this id was chosen."""
        raise NotImplementedError

    def take_chosen(self) -> None:
        if chosen := selected_id(self.listed):
            self.take(chosen)

    def on_key(self, event: events.Key) -> None:
        if event.key in _MOVES:
            event.stop()
            event.prevent_default()
            getattr(self.listed, f"action_{_MOVES[event.key]}")()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.look()

    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    def _submitted(self, event: Input.Submitted | OptionList.OptionSelected) -> None:
        event.stop()
        self.take_chosen()
