"""The text field of the composer: it sorts keys into text and what is not text, and leaves the rest of the screen its own."""

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import TextArea

NEW_LINE = ("ctrl+j", "shift+enter", "alt+enter")
STEER = ("ctrl+s", "ctrl+enter")
_ELSEWHERE = frozenset(("f6", "f7", "ctrl+k", "pageup", "pagedown"))
"""Keys of a text field that mean something else on this screen."""


class Prompt(TextArea, inherit_bindings=False):
    """The text itself. It only sorts keys; what they do is the composer's."""

    BINDINGS: ClassVar[list[BindingType]] = [
        binding
        for binding in TextArea.BINDINGS
        if isinstance(binding, Binding) and not _ELSEWHERE.intersection(binding.key.split(","))
    ]

    pressed: Callable[[str], None] = staticmethod(lambda key: None)
    """Takes a key that is not text, before the next one is read: what is typed on after Enter is another message."""
    pasted: Callable[[str], None] = staticmethod(lambda text: None)

    is_choosing = False
    """A list of suggestions is open: arrows and Tab are its own."""

    @property
    def is_blank(self) -> bool:
        return self.text == ""

    @property
    def is_at_start(self) -> bool:
        """Nothing stands before the cursor that could be taken away."""
        return self.selection.is_empty and self.cursor_location == (0, 0)

    async def _on_key(self, event: events.Key) -> None:
        key = event.key
        taken = key in ("enter", *STEER)
        taken = taken or (self.is_choosing and key in ("up", "down", "tab", "escape"))
        taken = taken or (key == "up" and self.is_blank)
        taken = taken or (key == "backspace" and self.is_at_start)
        if taken or key in NEW_LINE:
            event.stop()
            event.prevent_default()
            if taken:
                self.pressed(key)
            elif not self.read_only:
                self.insert("\n")
        elif not key.startswith("alt+"):
            await super()._on_key(event)
        else:
            # Alt with a letter is a key, whatever letter it carries.
            event.prevent_default()

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        if not self.read_only:
            self.pasted(event.text)
