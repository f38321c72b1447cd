"""The trajectory of each conversation beside the project it is about: `<project>/.palaver/trajectories/{id}.json`.

A task of the server, made by `app.py`: it follows the conversation list and writes a conversation down a moment after it came
to rest. It runs beside the turns and never holds one up; a folder that cannot be written is said once in the log. The files
are for other programs and for people. Nothing here reads them back but to keep what others wrote into them.

Must never: write over a file that is not this conversation's, follow a link out of the project, or leave half a file.
"""

import asyncio
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from palaver.clock import Clock, Ids
from palaver.conversation.directory import Directory
from palaver.conversation.project_files.list_watch import LOOK_AGAIN_S, PAUSE_S, ListWatch
from palaver.conversation.project_files.transcripts import with_whole_texts
from palaver.errors import CallerError, Invalid, LogError
from palaver.feed.feed import Feed
from palaver.history.parts import decode_document
from palaver.history.trajectory import document_of, keep_message_keys, unknown_keys
from palaver.journal import Journal
from palaver.log.base import EventLog
from palaver.schema.view import Listing, State
from palaver.tools.files.held_folder import open_folder
from palaver.tools.files.paths import lies_in_data

logger = Journal(__name__)

PLACE = (".palaver", "trajectories")
FOREIGN_PLACE = (".refact", "trajectories")
"""Where another program keeps files of the same shape; only read."""

REST_A_MESSAGE_S = 0.002
"""A long conversation takes longer to write down, so it is written down less often."""
FILE_BYTES = 64 << 20
"""A file of more is not ours."""


class Trajectories:
    def __init__(
        self, directory: Directory, log: EventLog, feed: Feed, clock: Clock, ids: Ids, never_in: Sequence[Path]
    ) -> None:
        """`never_in`: folders that are no projects, such as a person's home; nothing is written into them or above them."""
        self._directory = directory
        self._log = log
        self._clock = clock
        self._ids = ids
        self._never_in = [folder.resolve() for folder in never_in]
        self._due: dict[str, float] = {}
        self._watch = ListWatch(log, feed, clock, "trajectories", self._note)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Entered before the conversations run and left after they rest, so that their last turns are written too."""
        return self._watch.running(self._write_due, self.catch_up)

    async def catch_up(self) -> None:
        """Write down everything that rests and changed since."""
        await self._watch.look()
        self._due = dict.fromkeys(self._due, self._clock.monotonic_s())
        await self._write_due()

    async def check(self, conversation: str, project: Path) -> None:
        """Raises ForeignFile when what lies in the conversation's place is somebody else's."""
        await asyncio.to_thread(lambda: _check(project.resolve(), conversation))

    async def keep(self, conversation: str) -> None:
        """Write one down at once that somebody brought, also before anybody has gone on with it."""
        row = await self._log.listing(conversation)
        if row is not None and row.turn is None and row.project is not None:
            try:
                await self._write(row, Path(row.project), unspoken=True)
            except (CallerError, OSError, ForeignFile) as failure:
                self._watch.complain(row.project, failure)

    def _note(self, row: Listing) -> None:
        if row.turn is None and row.project is not None:
            rest_s = PAUSE_S + row.message_count * REST_A_MESSAGE_S
            self._due.setdefault(row.id, self._clock.monotonic_s() + rest_s)

    async def _write_due(self) -> bool:
        """Whether others are due later."""
        now_s = self._clock.monotonic_s()
        for conversation in [known for known, due_s in self._due.items() if due_s <= now_s]:
            del self._due[conversation]
            row = await self._log.listing(conversation)
            if row is None or row.turn is not None or row.project is None:
                continue  # It is at work again, and comes back when it rests.
            try:
                await self._write(row, Path(row.project))
            except (CallerError, OSError, ForeignFile) as failure:
                self._watch.complain(row.project, failure)
            except LogError:
                self._due[conversation] = now_s + LOOK_AGAIN_S
                raise
            except Exception:
                # A fault of ours must not keep the other conversations from being written down.
                logger.exception("a trajectory could not be written", conversation=conversation)
        return bool(self._due)

    async def _write(self, row: Listing, project: Path, *, unspoken: bool = False) -> None:
        if not await asyncio.to_thread(is_a_place, project, self._never_in):
            return
        # As a turn does: what an agent put in the folder's place since then is not written to.
        with await self._directory.folders.enter(str(project)) as held:
            await self._write_in(held.path, row, unspoken)

    async def _write_in(self, project: Path, row: Listing, unspoken: bool) -> None:
        if row.deleted:
            await asyncio.to_thread(remove_file, project, row.id)
        elif row.message_count:
            state = await self._directory.whole(row.id)
            if state.last_turn is None and not unspoken:
                return  # Imported or branched, and nobody has gone on with it: a project is not strewn with copies.
            messages = [await with_whole_texts(message, self._log.blobs) for message in state.messages]
            await asyncio.to_thread(
                write_file, project, replace(state, messages=tuple(messages)), f".{row.id[:64]}.{self._ids.new()}"
            )


class ForeignFile(Exception):
    """What lies there is not this conversation's."""


_OF_ANOTHER = "{} is not the trajectory of this conversation; it is left as it is."


