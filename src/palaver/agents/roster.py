"""The agents of a server: who can be talked to, what runs each, and whether it is ready.

Who they are is the book's affair, and may change at any moment. Implements `conversation.roster.Roster` for conversations
and tells faces what to show. Backends come from `sources.py`, made when first needed and closed with the server. Must never
fail a message because an agent is not ready: that is the turn's failure, said in the transcript.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaver.agents.catalog import Book, Known
from palaver.agents.catalog import Source as Origin
from palaver.agents.last_used import LastUsed
from palaver.agents.program_settings import ProgramTrust
from palaver.agents.recorded_backend import Watched
from palaver.backends.base import Backend, Capabilities, Readiness
from palaver.clock import Clock, SystemClock
from palaver.core.decide.facts import Runner
from palaver.errors import AgentError, NotInstalled
from palaver.journal import Journal
from palaver.schema.base import Shown
from palaver.schema.records import AgentRecord

logger = Journal(__name__)

READY = Readiness(True, "ready")
LOOK_S = 5.0
"""How long a look at an agent's program counts for what models are told: every call of a model asks, and a program that was
installed this very moment may be named in the next."""


class AgentEntry(Shown):
    """An agent as a client is told of it. `note` says what it runs on, or what is missing and how to get it; `problem` why
    its file cannot be used. A project's agent that is not trusted is trusted by its `hash`."""

    id: str
    name: str
    description: str
    backend: str
    model: str | None
    ready: bool
    note: str | None
    source: Origin
    editable: bool
    trusted: bool
    hash: str | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class Source:
    """A backend that can be had. Asking whether it is ready costs little and starts nothing."""

    make: Callable[[], Backend]
    readiness: Callable[[AgentRecord], Readiness] = lambda _: READY
    model: str | None = None
    """What runs when neither the agent nor the conversation names one; None when only the service knows."""
    modules: tuple[str, ...] = ()
    """What its first turn imports."""


@dataclass(frozen=True, slots=True)
class _Look:
    """Whether an agent could work when somebody looked."""

    record: AgentRecord | None
    at_s: float
    ready: bool


class Roster:
    def __init__(
        self,
        agents: Book | Iterable[AgentRecord],
        sources: Mapping[str, Source],
        notes: Mapping[str, str] | None = None,
        last_used: LastUsed | None = None,
        clock: Clock | None = None,
        program_settings: ProgramTrust | None = None,
    ) -> None:
        """`notes` by agent take the place of what their backends say of themselves."""
        self.program_settings = program_settings or ProgramTrust()
        self.book = agents if isinstance(agents, Book) else Book(agents)
        self.last_used = last_used or LastUsed()
        self._sources = sources
        self._notes = notes or {}
        self._made: dict[str, Watched] = {}
        self._clock = clock or SystemClock()
        self._looks: dict[str, _Look] = {}

    @property
    def records(self) -> Sequence[AgentRecord]:
        """Those that can be used everywhere."""
        return self.book.records

    @property
    def sources(self) -> Mapping[str, Source]:
        return self._sources

    @property
    def watched(self) -> Mapping[str, Watched]:
        """The backends that somebody has asked for since the start."""
        return self._made

    def agent(self, agent: str, project: str | None = None) -> AgentRecord | None:
        return self.book.agent(agent, _folder(project))

    def why_not(self, agent: str, project: str | None = None) -> str:
        return self.book.why_not(agent, _folder(project))

    def backend(self, record: AgentRecord) -> Backend:
        if record.backend not in self._made:
            source = self._sources.get(record.backend)
            if source is None:
                raise NotInstalled(
                    f"The agent “{record.name}” needs the backend “{record.backend}”, which this server does not have."
                )
            self._made[record.backend] = Watched(record.backend, source.make)
        return self._made[record.backend]

    def runner(self, record: AgentRecord, params: Mapping[str, Any]) -> Runner:
        try:
            can = self.backend(record).capabilities
        except AgentError:
            can = Capabilities()
        source = self._sources.get(record.backend)
        chosen = params.get("model")
        return Runner(
            agent=record.id,
            backend=record.backend,
            model=chosen if isinstance(chosen, str) else record.model or (source.model if source else None),
            resumable=can.resume,
            steerable=can.steer,
        )

    def entries(self, project: str | None = None) -> Sequence[AgentEntry]:
        """With a project, called beside the loop."""
        return [self.entry(known) for known in self.book.all(_folder(project))]

    def able(self, project: str | None = None) -> Sequence[AgentRecord]:
        """Those that can work, as of a moment ago."""
        known = self.book.all(_folder(project), trusted_only=True)
        return [record for one in known if (record := one.usable) and self._can(one)]

    def _can(self, known: Known) -> bool:
        now_s = self._clock.monotonic_s()
        look = self._looks.get(known.id)
        if look is None or look.record != known.usable or now_s - look.at_s >= LOOK_S:
            look = self._looks[known.id] = _Look(known.usable, now_s, self._readiness(known).ready)
        return look.ready

    def entry(self, known: Known) -> AgentEntry:
        record = known.record or AgentRecord(id=known.id, name=known.id, backend="none")
        source = self._sources.get(record.backend)
        readiness = self._readiness(known)
        return AgentEntry(
            id=known.id,
            name=record.name,
            description=record.description,
            backend=record.backend,
            model=record.model or (source.model if source else None),
            ready=readiness.ready,
            note=self._note(known) or readiness.in_words,
            source=known.source,
            editable=self.book.folder is not None and known.source != "project",
            trusted=known.trusted,
            hash=known.hash,
            problem=known.problem,
        )

    def _readiness(self, known: Known) -> Readiness:
        # Of one that may not be used nothing is looked at, not even whether its program is there.
        if (record := known.usable) is None:
            return Readiness(False, known.problem or "It cannot be used.")
        source = self._sources.get(record.backend)
        return source.readiness(record) if source else Readiness(False, f"There is no backend “{record.backend}” here.")

    def _note(self, known: Known) -> str | None:
        built_in = self.book.built_in.get(known.id)
        as_built_in = built_in and known.usable and built_in.backend == known.usable.backend
        return self._notes.get(known.id) if as_built_in else None

    def import_default(self) -> None:
        """What the default agent runs on, ahead of its first turn. Called in a thread, in a quiet moment."""
        record = self.agent("default")
        source = self._sources.get(record.backend) if record else None
        # What is missing is said by the first turn, to whoever wanted it.
        with suppress(ImportError):
            for module in source.modules if source else ():
                importlib.import_module(module)

    async def close(self) -> None:
        made, self._made = list(self._made.values()), {}
        for backend in made:
            try:
                await backend.close()
            except Exception:
                # The others must be closed too.
                logger.exception("a backend did not close", backend=backend.name)


def _folder(project: str | None) -> Path | None:
    return Path(project) if project else None
