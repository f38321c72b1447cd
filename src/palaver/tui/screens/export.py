"""A conversation as a file: in which format, and where. Opened from the command list.

Reads through the client and writes on the machine of this terminal; changes nothing on the server.
"""

from functools import partial
from pathlib import Path
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from palaver.client.client import Client
from palaver.errors import PalaverError
from palaver.schema.view import State
from palaver.tui.docks.choices import Choice, Choices
from palaver.tui.docks.keyline import Key
from palaver.tui.save_file import Format, name_for, save
from palaver.tui.screens.frame import Sheet
from palaver.tui.text import words
from palaver.tui.text.screens import Export

FORMATS: Final[tuple[Format, ...]] = ("html", "markdown", "jsonl", "trajectory")


class ExportConversation(Sheet):
    DEFAULT_CSS = """
    ExportConversation .label { height: 1; color: $ink-faint; text-style: bold; margin-top: 1; }
    """
    LABEL = Export.LABEL
    LEAD = Export.LEAD
    SHAPE = "is-box"

    def __init__(self, client: Client, state: State, folder: Path) -> None:
        super().__init__()
        self._client = client
        self._state = state
        self._folder = folder
        self._is_saving = False

    def compose_body(self) -> ComposeResult:
        yield Choices([Choice(*Export.FORMATS[format]) for format in FORMATS], chosen=[0])
        yield Static(Content(Export.FILE), classes="label")
        yield Input(self._path_for("html"), select_on_focus=False)

    def on_mount(self) -> None:
        self.query_one(Choices).focus()

    def _path_for(self, format: Format) -> str:
        return str(self._folder / name_for(self._state.title, format))

    @property
    def _format(self) -> Format:
        return FORMATS[self.query_one(Choices).chosen[0]]

    def keys(self) -> list[Key]:
        return [Key("Enter", Export.SAVE, self.action_save), Key("Tab", Export.NEXT, self.focus_next)]

    @on(Choices.Changed)
    def _on_change(self, event: Choices.Changed) -> None:
        event.stop()
        field = self.query_one(Input)
        # A name of one's own stays; only its ending is the format's.
        proposed = field.value in {self._path_for(format) for format in FORMATS}
        named = Path(field.value).with_suffix(Path(self._path_for(self._format)).suffix) if field.value else None
        field.value = self._path_for(self._format) if proposed or named is None else str(named)
        self.say("")

    @on(Choices.Ready)
    @on(Input.Submitted)
    def _ready(self, event: Choices.Ready | Input.Submitted) -> None:
        event.stop()
        self.action_save()

    def action_save(self) -> None:
        path = Path(self.query_one(Input).value.strip()).expanduser()
        if self._is_saving or not path.name:
            return
        self._is_saving = True
        self.say(Export.preparing(0))
        self.read(partial(self._save, self._format, path), "save")

    async def _save(self, format: Format, path: Path) -> None:
        try:
            size_bytes = await save(self._client, self._state.conversation, format, path, self._came_to)
        except FileExistsError:
            self.say(Export.THERE_ALREADY, is_bad=True)
        except OSError as failure:
            self.say(Export.unwritten(failure.strerror or str(failure)), is_bad=True)
        except PalaverError as failure:
            self.say(f"{Export.FAILED} {words.in_typographic_quotes(failure.message)}", is_bad=True)
        else:
            self.say(Export.saved(words.size(size_bytes), str(path)))
        finally:
            self._is_saving = False

    def _came_to(self, size_bytes: int) -> None:
        self.say(Export.preparing(size_bytes))
