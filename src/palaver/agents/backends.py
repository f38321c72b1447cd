"""What runs agents here, as a person sees it: installed or not, which version, logged in or not, what to do, and what it runs.

Called by the native face and by `palaver doctor`. Looking costs little: files are read beside the loop, and a program that
does not keep its version in a file is asked for it once a minute at most. Nothing here starts a turn.

Agents that speak ACP are listed one by one: whether one is ready depends on the command in its record.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from palaver.agents.default_agents import NO_ACP_AGENT
from palaver.agents.recorded_backend import LastError
from palaver.agents.roster import Roster
from palaver.backends.base import Readiness
from palaver.backends.process import allowed_environment, spawn
from palaver.backends.program_lookup import lies_in, trusted_path
from palaver.backends.program_pool import Row, RunsPrograms
from palaver.clock import Clock
from palaver.errors import AgentError
from palaver.schema.base import Shown
from palaver.schema.records import AgentRecord

ACP = "acp"
TITLES = {
    "api": "Built-in agent",
    "local": "Small local model",
    "demo": "Demo",
    "claude": "Claude Code",
    "codex": "Codex",
    "pi": "Pi",
    ACP: NO_ACP_AGENT.name,
}
VERSION_S = 5.0
"""For a program to say its version: those written in JavaScript take a second or two on a busy machine."""
VERSION_KEPT_S = 60.0
"""A person who has just updated a program looks again within the minute."""

_NUMBER = re.compile(r"(?<!\d)\d++(?:\.\d++)++[\w.+-]*+")

Login = Literal["ok", "missing", "unknown"]


class BackendCapabilities(Shown):
    deltas: bool
    thinking: bool
    steer: bool
    approvals: bool
    resume: bool
    fork: bool
    images: bool
    usage: bool


class BackendEntry(Shown):
    """A backend as a client is told of it. `fix` says what to do when it is not ready; a `login` of null: it needs none, or
    is not installed. `last_error` is of the last turn that failed since the server started."""

    name: str
    title: str
    ready: bool
    installed: bool
    version: str | None
    summary: str
    fix: str | None
    login: Login | None
    capabilities: BackendCapabilities | None
    agents: tuple[str, ...]
    processes: int
    last_error: LastError | None


@dataclass(frozen=True, slots=True)
class RunningProgram:
    backend: str
    row: Row


class Backends:
    def __init__(
        self,
        roster: Roster,
        clock: Clock,
        environment: Mapping[str, str],
        project_folders: Callable[[], Sequence[Path]],
    ) -> None:
        """`environment` is the server's own; a program that is asked for its version sees what is allowed of it. One that
        lies in a project folder is not asked: agents can write there."""
        self._project_folders = project_folders
        self._roster = roster
        self._clock = clock
        self._environment = environment
        self._versions: dict[str, tuple[float, str | None]] = {}
        self._asking = asyncio.Lock()

    async def entries(self) -> list[BackendEntry]:
        """Every backend of the server, in the order in which it was set up."""
        return [await self._entry(name, *of) for name in self._roster.sources for of in self._of(name)]

    def programs(self) -> list[RunningProgram]:
        """Every program that runs for an agent."""
        return [RunningProgram(name, row) for name, runs in self._running() for row in runs.table()]

    async def let_go(self, pid: int) -> Literal["ended", "busy", "unknown"]:
        """End a program that no turn runs in."""
        for _, runs in self._running():
            for row in runs.table():
                if row.pid == pid:
                    return "ended" if await runs.let_go(row.conversation) else "busy"
        return "unknown"

    async def forget(self, conversation: str) -> None:
        """End the programs of a conversation that is gone, also one whose last turn is still leaving it."""
        for _, runs in self._running():
            if any(row.conversation == conversation and row.agent for row in runs.table()):
                await runs.let_go(conversation, even_busy=True)

    # -- one entry

    def _of(self, backend: str) -> Iterator[tuple[AgentRecord, tuple[AgentRecord, ...]]]:
        """Whom an entry is about, and who uses it."""
        users = tuple(record for record in self._roster.records if record.backend == backend)
        if backend == ACP and users:
            yield from ((user, (user,)) for user in users)
            return
        # A record may start its program in a way of its own; the entry is about the usual one.
        usual = next((user for user in users if not user.command), None)
        yield usual or AgentRecord(id=backend, name=TITLES.get(backend, backend), backend=backend), users

    async def _entry(self, backend: str, about: AgentRecord, users: tuple[AgentRecord, ...]) -> BackendEntry:
        # Readiness looks at files, and imports a program's module the first time.
        readiness = await asyncio.to_thread(self._roster.sources[backend].readiness, about)
        is_one_of_many = backend == ACP and bool(users)
        ids = tuple(user.id for user in users)
        rows = [one.row for one in self.programs() if one.backend == backend]
        return BackendEntry(
            name=f"{ACP}:{about.id}" if is_one_of_many else backend,
            title=about.name if is_one_of_many else TITLES.get(backend, backend),
            ready=readiness.ready,
            installed=_is_installed(backend, readiness),
            version=await self._version(readiness, about.environment),
            summary=readiness.summary,
            fix=readiness.fix,
            login=_login(backend, readiness),
            capabilities=self._capabilities(backend, about),
            agents=ids,
            processes=sum(row.agent in ids for row in rows) if is_one_of_many else len(rows),
            last_error=self._last_error(backend, ids),
        )

    def _capabilities(self, backend: str, about: AgentRecord) -> BackendCapabilities | None:
        try:
            found = self._roster.backend(about).capabilities
        except AgentError:
            return None
        return BackendCapabilities(**asdict(found))

    def _last_error(self, backend: str, agents: tuple[str, ...]) -> LastError | None:
        watched = self._roster.watched.get(backend)
        known = [error for agent, error in watched.errors.items() if agent in agents] if watched else []
        return max(known, key=lambda error: error.ts, default=None)

    def _running(self) -> Iterator[tuple[str, RunsPrograms]]:
        for name, watched in self._roster.watched.items():
            if isinstance(watched.made, RunsPrograms):
                yield name, watched.made

    # -- versions

    async def _version(self, readiness: Readiness, more: Mapping[str, str]) -> str | None:
        known, program = readiness.details.get("version"), readiness.details.get("ask_version")
        if isinstance(known, str) or not isinstance(program, str):
            return known if isinstance(known, str) else None
        folders = self._project_folders()
        if await asyncio.to_thread(lies_in, program, folders):
            return None
        # One at a time: a page that is opened twice must not start everything twice.
        async with self._asking:
            asked_s, version = self._versions.get(program, (None, None))
            now_s = self._clock.monotonic_s()
            if asked_s is None or now_s - asked_s >= VERSION_KEPT_S:
                environment = allowed_environment(self._environment, more)
                environment["PATH"] = await asyncio.to_thread(trusted_path, environment, folders)
                version = await _read_version(program, environment)
                self._versions[program] = (now_s, version)
            return version


async def _read_version(program: str, environment: Mapping[str, str]) -> str | None:
    try:
        async with (
            asyncio.timeout(VERSION_S),
            spawn([program, "--version"], cwd=Path("/"), environment=environment) as child,
        ):
            async for line in child.lines():
                if found := _NUMBER.search(line.decode(errors="replace")):
                    return found[0]
    except (TimeoutError, AgentError):
        pass
    return None


def _is_installed(backend: str, readiness: Readiness) -> bool:
    """What says nothing of it is part of Palaver, or not ready because it is not there."""
    known = readiness.details.get("installed")
    return bool(known) if known is not None else readiness.ready or backend == "api"


def _login(backend: str, readiness: Readiness) -> Login | None:
    known: Login | None = readiness.details.get("login")
    if known is None and backend == "api":
        return "ok" if readiness.ready else "missing"
    return known
