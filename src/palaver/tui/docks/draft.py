"""What the server has of the words that are being written, as far as is known here. Pure.

Held by the composer. A draft that was told to the server comes back from it; until then it is not taken for somebody else's.
"""

from palaver.schema.commands import ClearDraft, SetDraft
from palaver.tui.text.safe import prose

OWN_DRAFTS = 8
"""More than can be on their way at once."""


class Draft:
    def __init__(self, saved: str = "") -> None:
        self._saved = saved
        self._told: list[str] = []

    def is_saved(self, text: str) -> bool:
        return text == prose(self._saved)

    def save(self, text: str) -> SetDraft | ClearDraft | None:
        """What to tell the server; None: it knows."""
        if self.is_saved(text):
            return None
        self._saved = text
        self._told = [*self._told[-OWN_DRAFTS:], text]
        return SetDraft(text=text) if text else ClearDraft()

    def heard(self, draft: str, text: str | None) -> bool:
        """Whether it changed on another device and is to be shown: what is being written here is never replaced.

        `text` is what stands there; None: not a draft.
        """
        if draft in self._told:
            del self._told[: self._told.index(draft) + 1]
            return False
        if text is None or not self.is_saved(text):
            return False
        self._saved = draft
        return True
