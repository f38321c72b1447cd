"""The list of a project's conversations as `<project>/chat-sessions.jsonl`, kept current for programs that read it.

A task of the server, made by `app.py` where the setting `sessions_file` asks for it: it follows the conversation list and
brings the file of a project up to date a moment after one of its conversations changed. Lines that are not ours are kept.

Must never: write into a folder that no conversation is about, follow a link in its place or in the file's, or leave half a
file.
"""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from palaver.clock import Clock, Ids
from palaver.conversation.folders import ProjectFolders
from palaver.conversation.imports import id_of_import
from palaver.conversation.project_files.list_watch import ROWS_A_LOOK, ListWatch
from palaver.conversation.project_files.trajectories import ForeignFile, is_a_place, open_place, replace_in
from palaver.errors import CallerError
from palaver.feed.feed import Feed
from palaver.history.sessions import CHATS_NAME, merge_chat_sessions
from palaver.log.base import EventLog
from palaver.schema.view import Listing

FILE_BYTES = 64 << 20
"""A file of more is not ours."""


class SessionsFiles:
    def __init__(
        self, folders: ProjectFolders, log: EventLog, feed: Feed, clock: Clock, ids: Ids, never_in: Sequence[Path]
    ) -> None:
        """`never_in`: folders that are no projects, such as a person's home; nothing is written into them or above them."""
        self._folders = folders
        self._log = log
        self._ids = ids
        self._never_in = [folder.resolve() for folder in never_in]
        self._changed: dict[str, set[str]] = {}
        """The projects whose file is to be looked at, and the conversations that were deleted in each."""
        self._watch = ListWatch(log, feed, clock, "lists of sessions", self._note)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Entered before the conversations run and left after they rest, so that their last changes are written too."""
        self._changed = {folder.project: set() for folder in await self._log.folders()}
        async with self._watch.running(self._write_changed, self.catch_up):
            yield

    async def catch_up(self) -> None:
        """Bring every file up to date whose project changed."""
        await self._watch.look()
        await self._write_changed()

    def _note(self, row: Listing) -> None:
        if row.project is not None:
            deleted = self._changed.setdefault(row.project, set())
            deleted |= {row.id} if row.deleted else set()

    async def _write_changed(self) -> bool:
        for project in list(self._changed):
            await self._write(project, self._changed[project])
            del self._changed[project]
        return False

    async def _write(self, project: str, deleted: set[str]) -> None:
        rows: list[Listing] = []
        cursor: str | None = None
        while True:
            page = await self._log.list(limit=ROWS_A_LOOK, cursor=cursor, project=project, archived=None)
            rows += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        try:
            if await asyncio.to_thread(is_a_place, Path(project), self._never_in):
                # As a turn does: what an agent put in the folder's place since then is not written to.
                with await self._folders.enter(project) as held:
                    await asyncio.to_thread(write_list, held.path, rows, deleted, f".{CHATS_NAME}.{self._ids.new()}")
        except (CallerError, OSError, ForeignFile) as failure:
            self._watch.complain(project, failure)


# -- the file; all of this runs beside the loop


def write_list(project: Path, rows: Sequence[Listing], deleted: set[str], temporary: str) -> bool:
    """False: there was nothing to write. Raises OSError, or ForeignFile when something else lies in its place."""
    with open_place(project, ()) as folder:
        known, mode = _read(folder)
        body = merge_chat_sessions(known or b"", rows, deleted, lambda session: id_of_import("claude", session))
        if body == (known or b""):
            return False
        replace_in(folder, CHATS_NAME, temporary, body, mode)
    return True


def _read(folder: int) -> tuple[bytes | None, int]:
    """What it says now, if it is there, and who may read it."""
    try:
        handle = os.open(CHATS_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None, 0o600
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > FILE_BYTES:
            raise ForeignFile(f"{CHATS_NAME} is no list of sessions; it is left as it is.")
        return file.read(FILE_BYTES), stat.S_IMODE(found.st_mode)
