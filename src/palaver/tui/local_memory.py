"""What this terminal remembers between two starts: how far each conversation was read, the theme, and its own name.

A small file beside the rest of a person's Palaver. Losing it loses nothing but "new since you left"; what cannot be read or
written is passed over.
"""

from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Struct

from palaver.regular_file import read_regular

KEPT = 500
"""Whoever opened more conversations than this has long seen the oldest."""


class _Kept(Struct):
    seen: dict[str, int] = {}
    theme: str | None = None
    last: str | None = None
    client: str | None = None


class Remembered:
    def __init__(self, path: Path | None) -> None:
        """None: nothing outlives this run."""
        self._path = path
        self._kept = _Kept()
        if path is not None:
            with suppress(OSError, msgspec.MsgspecError):
                self._kept = msgspec.json.decode(read_regular(path), type=_Kept)

    @property
    def theme(self) -> str | None:
        return self._kept.theme

    def choose_theme(self, theme: str) -> None:
        self._kept.theme = theme
        self.save()

    @property
    def client_name(self) -> str:
        """What this terminal is called in the log, the same at every start: what was done here stays "by you"."""
        known = self._kept.client
        if not known or not known.isascii() or not known.isprintable():
            known = self._kept.client = str(uuid4())
            self.save()
        return known

    @property
    def last_conversation(self) -> str | None:
        return self._kept.last

    def last_read_seq(self, conversation: str) -> int | None:
        """How far it was read here; None: never opened here."""
        return self._kept.seen.get(conversation)

    def mark(self, conversation: str, seq: int) -> None:
        """Kept in memory until `save`: it changes with every event."""
        self._kept.seen.pop(conversation, None)
        self._kept.seen[conversation] = seq
        self._kept.last = conversation

    def save(self) -> None:
        if self._path is None:
            return
        for conversation in list(self._kept.seen)[:-KEPT]:
            del self._kept.seen[conversation]
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_bytes(msgspec.json.encode(self._kept))
