"""Every file that changed in a conversation, and the changes of one in full. Nothing is read: it is all in the view."""

from typing import ClassVar

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from palaver.schema.view import FileChange, State, ToolBlock
from palaver.tui.docks.difftext import diff_content
from palaver.tui.docks.keyline import Key
from palaver.tui.intents import Copy
from palaver.tui.screens.frame import Sheet, fill, selected_id
from palaver.tui.text import rows, words
from palaver.tui.text.safe import visible
from palaver.tui.text.screens import Files
from palaver.tui.transcript.diffs import ChangedFile, DiffLine, by_file, parse_unified

SHOWN_LINES = 3_000
"""More of one change than anybody scrolls through; the patch holds all of it."""


def list_changed_files(state: State) -> list[ChangedFile]:
    """The view's list has no lines of what calls did: those are with the calls."""
    calls = [
        change
        for message in state.messages
        for block in message.blocks
        if isinstance(block, ToolBlock)
        for change in block.changes
    ]
    shown = {file.path: file for file in by_file(tuple(calls))}
    whole: list[FileChange] = []
    for file in state.files:
        parts = shown[file.path].parts if file.path in shown else ()
        whole += [replace(parts[0], kind=file.kind), *parts[1:]] if parts else [file]
    return by_file(tuple(whole))


def patch_of(file: ChangedFile) -> str:
    return "\n".join(part.diff.rstrip("\n") for part in file.parts if part.diff)


def file_row(file: ChangedFile) -> Content:
    return Content.assemble(
        (visible(file.path), "bold"),
        (f"  {kind}" if (kind := rows.CHANGE_KINDS[file.kind]) else "", "$ink-faint"),
        (f"  {words.Tool.stat(file.additions, 0)}" if file.additions else "", "$good"),
        (f"  {words.Tool.stat(0, file.deletions)}" if file.deletions else "", "$bad"),
    )


class ChangedFiles(Sheet):
    LABEL = Files.LABEL
    BINDINGS: ClassVar[list[BindingType]] = [Binding("c", "copy", show=False)]

    def __init__(self, state: State) -> None:
        super().__init__()
        self._files = list_changed_files(state)

    def compose_body(self) -> ComposeResult:
        yield OptionList()

    def on_mount(self) -> None:
        rows = self.query_one(OptionList)
        fill(rows, [Option(file_row(file), id=str(at)) for at, file in enumerate(self._files)])
        rows.focus()
        added, removed = (sum(getattr(file, name) for file in self._files) for name in ("additions", "deletions"))
        count = words.count(len(self._files), "file") if self._files else None
        self.title_is(words.join(Files.LABEL, count, words.Tool.stat(added, removed)))
        self.say("" if self._files else Files.EMPTY)

    def keys(self) -> list[Key]:
        if not self._files:
            return []
        return [Key("Enter", Files.DIFF, self._open), Key("C", Files.COPY, self.action_copy)]

    @property
    def _selected_file(self) -> ChangedFile | None:
        at = selected_id(self.query_one(OptionList))
        return None if at is None else self._files[int(at)]

    @on(OptionList.OptionSelected)
    def _on_select(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._open()

    def _open(self) -> None:
        if self._selected_file is not None:
            _ = self.app.push_screen(DiffScreen(self._selected_file))

    def action_copy(self) -> None:
        if patch := "\n".join(filter(None, map(patch_of, self._files))):
            self.post_message(Copy(f"{patch}\n"))


class DiffScreen(Sheet):
    """One file's changes, full screen."""

    DEFAULT_CSS = """
    DiffScreen VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
    DiffScreen #lines { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "copy", show=False),
        Binding("j", "jump(1)", show=False),
        Binding("k", "jump(-1)", show=False),
    ]

    def __init__(self, file: ChangedFile) -> None:
        super().__init__()
        self._file = file
        self._lines = _lines_of(file)

    def compose_body(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(diff_content(self._lines[:SHOWN_LINES]), id="lines")

    def on_mount(self) -> None:
        self.query_one(".heading", Static).update(file_row(self._file))
        self.query_one(VerticalScroll).focus()
        if not self._lines:
            self.say(Files.TOO_LARGE if any(part.blob for part in self._file.parts) else Files.NONE)
        elif (left := len(self._lines) - SHOWN_LINES) > 0:
            self.say(Files.cut(left))

    def keys(self) -> list[Key]:
        return [Key("J/K", Files.NEXT, lambda: self.action_jump(1)), Key("C", Files.COPY, self.action_copy)]

    def action_copy(self) -> None:
        if patch := patch_of(self._file):
            self.post_message(Copy(f"{patch}\n"))

    def action_jump(self, by: int) -> None:
        """To the next place where lines changed, or the one before."""
        body = self.query_one(VerticalScroll)
        starts = [at for at, line in enumerate(self._lines) if line.sign == "@"] or [0]
        here = round(body.scroll_y)
        ahead = [at for at in starts if at > here] if by > 0 else [at for at in reversed(starts) if at < here]
        body.scroll_to(y=ahead[0] if ahead else starts[-1 if by > 0 else 0], animate=False)


def _lines_of(file: ChangedFile) -> tuple[DiffLine, ...]:
    return tuple(line for part in file.parts if part.diff for line in parse_unified(part.diff))
