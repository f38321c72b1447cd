"""Trust in a folder's settings for agent programs: listed, given and taken back by the owner.

Called by the native face. What each program reads is in `backends/project_settings.py`; which hashes were trusted is kept by
`trust.py`, which the backends ask before each turn.
"""

import asyncio
import os
from pathlib import Path

from palaver.agents.trust import Trust
from palaver.backends.project_settings import PROGRAMS, ProgramSettings, find_settings
from palaver.errors import Conflict, Invalid, NotFound
from palaver.schema.base import Shown


class ProgramFolder(Shown):
    """What of a program's settings a folder holds. `hash` is null where there is too much to be read: it cannot be trusted."""

    program: str
    name: str
    paths: tuple[str, ...]
    hash: str | None
    trusted: bool


class ProgramTrust:
    def __init__(self, trust: Trust | None = None, home: str | None = None) -> None:
        """`home` is the person's, whose files are the person's own. Without `trust` nothing can be trusted."""
        self._trust = trust
        self._home = home

    async def list(self, project: Path) -> tuple[ProgramFolder, ...]:
        """Every program, whether or not it finds anything there."""
        folder = await _real(project)
        return tuple([await self._row(folder, program) for program in PROGRAMS.values()])

    async def give(self, project: Path, program: str, hash: str) -> ProgramFolder:
        """Trust exactly what a person has looked at. Raises Conflict when it has changed since."""
        folder = await _real(project)
        known = _program(program)
        row = await self._row(folder, known)
        if row.hash is None or self._trust is None:
            raise Invalid(
                f"The settings of {known.name} in this folder are too large or cannot be read, so they cannot be trusted."
            )
        if row.hash != hash:
            raise Conflict(
                "These files have changed meanwhile. Look at them again before you trust them.", hash=row.hash
            )
        await self._trust.give_program(folder, known.id, hash)
        return await self._row(folder, known)

    async def take(self, project: Path, program: str) -> ProgramFolder:
        folder = await _real(project)
        known = _program(program)
        if self._trust is not None:
            await self._trust.take_program(folder, known.id)
        return await self._row(folder, known)

    async def _row(self, folder: Path, program: ProgramSettings) -> ProgramFolder:
        found = await asyncio.to_thread(find_settings, program, folder, self._home, hashed=True)
        given = self._trust.program_hash(folder, program.id) if self._trust is not None else None
        trusted = given is not None and given == found.hash
        return ProgramFolder(program=program.id, name=program.name, paths=found.paths, hash=found.hash, trusted=trusted)


def _program(program: str) -> ProgramSettings:
    if program not in PROGRAMS:
        raise NotFound(f"There is no program {program}. Give one of: {', '.join(PROGRAMS)}.", program=program)
    return PROGRAMS[program]


async def _real(project: Path) -> Path:
    return Path(await asyncio.to_thread(os.path.realpath, project))
