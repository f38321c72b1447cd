"""Private temporary folders, one for each conversation: what its sandboxed commands find as /tmp.

Held by the shell tool. A later command of a conversation finds what an earlier one left, and no other conversation does; what
the rest of the machine keeps in /tmp (sockets, other programs' files) is out of reach. All lie in one folder that is removed
with the server, or by the next server when this one was killed (`locked_folder.py`).
"""

import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from palaver.tools.shell.locked_folder import locked_folder

KEPT_LIMIT = 64
"""Conversations whose files are kept while none of their commands runs; of more, those unused for longest are removed."""


class TemporaryFolders:
    def __init__(self) -> None:
        self._stack = ExitStack()
        self._base: Path | None = None
        self._folders: dict[str, Path] = {}
        """By conversation, the one used last at the end."""
        self._users: dict[str, int] = {}
        # Commands run in the loop, looks at the working tree beside it.
        self._lock = threading.Lock()
        # A shell has no end of its own: its folders go with it, or with the process.
        weakref.finalize(self, self._stack.close)

    @contextmanager
    def use(self, conversation: str) -> Iterator[Path]:
        """The folder of a conversation, for the length of a command. Raises OSError where none can be made."""
        with self._lock:
            folder = self._open_folder(conversation)
            self._users[conversation] = self._users.get(conversation, 0) + 1
        try:
            yield folder
        finally:
            with self._lock:
                self._users[conversation] -= 1
                if not self._users[conversation]:
                    del self._users[conversation]
                unused = [name for name in self._folders if name not in self._users]
                removed = [self._folders.pop(name) for name in unused[: max(0, len(unused) - KEPT_LIMIT)]]
            for one in removed:
                shutil.rmtree(one, ignore_errors=True)

    def base(self) -> Path:
        """Where all of them lie: hidden from every command but for its own. Raises OSError where it cannot be made."""
        with self._lock:
            return self._open_base()

    def _open_base(self) -> Path:
        # Removed behind our back (a cleaner of temporary folders), it is made anew under another name: whoever makes the old
        # name in a shared folder could look into it.
        if self._base is None or not self._base.is_dir():
            self._base = self._stack.enter_context(locked_folder()).resolve()
            self._folders.clear()
        return self._base

    def _open_folder(self, conversation: str) -> Path:
        base = self._open_base()
        folder = self._folders.pop(conversation, None)
        if folder is None or not folder.is_dir():
            folder = Path(tempfile.mkdtemp(dir=base))
            # As /tmp itself; nobody else comes through the folder around it.
            folder.chmod(0o1777)
        self._folders[conversation] = folder
        return folder
