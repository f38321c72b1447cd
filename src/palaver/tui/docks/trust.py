"""Line above the composer that says which settings of the project's folder are off for the program of this agent.

Mounted once; told with `show` after the server was asked. Reviewing and trusting is `tui/screens/trust.py`.
"""

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from palaver.client.projects import ProgramFolderInfo
from palaver.tui.docks.keyline import Key
from palaver.tui.docks.strip import Strip
from palaver.tui.intents import Act
from palaver.tui.text import docks, words
from palaver.tui.text.safe import one_line


@dataclass(frozen=True, slots=True)
class SettingsOff:
    """What a program would read in a folder and does not."""

    project: str
    settings: ProgramFolderInfo

    @property
    def id(self) -> str:
        """Other files are another matter: what was kept off says nothing of them."""
        return f"{self.settings.program} {self.settings.hash} {self.project}"


class TrustStrip(Strip[SettingsOff]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("r,enter", "review", show=False)]

    def __init__(self) -> None:
        super().__init__()
        self._kept_off: set[str] = set()

    def show(self, conversation: str, off: SettingsOff | None) -> None:
        shown = off is not None and off.id not in self._kept_off
        self.hold(conversation, (off,) if off is not None and shown else ())

    def keep_off(self, off: SettingsOff) -> None:
        self._kept_off.add(off.id)
        self.show(self.conversation, None)

    def line(self, item: SettingsOff, at: int, *, here: bool) -> Content:
        summary = item.settings.summary or words.count(len(item.settings.paths), "file")
        way = docks.Trust.REVIEW if not here else ""
        return Content.assemble(
            (f"{docks.Trust.OFF}: {one_line(summary)}", "$ink" if here else "$ink-soft"),
            (f" · {way}" if way else "", "$ink-faint"),
        )

    def keys(self) -> list[Key]:
        return [Key("R", docks.Trust.REVIEW_KEY, self.action_review)] if self.has_focus and self.items else []

    def action_review(self) -> None:
        self.post_message(Act("trust"))
