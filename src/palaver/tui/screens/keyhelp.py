"""Every key, by what one wants to do. Opened by F1, and by ? where nobody writes."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from palaver.tui.keys import ALTERNATIVES
from palaver.tui.screens.actions import KEYS
from palaver.tui.screens.frame import Sheet
from palaver.tui.text.screens import Actions, Keys

GROUPS: Final[tuple[tuple[str, tuple[tuple[str, str], ...]], ...]] = (
    (
        Keys.WRITING,
        (
            ("Enter", Keys.SEND),
            ("Ctrl+J · Alt+Enter", Keys.NEWLINE),
            ("Ctrl+S · Ctrl+Enter", Keys.STEER),
            ("↑", Keys.EDIT_QUEUED),
            ("Tab", Keys.COMPLETE),
            ("Ctrl+V", Keys.PASTE),
            ("Esc", Keys.ESCAPE),
            (KEYS["hold"], Keys.HOLD),
        ),
    ),
    (
        Keys.ANSWERING,
        (
            (f"Alt+1 · {ALTERNATIVES[1]}", Keys.ALLOW_ONCE),
            (f"Alt+2 · {ALTERNATIVES[2]}", Keys.ALLOW_SCOPE),
            (f"Alt+3 · {ALTERNATIVES[3]}", Keys.DENY),
            ("F6", Keys.INSIDE),
        ),
    ),
    (
        Keys.MOVING,
        (
            ("F6", Keys.REGIONS),
            ("Shift+F6", Keys.REGIONS_BACK),
            ("PgUp · PgDn", Keys.PAGE),
            ("J", Keys.NEXT_BLOCK),
            ("K", Keys.PREVIOUS_BLOCK),
            ("O", Keys.OPEN_BLOCK),
            ("W", Keys.WHOLE),
            ("E", Keys.RESEND),
            ("Y", Keys.COPY),
            ("G", Keys.END),
            ("Shift+G", Keys.START),
            ("I", Keys.WRITE),
        ),
    ),
    (
        Keys.WAITING,
        (
            ("↑ · ↓", Keys.CHOOSE),
            ("L · A", Keys.LET_GO),
            ("E", Keys.EDIT_ONE),
            ("D · U", Keys.REMOVE_ONE),
            ("S", Keys.STEER_ONE),
            ("Shift+↑ · Shift+↓", Keys.MOVE_ONE),
            ("X", Keys.STOP_ONE),
        ),
    ),
    (
        Keys.ANYWHERE,
        (
            *((KEYS[name], Actions.LABELS[name]) for name in ("palette", "list", "new", "find", "continue", "quit")),
            ("F1 · ?", Keys.HELP),
        ),
    ),
)
WIDTH = 23
"""The longest list of keys, and two blanks."""


class KeyHelp(Static):
    DEFAULT_CSS = """
    KeyHelp { height: auto; }
    """

    def __init__(self) -> None:
        super().__init__(help_content())


def help_content() -> Content:
    lines: list[Content] = []
    for heading, keys in GROUPS:
        lines += [*([Content("")] if lines else []), Content.styled(heading, "bold $ink-faint")]
        lines += [Content.assemble((key.ljust(WIDTH), "bold $ink"), (what, "$ink-soft")) for key, what in keys]
    return Content("\n").join(lines)


class KeyHelpScreen(Sheet):
    LABEL = Keys.LABEL
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1,question_mark", "close", show=False),
        Binding("up", "scroll(-1)", show=False),
        Binding("down", "scroll(1)", show=False),
        Binding("pageup", "scroll(-10)", show=False),
        Binding("pagedown", "scroll(10)", show=False),
    ]

    def compose_body(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            yield KeyHelp()

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)
