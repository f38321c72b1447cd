"""Project folders: the one place that decides which folder a conversation may work in, and for whom.

Two rules. A project is never a server's data directory, nothing in one and nothing that contains ours: whoever reads the
token there may approve anything. And choosing a folder is a person's decision: a token without the right to decide (an
agent's) may use only what a person chose before, and what lies beneath it. What file tools never write in a project (`.git`,
`.palaver`) does not lie beneath it in this sense: as a project of its own it would be written without asking.

Asked by the directory for every conversation that begins, by every turn before it runs, and by routes before they read a
folder: a link may lead elsewhere by then, and logs of earlier releases name what they like. A turn holds the folder that it
entered (`tools/files/held_folder.py`), so that what is put in its place meanwhile is not taken for it. The file `folders.json`
of the data directory keeps what was chosen. Must never trust a name: folders are compared as the file system knows them, under
every name that a mount gives them.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from palaver.backends.program_lookup import ProgramLookup
from palaver.errors import Forbidden, Invalid, LogUnavailable, NotFound
from palaver.journal import Journal
from palaver.regular_file import read_regular
from palaver.schema.base import Origin
from palaver.tools.files.atomic_file import replace_file
from palaver.tools.files.held_folder import HeldFolder, Identity, hold_folder, identity_of
from palaver.tools.files.paths import DATA_MARK, ancestry, is_protected
from palaver.tools.shell.mounts import other_names

logger = Journal(__name__)

By = Literal["person", "history"]
"""Who chose a folder: a person, by name; or what was there before (conversations of earlier releases, imported ones),
which says where a conversation goes on and nothing about what else an agent may open."""


class ChosenFolder(Struct, frozen=True, kw_only=True):
    path: str
    """Free of links."""
    by: By = "person"


class _File(Struct, frozen=True, kw_only=True):
    version: int = 1
    folders: tuple[ChosenFolder, ...] = ()


class ProjectFolders:
    def __init__(self, data: Path, started_in: Path, *, path: Path | None = None) -> None:
        """`started_in`: where the server was started. Without a `path` choices are forgotten with the process."""
        self._data = data
        self._path = path
        self._chosen: dict[str, By] = {}
        self._writing = asyncio.Lock()
        self.needs_workspace = self._overlap(started_in) is not None
        """The server was started where no project may be, so conversations without one get a folder of their own."""
        self.home = data.with_name(f"{data.name}-workspace") if self.needs_workspace else started_in
        """The folder of a conversation without a project. The person who started the server chose it."""
        self.programs = ProgramLookup(self.chosen, data / "empty")
        """Programs outside all of these folders."""
        self.is_new = not self._read()
        """No file says what was chosen yet: `remember` is to be told what conversations have."""

    @property
    def data(self) -> Path:
        """The server's own folder, where no project may be: temporary files lie there too."""
        return self._data

    def chosen(self) -> tuple[Path, ...]:
        """Every folder that agents may work in now: what lies there is nothing that the server starts."""
        folders = (self.home, *map(Path, self._chosen))
        # An imported conversation may name what can be no project: `/` would leave no program at all.
        return tuple(folder for folder in folders if not self._data.is_relative_to(folder))

    # -- what was chosen

    async def remember(self, folders: Iterable[str]) -> None:
        """The folders that conversations of earlier releases have: they go on there."""
        found = await asyncio.to_thread(lambda: [_real(folder) for folder in folders])
        async with self._writing:
            await self._keep({**{str(folder): "history" for folder in found}, **self._chosen})

    async def choose(self, folder: str | None, origin: Origin | None) -> str:
        """The folder that somebody names for a conversation, or the one of those without a name; as `admit`, and Invalid for
        what is no folder."""
        folder = str(self.home) if folder is None else folder
        await self.open(folder, person=is_person(origin))
        await self.admit(folder, origin)
        return folder

    async def admit(self, folder: str, origin: Origin | None, *, by: By = "person") -> None:
        """The folder of a conversation that begins, which may be gone by now. A person's choice counts from now on.

        Raises Forbidden for what may be no project, or not for this token.
        """
        real = await asyncio.to_thread(self._admit, folder, is_person(origin))
        by = "person" if folder == str(self.home) else by
        # An agent's token comes here with what is chosen already, but for the folder that the server was started in.
        if not await asyncio.to_thread(self._is_kept, real, by):
            async with self._writing:
                await self._keep({**self._chosen, str(real): by})

    async def open(self, folder: str, *, person: bool) -> Path:
        """The real folder behind a name, for somebody who wants to read in it. Raises as `choose`."""
        return await asyncio.to_thread(self._open, folder, person)

    async def enter(self, folder: str) -> HeldFolder:
        """The folder of a conversation's project, right before a turn runs in it, which closes it. Raises Forbidden."""
        return await asyncio.to_thread(self._enter, folder)

    def check(self, folder: Path) -> None:
        """Raises Forbidden for what may be no project, whoever asks. Blocks; for callers beside the loop."""
        if why := self._overlap(folder):
            raise Forbidden(why, project=str(folder))

    # -- beside the loop

    def _open(self, folder: str, person: bool) -> Path:
        self._make_home(folder)
        self._admit(folder, person)
        return _folder_at(folder)

    def _admit(self, folder: str, person: bool) -> Path:
        real = _real(folder)
        # Before anything is said of what is there: a token that may not choose learns nothing of other folders.
        if not person and not self._is_chosen(real, for_agent=True):
            raise Forbidden(
                f"No person has chosen {folder} as a project yet, and this token may not choose one. Use a folder that a "
                "person has begun a conversation in, one beneath it, or none at all.",
                project=folder,
            )
        self.check(Path(folder))
        return real

    def _enter(self, folder: str) -> HeldFolder:
        self._make_home(folder)
        self.check(Path(folder))
        try:
            held = hold_folder(_folder_at(folder))
        except (Invalid, NotFound):
            raise Forbidden(
                f"The project folder {folder} is gone, so nothing was run. Put it back, or begin a conversation elsewhere.",
                project=folder,
            ) from None
        try:
            # Once more: the name may lead elsewhere since the first look.
            self.check(held.path)
            if not self._is_chosen(held.path, for_agent=False):
                raise Forbidden(
                    f"The project folder {folder} leads to {held.path} now, which no person has chosen, so nothing was run. "
                    "Put the folder back, or begin a conversation in the new one.",
                    project=folder,
                )
        except BaseException:
            held.close()
            raise
        return held

    def _is_chosen(self, real: Path, for_agent: bool) -> bool:
        """`for_agent`: so that an agent may open it, which takes more than that a conversation was there before."""
        return _covers(_real(str(self.home)), real) or any(
            by == "person" or not (for_agent and is_sensitive(place)) for place, by in self._covering(real)
        )

    def _is_kept(self, real: Path, by: By) -> bool:
        """Whether the file says as much of this folder, or of one that it lies in."""
        kept = {kept_by for _, kept_by in self._covering(real)}
        return "person" in kept or (by == "history" and bool(kept))

    def _covering(self, real: Path) -> list[tuple[Path, By]]:
        """What was chosen and stands for this folder too."""
        return [
            (place, self._chosen[str(place)])
            for place in (real, *real.parents)
            if str(place) in self._chosen and _covers(place, real)
        ]

    def _overlap(self, folder: Path) -> str | None:
        """Why a folder may be no project: it is, contains or lies in a data directory. None: it may, or it is not there."""
        real, data = _real(str(folder)), _real(str(self._data))
        inside = f"{folder} lies in the folder where Palaver keeps its token and its log"
        other = f"{folder} lies in the data directory of a Palaver server (the file {DATA_MARK} marks it)"
        elsewhere = "Choose another folder, or leave it out."
        if _is_same(folder, _identity_or_none(data)) or real == data:
            return f"{folder} is the folder where Palaver keeps its token and its log. {elsewhere}"
        for above in ancestry(folder):
            if above.identity == _identity_or_none(data):
                return f"{inside}. {elsewhere}"
            if above.is_marked:
                return f"{other}. {elsewhere}"
        if real.is_relative_to(data):
            return f"{inside}. {elsewhere}"
        # The data directory may not be there yet: then its nearest parent stands for it.
        there = next((known for known in (data, *data.parents) if known.is_dir()), data)
        if data.is_relative_to(real) or any(_is_same(folder, above.identity) for above in ancestry(there)):
            return (
                f"{folder} contains {self._data}, where Palaver keeps its token and its log. Choose a folder inside it "
                "that does not, or leave it out."
            )
        for name in other_names(data):
            if real.is_relative_to(name):
                return f"{inside}: {self._data} is mounted at {name} too. {elsewhere}"
            if name.is_relative_to(real):
                return (
                    f"{folder} contains {name}, where {self._data} is mounted too, the folder in which Palaver keeps its "
                    "token and its log. Unmount it, choose another folder, or leave it out."
                )
        return None

    def _make_home(self, folder: str) -> None:
        """At its first use."""
        if not self.needs_workspace or folder != str(self.home):
            return
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as failure:
            raise LogUnavailable(
                f"{self.home}, where conversations without a project work, cannot be made: "
                f"{failure.strerror or failure}. Start the server in another folder."
            ) from failure

    # -- the file

    def _read(self) -> bool:
        """Whether there was one that says something."""
        if self._path is None:
            return False
        try:
            known = msgspec.json.decode(read_regular(self._path), type=_File).folders
        except FileNotFoundError:
            return False
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as failure:
            logger.warning("chosen folders cannot be read; those of known conversations count", reason=str(failure))
            with suppress(OSError):
                self._path.replace(self._path.with_suffix(".damaged"))
            return False
        self._chosen = {one.path: one.by for one in known}
        return True

    async def _keep(self, chosen: dict[str, By]) -> None:
        """On disk when it returns. Raises LogUnavailable when it cannot be kept."""
        if self._path is not None:
            entries = tuple(ChosenFolder(path=path, by=by) for path, by in chosen.items())
            body = msgspec.json.format(msgspec.json.encode(_File(folders=entries)), indent=2) + b"\n"
            try:
                await asyncio.to_thread(replace_file, self._path, body)
            except OSError as failure:
                raise LogUnavailable(f"{self._path} cannot be written: {failure.strerror or failure}.") from failure
        self._chosen, self.is_new = chosen, False


