"""The agent a person chose last: what a client offers first for the next conversation.

Told by faces when somebody begins a conversation or chooses an agent for a message, and read by the list of agents. One word
in the data directory: a crash may lose the newest choice, and nothing else.
"""

import asyncio
from pathlib import Path

from palaver.journal import Journal
from palaver.regular_file import read_regular
from palaver.tools.files.atomic_file import replace_file

logger = Journal(__name__)


class LastUsed:
    def __init__(self, path: Path | None = None) -> None:
        """Without a `path` it is forgotten with the process."""
        self._path = path
        self._agent = _read(path) if path else None

    @property
    def agent(self) -> str | None:
        return self._agent

    async def is_now(self, agent: str) -> None:
        if agent == self._agent:
            return
        self._agent = agent
        if self._path is None:
            return
        try:
            await asyncio.to_thread(replace_file, self._path, f"{agent}\n".encode())
        except OSError as failure:
            # Nobody's message fails for it.
            logger.warning("the last choice of an agent could not be kept", reason=str(failure))


def _read(path: Path) -> str | None:
    try:
        return read_regular(path).decode().strip() or None
    except (OSError, UnicodeDecodeError):
        return None
