"""Which agents of projects, and which settings of agent programs, a person has trusted: one small file in the data directory.

Each is bound to the hash of what was trusted. Asked by the book for every use of such an agent and by the backends for every
turn of a program, written when an owner says so. A file that cannot be read trusts nobody,
says so, and is set aside rather than written over. Must never lie where an agent's tools can write.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from palaver.errors import LogUnavailable
from palaver.journal import Journal
from palaver.regular_file import read_regular
from palaver.tools.files.atomic_file import Stamp, replace_file, stamp_of

logger = Journal(__name__)


class Trusted(Struct, frozen=True, kw_only=True):
    project: str
    """The folder, free of links."""
    agent: str
    hash: str


class TrustedProgram(Struct, frozen=True, kw_only=True):
    """The settings in a folder that a program reads."""

    project: str
    program: str
    hash: str


class _File(Struct, frozen=True, kw_only=True):
    version: int = 1
    agents: tuple[Trusted, ...] = ()
    programs: tuple[TrustedProgram, ...] = ()


class Trust:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: Stamp | None = None
        self._known = _File()
        self._writing = asyncio.Lock()
        self.problem: str | None = None
        """Why the file cannot be read, and what to do about it."""

    def covers(self, project: Path, agent: str, hash: str) -> bool:
        return Trusted(project=str(project), agent=agent, hash=hash) in self._all().agents

    async def give(self, project: Path, agent: str, hash: str) -> None:
        """On disk when it returns. Raises LogUnavailable when it cannot be kept."""
        given = Trusted(project=str(project), agent=agent, hash=hash)
        await self._change(lambda known: replace(known, agents=(*_but(known, project, agent), given)))

    async def take(self, project: Path, agent: str) -> None:
        await self._change(lambda known: replace(known, agents=_but(known, project, agent)))

    def program_hash(self, project: Path, program: str) -> str | None:
        """Implements `backends.project_settings.SettingsTrust`."""
        rows = self._all().programs
        return next((one.hash for one in rows if (one.project, one.program) == (str(project), program)), None)

    def programs(self) -> tuple[TrustedProgram, ...]:
        """All that was trusted of programs' settings."""
        return self._all().programs

    async def give_program(self, project: Path, program: str, hash: str) -> None:
        """As `give`, for the settings of a program."""
        given = TrustedProgram(project=str(project), program=program, hash=hash)
        await self._change(lambda known: replace(known, programs=(*_without(known, project, program), given)))

    async def take_program(self, project: Path, program: str) -> None:
        await self._change(lambda known: replace(known, programs=_without(known, project, program)))

    async def _change(self, change: Callable[[_File], _File]) -> None:
        async with self._writing:
            known = change(self._all())
            try:
                await asyncio.to_thread(self._write, known)
            except OSError as failure:
                raise LogUnavailable(f"{self._path} cannot be written: {failure.strerror or failure}.") from failure
            self._stamp, self._known, self.problem = stamp_of(self._path), known, None

    def _all(self) -> _File:
        stamp = stamp_of(self._path)
        if stamp != self._stamp:
            self._stamp, self._known = stamp, self._read()
        return self._known

    def _read(self) -> _File:
        self.problem = None
        try:
            return msgspec.json.decode(read_regular(self._path), type=_File)
        except FileNotFoundError:
            return _File()
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as failure:
            self.problem = (
                f"{self._path} cannot be read ({failure}), so nothing of a project is trusted. Mend or remove it."
            )
            logger.warning("trust cannot be read; nothing of a project is trusted", reason=self.problem)
            return _File()

    def _write(self, known: _File) -> None:
        if self.problem is not None:
            with suppress(FileNotFoundError):
                self._path.replace(self._path.with_suffix(".damaged"))
        replace_file(self._path, msgspec.json.format(msgspec.json.encode(known), indent=2) + b"\n")


def _without(known: _File, project: Path, program: str) -> tuple[TrustedProgram, ...]:
    return tuple(one for one in known.programs if (one.project, one.program) != (str(project), program))


def _but(known: _File, project: Path, agent: str) -> tuple[Trusted, ...]:
    return tuple(one for one in known.agents if (one.project, one.agent) != (str(project), agent))
