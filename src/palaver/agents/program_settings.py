"""Trust in a folder's settings for agent programs: listed, given and taken back by the owner.

Called by the native face. What each program reads is in `backends/project_settings.py`; which hashes were trusted is kept by
`trust.py`, which the backends ask before each turn.
"""

import asyncio
import os
from pathlib import Path

from palaver.agents.trust import Trust
from palaver.backends.project_settings import PROGRAMS, Found, ProgramSettings, find_settings, program_of
from palaver.backends.settings_summary import summary_of
from palaver.errors import Conflict, Invalid, NotFound
from palaver.schema.base import Shown
from palaver.schema.records import AgentRecord


class ProgramFolder(Shown):
    """What of a program's settings a folder holds. `hash` is null where there is too much to be read: it cannot be trusted."""

    program: str
    name: str
    paths: tuple[str, ...]
    hash: str | None
    trusted: bool
    summary: str = ""
    """What they would switch on, counted: “2 MCP servers, 1 hook”."""


class ReviewFile(Shown):
    """`text` is null for what is no text or too long to be shown; `sha256` is empty for what cannot be read. `link`: where
    it leads, when it is a link."""

    path: str
    size_bytes: int
    sha256: str
    text: str | None
    link: str | None


class ProgramReview(Shown):
    """Everything that `settings.hash` covers, read in the same pass: what is trusted is what was shown."""

    settings: ProgramFolder
    files: tuple[ReviewFile, ...]


class TrustedFolder(Shown):
    """A folder whose settings were trusted for a program. `holds` is false when they have changed since."""

    project: str
    program: str
    name: str
    holds: bool


class ProgramTrust:
    def __init__(self, trust: Trust | None = None, home: str | None = None) -> None:
        """`home` is the person's, whose files are the person's own. Without `trust` nothing can be trusted."""
        self._trust = trust
        self._home = home

    async def list(self, project: Path, agent: AgentRecord | None = None) -> tuple[ProgramFolder, ...]:
        """Every program, whether or not it finds anything there; with an agent, the one that runs it."""
        folder = await _real(project)
        own = program_of(agent) if agent else None
        programs = PROGRAMS.values() if agent is None else [own] if own else []
        return tuple([await self._row(folder, program) for program in programs])

    async def review(self, project: Path, program: str) -> ProgramReview:
        """All that a program would read there, to be looked at before it is trusted."""
        folder = await _real(project)
        known = _program(program)
        found = await asyncio.to_thread(find_settings, known, folder, self._home, hashed=True)
        files = tuple(
            ReviewFile(path=file.path, size_bytes=file.size_bytes, sha256=file.sha256, text=file.text, link=file.link)
            for file in found.files
        )
        return ProgramReview(settings=self._folder_info(folder, known, found), files=files)

    async def trusted(self) -> tuple[TrustedFolder, ...]:
        """Every folder that was trusted for a program, whether or not that still counts."""
        rows: list[TrustedFolder] = []
        for given in self._trust.programs() if self._trust is not None else ():
            if given.program in PROGRAMS:
                row = await self._row(Path(given.project), PROGRAMS[given.program])
                rows.append(TrustedFolder(project=given.project, program=row.program, name=row.name, holds=row.trusted))
        return tuple(sorted(rows, key=lambda row: (row.project, row.program)))

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
        return self._folder_info(folder, program, found)

    def _folder_info(self, folder: Path, program: ProgramSettings, found: Found) -> ProgramFolder:
        given = self._trust.program_hash(folder, program.id) if self._trust is not None else None
        return ProgramFolder(
            program=program.id,
            name=program.name,
            paths=found.paths,
            hash=found.hash,
            trusted=given is not None and given == found.hash,
            summary=summary_of(found.files),
        )


def _program(program: str) -> ProgramSettings:
    if program not in PROGRAMS:
        raise NotFound(f"There is no program {program}. Give one of: {', '.join(PROGRAMS)}.", program=program)
    return PROGRAMS[program]


async def _real(project: Path) -> Path:
    return Path(await asyncio.to_thread(os.path.realpath, project))
