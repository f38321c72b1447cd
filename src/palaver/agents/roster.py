"""The agents of a server: who can be talked to, what runs each, and whether it is ready.

Implements `conversation.roster.Roster` for conversations and tells faces what to show. Backends come from `sources.py`,
made when first needed and closed with the server. Must never fail a message because an agent is not ready: that is the
turn's failure, said in the transcript.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from palaver.agents.watched import Watched
from palaver.backends.base import Backend, Capabilities, Readiness
from palaver.core.facts import Runner
from palaver.errors import AgentError, NotInstalled
from palaver.schema.base import Shown
from palaver.schema.records import AgentRecord

logger = structlog.get_logger(__name__)

READY = Readiness(True, "ready")


class AgentEntry(Shown):
    """An agent as a client is told of it. `note` says what it runs on, or what is missing and how to get it."""

    id: str
    name: str
    description: str
    backend: str
    model: str | None
    ready: bool
    note: str | None


@dataclass(frozen=True, slots=True)
class Source:
    """A backend that can be had. Asking whether it is ready costs little and starts nothing."""

    make: Callable[[], Backend]
    readiness: Callable[[AgentRecord], Readiness] = lambda _: READY
    model: str | None = None
    """What runs when neither the agent nor the conversation names one; None when only the service knows."""


class Roster:
    def __init__(
        self, records: Iterable[AgentRecord], sources: Mapping[str, Source], notes: Mapping[str, str] | None = None
    ) -> None:
        """`notes` by agent take the place of what their backends say of themselves."""
        self._records = {record.id: record for record in records}
        self._sources = sources
        self._notes = notes or {}
        self._made: dict[str, Watched] = {}

    @property
    def records(self) -> Sequence[AgentRecord]:
        return tuple(self._records.values())

    @property
    def sources(self) -> Mapping[str, Source]:
        return self._sources

    @property
    def watched(self) -> Mapping[str, Watched]:
        """The backends that somebody has asked for since the start."""
        return self._made

    def agent(self, agent: str, project: str | None = None) -> AgentRecord | None:
        return self._records.get(agent)

    def why_not(self, agent: str, project: str | None = None) -> str:
        return f"No agent is called “{agent}”: it was deleted, or never made. Choose another."

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

    def entries(self) -> Sequence[AgentEntry]:
        return [self._entry(record) for record in self._records.values()]

    def _entry(self, record: AgentRecord) -> AgentEntry:
        source = self._sources.get(record.backend)
        readiness = (
            source.readiness(record) if source else Readiness(False, f"There is no backend “{record.backend}” here.")
        )
        return AgentEntry(
            id=record.id,
            name=record.name,
            description=record.description,
            backend=record.backend,
            model=record.model or (source.model if source else None),
            ready=readiness.ready,
            note=self._notes.get(record.id) or " ".join(filter(None, (readiness.summary, readiness.fix))),
        )

    async def close(self) -> None:
        made, self._made = list(self._made.values()), {}
        for backend in made:
            try:
                await backend.close()
            except Exception:
                # The others must be closed too.
                logger.exception("a backend did not close", backend=backend.name)
