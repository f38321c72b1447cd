"""What people allowed for an agent or a project, until they take it back: one small file in the data directory.

Written when a request is answered so, read again by every turn, listed and shortened by faces. It lies outside every
folder that tools may write to, is readable by its owner alone, and is replaced as a whole: a crash leaves the old or the
new one. A file that cannot be read allows nothing, says so, and is set aside rather than written over.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from palaver.approval.policy import Grant, Rule, grants_of_record
from palaver.errors import LogUnavailable
from palaver.journal import Journal
from palaver.regular_file import read_regular
from palaver.schema.base import Decision, Scope, Shown
from palaver.schema.records import AgentRecord
from palaver.tools.files.atomic_file import Stamp, replace_file, stamp_of

KEEP = 1_000
"""More than anybody gives by hand; beyond it the oldest is asked for again."""

logger = Journal(__name__)

AllowedTools = Callable[[AgentRecord, Path], Sequence[str]]
"""What an agent's record allows at this moment, in a folder."""


class StandingGrant(Shown):
    """A yes that outlives its conversation. `match` as in a rule; absent: every call of the tool."""

    id: str
    tool: str
    scope: Scope
    match: str | None = None
    decision: Decision = "allow"
    agent: str | None = None
    project: str | None = None
    """The folder it holds in, and beneath."""
    ts: int = 0
    conversation: str | None = None
    request: str | None = None
    by: str | None = None
    """Whose token answered."""
    in_record: bool = False
    """It counts through the agent's `allowed_tools` alone; this says who put the tool there, and when."""


class _File(Struct, frozen=True, kw_only=True):
    version: int = 1
    grants: tuple[StandingGrant, ...] = ()


class StandingGrants:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: Stamp | None = None
        self._known: tuple[StandingGrant, ...] = ()
        self._writing = asyncio.Lock()
        self.problem: str | None = None
        """Why the file cannot be read, and what to do about it."""
        self.records: AllowedTools = lambda agent, _: agent.allowed_tools
        """Where the records are at hand: what they say now, and not when a turn began."""

    def all(self) -> tuple[StandingGrant, ...]:
        """As the file is now, oldest first."""
        stamp = stamp_of(self._path)
        if stamp != self._stamp:
            self._stamp = stamp
            self._known = self._read()
        return self._known

    def allowed(self, agent: AgentRecord, project: Path) -> tuple[Grant, ...]:
        """All that counts for an agent's work in a folder: what people allowed, and its record's `allowed_tools`."""
        return (*self.of(agent.id, project), *grants_of_record(agent.id, self.records(agent, project)))

    def of(self, agent: str, project: Path) -> tuple[Grant, ...]:
        """What people allowed for an agent's work in a folder."""
        # Free of links when the turn began: a link that stands there now must not choose whose grants count.
        return tuple(
            Rule(tool=known.tool, decision=known.decision, match=known.match, source=known.scope)
            for known in self.all()
            if known.scope in ("agent", "project") and not known.in_record and _counts(known, agent, project)
        )

    async def add(self, grant: StandingGrant) -> None:
        """On disk when it returns. Raises LogUnavailable when it cannot be kept."""

        def with_grant(known: tuple[StandingGrant, ...]) -> tuple[StandingGrant, ...]:
            return (*(one for one in known if _covers(one) != _covers(grant)), grant)[-KEEP:]

        await self._change(with_grant)

    def get(self, id: str) -> StandingGrant | None:
        return next((known for known in self.all() if known.id == id), None)

    async def remove(self, id: str) -> bool:
        """Whether there was one."""
        if self.get(id) is None:
            return False
        await self._change(lambda known: tuple(one for one in known if one.id != id))
        return True

    async def forget(self, agent: str) -> None:
        """Of an agent that is gone: another of its name must not inherit what was allowed for it."""

        def is_its(known: StandingGrant) -> bool:
            return known.scope == "agent" and known.agent == agent

        if any(is_its(known) for known in self.all()):
            await self._change(lambda known: tuple(one for one in known if not is_its(one)))

    async def take_back(self, tool: str, match: str | None, agent: str, project: Path) -> None:
        """Those that cover this for an agent's work in a folder, whoever gave them and where."""

        def covers(known: StandingGrant) -> bool:
            is_same = (known.tool, known.match, known.in_record) == (tool, match, False)
            return is_same and _counts(known, agent, project.resolve())

        if any(covers(known) for known in self.all()):
            await self._change(lambda known: tuple(one for one in known if not covers(one)))

    async def _change(self, change: Callable[[tuple[StandingGrant, ...]], tuple[StandingGrant, ...]]) -> None:
        async with self._writing:
            known = change(self.all())
            try:
                await asyncio.to_thread(self._write, known)
            except OSError as failure:
                raise LogUnavailable(f"{self._path} cannot be written: {failure.strerror or failure}.") from failure
            self._stamp, self._known, self.problem = stamp_of(self._path), known, None

    def _read(self) -> tuple[StandingGrant, ...]:
        self.problem = None
        try:
            return msgspec.json.decode(read_regular(self._path), type=_File).grants
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as failure:
            self.problem = (
                f"{self._path} cannot be read ({failure}), so nothing that was always allowed for an agent or a project "
                "counts. Mend the file or remove it."
            )
            logger.warning("standing grants cannot be read; everything is asked for again", reason=self.problem)
            return ()

    def _write(self, grants: tuple[StandingGrant, ...]) -> None:
        if self.problem is not None:
            with suppress(FileNotFoundError):
                self._path.replace(self._path.with_suffix(".damaged"))
        replace_file(self._path, msgspec.json.format(msgspec.json.encode(_File(grants=grants)), indent=2) + b"\n")


def _counts(grant: StandingGrant, agent: str, here: Path) -> bool:
    if grant.scope == "agent":
        return grant.agent == agent
    return grant.scope == "project" and grant.project is not None and here.is_relative_to(grant.project)


def _covers(grant: StandingGrant) -> tuple[str | bool | None, ...]:
    whose = grant.agent if grant.scope == "agent" else grant.project
    return (grant.tool, grant.match, grant.scope, whose, grant.in_record)
