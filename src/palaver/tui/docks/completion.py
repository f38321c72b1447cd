"""What a half-written word may become: /commands at the beginning, @files anywhere. The words are pure, the list is a widget.

Used by the composer alone. Files come from whoever built it (`FileSource`); this never asks a server for anything.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.widgets import Static

from palaver.tui.intents import ActionName
from palaver.tui.text.safe import one_line

SHOWN = 6
"""Rows; more would hide what is being answered."""

FileSource = Callable[[str], Awaitable[Sequence[str]]]
"""The entries of a folder of the project, folders ending in a slash. The folder is "" or ends in a slash itself."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    word: str
    """Without the slash."""
    what: str
    action: ActionName


CommandSource = Callable[[], Sequence[SlashCommand]]
"""The commands that make sense now."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    text: str
    """What stands there once it is taken."""
    more: str = ""
    action: ActionName | None = None


def slash_word(text: str) -> str | None:
    """The command that is being written: only when it is all that stands there."""
    return text[1:] if text.startswith("/") and not any(sign.isspace() for sign in text) else None


def at_word(line: str, column: int) -> tuple[int, str] | None:
    """Where a file's name began before the cursor, and what of it is written."""
    before = line[:column]
    start = before.rfind("@")
    if start < 0 or (start > 0 and not before[start - 1].isspace()):
        return None
    written = before[start + 1 :]
    return None if any(sign.isspace() for sign in written) else (start, written)


def commands_like(written: str, commands: Sequence[SlashCommand]) -> list[Suggestion]:
    """Those that begin so first, then those that contain it."""
    wanted = written.lower()
    matching = [command for command in commands if wanted in command.word]
    matching.sort(key=lambda command: not command.word.startswith(wanted))
    return [Suggestion(f"/{command.word}", command.what, command.action) for command in matching]


def folder_of(written: str) -> str:
    """ "src/pa" is looked for in "src/"."""
    return written[: written.rfind("/") + 1]


def files_like(written: str, entries: Sequence[str]) -> list[Suggestion]:
    """The folder's entries that begin like the last part; hidden ones only when a dot is written."""
    folder, last = folder_of(written), written[written.rfind("/") + 1 :].lower()
    wanted = [entry for entry in entries if entry.startswith(".") <= last.startswith(".")]
    found = [entry for entry in wanted if entry.lower().startswith(last)] or [
        entry for entry in wanted if last in entry.lower()
    ]
    return [Suggestion(f"{folder}{entry}") for entry in found]


class Suggestions(Static):
    """The list above the prompt. Shown only while there is something to choose."""

    DEFAULT_CSS = """
    Suggestions {
        height: auto; padding: 0 1; margin: 0 0 0 2; background: $panel-strong; color: $ink;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._items: tuple[Suggestion, ...] = ()
        self._at = 0
        self.display = False

    @property
    def chosen(self) -> Suggestion | None:
        return self._items[self._at] if self._items else None

    def offer(self, items: Sequence[Suggestion]) -> None:
        self._items, self._at = tuple(items), 0
        self.display = bool(self._items)
        self.refresh(layout=True)

    def move(self, by: int) -> None:
        if self._items:
            self._at = (self._at + by) % len(self._items)
            self.refresh()

    def render(self) -> Content:
        first = max(0, min(self._at - SHOWN // 2, len(self._items) - SHOWN))
        lines = []
        for at, item in list(enumerate(self._items))[first : first + SHOWN]:
            here = at == self._at
            lines.append(
                Content.assemble(
                    ("▸ " if here else "  ", "bold $live"),
                    (one_line(item.text), "bold" if here else ""),
                    (f"  {item.more}" if item.more else "", "$ink-faint"),
                )
            )
        return Content("\n").join(lines)