def is_person(origin: Origin | None) -> bool:
    """Whether a person, or the server itself, asks; and no agent with a token of its own."""
    return origin is None or not origin.agent_token


def is_sensitive(folder: Path) -> bool:
    """A folder that opens a person's keys: the root and what is right beneath it, a home, a hidden folder."""
    homes = (_real("~"), Path("/root"), Path("/var/root"))
    is_home = folder in homes or folder.parent in (Path("/home"), Path("/Users"))
    return len(folder.parts) <= 2 or is_home or any(part.startswith(".") for part in folder.parts)


def _covers(chosen: Path, real: Path) -> bool:
    """Whether choosing one folder chooses another."""
    return real.is_relative_to(chosen) and not any(is_protected(name) for name in real.relative_to(chosen).parts)


# -- folders as the file system knows them


def _folder_at(folder: str) -> Path:
    path = Path(folder)
    with suppress(OSError, ValueError, RuntimeError):
        if path.is_absolute() and path.is_dir():
            return path.resolve()
    raise Invalid(f"`project`: {folder} is no folder on the server. Give the whole path of one.", project=folder)


def _real(folder: str) -> Path:
    path = Path(folder).expanduser()
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path  # A name that no file can have, or links in a circle: nothing is there.


def _is_same(folder: Path, identity: Identity | None) -> bool:
    return identity is not None and _identity_or_none(folder) == identity


def _identity_or_none(folder: Path) -> Identity | None:
    try:
        return identity_of(folder)
    except (OSError, ValueError):
        return None
