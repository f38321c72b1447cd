"""Which agent runs a turn, as a conversation sees it. The composition root supplies the real one."""

from collections.abc import Mapping
from typing import Any, Protocol

from palaver.backends.base import Backend
from palaver.core.decide.facts import Runner
from palaver.schema.records import AgentRecord


class Roster(Protocol):
    def agent(self, agent: str, project: str | None = None) -> AgentRecord | None:
        """As it is now. A folder has agents of its own, which work only there."""
        ...

    def why_not(self, agent: str, project: str | None = None) -> str:
        """Of one that cannot be had: gone, broken or not trusted, and what to do; one sentence or two."""
        ...

    def backend(self, record: AgentRecord) -> Backend:
        """What runs this agent. Raises an AgentError that says what is missing; the turn then fails with it."""
        ...

    def runner(self, record: AgentRecord, params: Mapping[str, Any]) -> Runner:
        """How a turn of this agent is announced. Never fails: a missing backend is the turn's failure, not the message's."""
        ...
