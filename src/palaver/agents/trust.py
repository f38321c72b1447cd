"""Which agents of projects a person has trusted, each bound to the hash of its file: one small file in the data directory.

Asked by the book for every use of such an agent, written when an owner says so. A file that cannot be read trusts nobody,
says so, and is set aside rather than written over. Must never lie where an agent's tools can write.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from palaver.errors import LogUnavailable
from palaver.journal import Journal
from palaver.tools.whole import Stamp, replace_file, stamp_of

logger = Journal(__name__)


class Trusted(Struct, frozen=True, kw_only=True):
    project: str
    """The folder, free of links."""
    agent: str
    hash: str


class _File(Struct, frozen=True, kw_only=True):
    version: int = 1
    agents: tuple[Trusted, ...] = ()


class Trust:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: Stamp | None = None
        self._known: tuple[Trusted, ...] = ()
        self._writing = asyncio.Lock()
        self.problem: str | None = None
        """Why the file cannot be read, and what to do about it."""

    def covers(self, project: Path, agent: str, hash: str) -> bool:
        return Trusted(project=str(project), agent=agent, hash=hash) in self._all()

    async def give(self, project: Path, agent: str, hash: str) -> None:
        """On disk when it returns. Raises LogUnavailable when it cannot be kept."""
        given = Trusted(project=str(project), agent=agent, hash=hash)
        await self._change(lambda known: (*_but(known, project, agent), given))

    async def take(self, project: Path, agent: str) -> None:
        await self._change(lambda known: _but(known, project, agent))

    async def _change(self, change: Callable[[tuple[Trusted, ...]], tuple[Trusted, ...]]) -> None:
        async with self._writing:
            known = change(self._all())
            try:
                await asyncio.to_thread(self._write, known)
            except OSError as failure:
                raise LogUnavailable(f"{self._path} cannot be written: {failure.strerror or failure}.") from failure
            self._stamp, self._known, self.problem = stamp_of(self._path), known, None

    def _all(self) -> tuple[Trusted, ...]:
        stamp = stamp_of(self._path)
        if stamp != self._stamp:
            self._stamp, self._known = stamp, self._read()
        return self._known

    def _read(self) -> tuple[Trusted, ...]:
        self.problem = None
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_File).agents
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as failure:
            self.problem = (
                f"{self._path} cannot be read ({failure}), so no project's agent is trusted. Mend or remove it."
            )
            logger.warning("trust cannot be read; no project's agent is trusted", reason=self.problem)
            return ()

    def _write(self, agents: tuple[Trusted, ...]) -> None:
        if self.problem is not None:
            with suppress(FileNotFoundError):
                self._path.replace(self._path.with_suffix(".damaged"))
        replace_file(self._path, msgspec.json.format(msgspec.json.encode(_File(agents=agents)), indent=2) + b"\n")


def _but(known: tuple[Trusted, ...], project: Path, agent: str) -> tuple[Trusted, ...]:
    return tuple(one for one in known if (one.project, one.agent) != (str(project), agent))