def is_a_place(project: Path, never_in: Sequence[Path]) -> bool:
    """A folder of its own: neither a person's home nor the server's data, and nothing that holds one of them."""
    resolved = project.resolve()
    holds_one = any(folder.is_relative_to(resolved) for folder in never_in)
    return resolved.is_dir() and not holds_one and not lies_in_data(resolved)


# -- files; all of this runs beside the loop


def write_file(project: Path, state: State, temporary: str) -> bool:
    """False: it says all of it already. Raises OSError, or ForeignFile when the file is somebody else's."""
    name = f"{state.conversation}.json"
    with open_place(project, PLACE, make=True) as folder:
        known = _read(folder, name)
        before = _document(known, name) or {}
        if known is not None and before.get("id") != state.conversation:
            raise ForeignFile(_OF_ANOTHER.format(name))
        document = document_of(state, unknown_keys(before))
        keep_message_keys(document, before)
        body = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
        if body == known:
            return False
        replace_in(folder, name, temporary, body)
    return True


def _check(project: Path, conversation: str) -> None:
    name = f"{conversation}.json"
    with suppress(FileNotFoundError, NotADirectoryError), open_place(project, PLACE) as folder:
        before = _document(_read(folder, name), name)
        if before is not None and before.get("id") != conversation:
            raise ForeignFile(_OF_ANOTHER.format(name))


def remove_file(project: Path, conversation: str) -> None:
    name = f"{conversation}.json"
    with suppress(FileNotFoundError, NotADirectoryError), open_place(project, PLACE) as folder:
        before = _document(_read(folder, name), name)
        if before is not None and before.get("id") == conversation:
            os.unlink(name, dir_fd=folder)


@contextmanager
def open_place(project: Path, place: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """The folder as a descriptor, reached without following a link that somebody put into the project or in its place."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        with open_folder(project) as root:
            folder = os.open(".", flags, dir_fd=root)
    except CallerError as refusal:
        raise NotADirectoryError(errno.ENOTDIR, refusal.message) from refusal
    made = False
    try:
        for name in place:
            _refuse_data(folder)
            made = make and _make_folder(folder, name)
            inner = os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        _refuse_data(folder)
        if made:
            # What was said to an agent is not for the repository, unless somebody wants it there.
            replace_in(folder, ".gitignore", ".gitignore.new", b"*\n")
        yield folder
    finally:
        os.close(folder)


def _refuse_data(folder: int) -> None:
    """A project of an earlier release, or a link that was put in its place, may lead to a server's own data."""
    if lies_in_data(folder):
        raise NotADirectoryError(errno.ENOTDIR, "This is a data directory, which is no project.")


def _make_folder(folder: int, name: str) -> bool:
    try:
        os.mkdir(name, 0o755, dir_fd=folder)
    except FileExistsError:
        return False
    return True


def _read(folder: int, name: str) -> bytes | None:
    """None: there is no such file. Raises ForeignFile for what is none of ours."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > FILE_BYTES:
            raise ForeignFile(f"{name} is no trajectory; it is left as it is.")
        return file.read(FILE_BYTES)


def _document(body: bytes | None, name: str) -> dict[str, Any] | None:
    if body is None:
        return None
    try:
        document = decode_document(body)
    except Invalid:
        raise ForeignFile(f"{name} cannot be read; it is left as it is.") from None
    if not isinstance(document, dict):
        raise ForeignFile(f"{name} is no trajectory; it is left as it is.")
    return document


def replace_in(folder: int, name: str, temporary: str, body: bytes, mode: int = 0o600) -> None:
    """Whole or not at all, whenever the power fails."""
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            os.fchmod(handle, mode)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise


# -- reading what is there, for faces that list it


class Kept(Struct, frozen=True, kw_only=True):
    """A trajectory on disk, as much as a list needs of it."""

    id: str
    title: str = ""
    model: str | None = None
    created_at: Any = None
    updated_at: Any = None
    messages: list[Any] = []


def trajectories_in(project: Path, place: Sequence[str] = PLACE) -> list[Kept]:
    """Those beside a project, by name; what is no trajectory is passed over."""
    found: list[Kept] = []
    with suppress(OSError), open_place(project.resolve(), place) as folder:
        for name in sorted(entry.name for entry in os.scandir(folder)):
            if name.endswith(".json") and not name.startswith("."):
                with suppress(OSError, ForeignFile, msgspec.ValidationError):
                    found.append(msgspec.convert(_document(_read(folder, name), name), Kept))
    return found


def trajectory_in(project: Path, trajectory: str, place: Sequence[str] = PLACE) -> dict[str, Any] | None:
    """The document of that id, if there is one that says so itself."""
    with suppress(ForeignFile):
        return read_trajectory(project, trajectory, place)
    return None


def read_trajectory(project: Path, trajectory: str, place: Sequence[str] = PLACE) -> dict[str, Any] | None:
    """The document of that id, if there is one. Raises ForeignFile for a file of its name that is something else."""
    if "/" in trajectory or trajectory.startswith("."):
        return None
    with suppress(OSError), open_place(project.resolve(), place) as folder:
        name = f"{trajectory}.json"
        document = _document(_read(folder, name), name)
        if document is not None and document.get("id") != trajectory:
            raise ForeignFile(_OF_ANOTHER.format(name))
        return document
    return None
