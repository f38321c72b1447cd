"""The list of suggestions of the composer, as the prompt is written: what to offer, and what becomes of the one that is taken.

Mounted by the composer, above its prompt. Files come from whoever built it; a list that comes too late is not waited for.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from textual.worker import Worker

from palaver.errors import PalaverError
from palaver.tui.background import begin, defect_in
from palaver.tui.docks.completion import (
    CommandSource,
    FileSource,
    Suggestion,
    Suggestions,
    at_word,
    commands_like,
    files_like,
    folder_of,
    slash_word,
)
from palaver.tui.docks.prompt import Prompt
from palaver.tui.intents import ActionName

FILES_S = 3.0
"""Names of files that come later than this are not waited for."""


class Completing(Suggestions):
    def __init__(self, prompt: Prompt, commands: CommandSource | None, files: FileSource | None) -> None:
        super().__init__()
        self._prompt = prompt
        self._commands = commands
        self._files = files
        self._entries: dict[str, list[str]] = {}

    def forget(self) -> None:
        """Another conversation works in another folder."""
        self._entries = {}

    def suggest(self) -> None:
        if self._commands is not None and (written := slash_word(self._prompt.text)) is not None:
            self._open(commands_like(written, self._commands()))
            return
        begun = self._find_start()
        if self._files is None or begun is None:
            self.close()
        elif (folder := folder_of(begun[1])) in self._entries:
            found = files_like(begun[1], self._entries[folder])
            self._open([] if found == [Suggestion(begun[1])] else found)
        else:
            begin(self, partial(self._look_into, self._files, folder), "files", newest=True)

    def _find_start(self) -> tuple[int, str] | None:
        row, column = self._prompt.cursor_location
        return at_word(self._prompt.document.get_line(row), column)

    async def _look_into(self, files: FileSource, folder: str) -> None:
        try:
            async with asyncio.timeout(FILES_S):
                self._entries[folder] = list(await files(folder))
        except (PalaverError, TimeoutError):
            self.close()
            return
        self.suggest()

    def _open(self, suggestions: Sequence[Suggestion]) -> None:
        self.offer(suggestions)
        self._prompt.is_choosing = bool(suggestions)

    def close(self) -> None:
        self._open(())

    def take(self) -> ActionName | None:
        """Puts the chosen one into the prompt; a command is told instead, and the prompt is empty again."""
        chosen = self.chosen
        self.close()
        if chosen is None:
            return None
        if chosen.action is not None:
            self._prompt.load_text("")
        elif (begun := self._find_start()) is not None:
            row, column = self._prompt.cursor_location
            ending = "" if chosen.text.endswith("/") else " "
            self._prompt.replace(f"@{chosen.text}{ending}", (row, begun[0]), (row, column))
        return chosen.action

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if defect := defect_in(event):
            self.log.error(event.worker.error)
            self.post_message(defect)
