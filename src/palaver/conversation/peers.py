"""The other conversations of a server, as one of them sees them: whom its agent may give a task to or write to.

The composition root supplies the real one (`agents/colleagues.py`); a conversation calls it for its running turn, and
tells it when an exchange that was answered here has its answer on disk. Must never be waited for by an owner: only turns
wait for others.
"""

from dataclasses import dataclass
from typing import Protocol

from palaver.schema.events import ExchangeReturned, KnownEvent
from palaver.schema.records import AgentRecord
from palaver.schema.view import Exchange, State
from palaver.tools.base import Letter, Reply, Report


class Caller(Protocol):
    """The turn that asks: `conversation.turn.RunningTurn`."""

    @property
    def id(self) -> str: ...
    @property
    def state(self) -> State: ...
    @property
    def agent(self) -> AgentRecord: ...
    @property
    def agent_id(self) -> str: ...
    @property
    def mode(self) -> str: ...

    async def tell(self, *events: KnownEvent) -> None:
        """Events of the turn, on disk when it returns."""
        ...


@dataclass(frozen=True, slots=True)
class Task:
    """What a subagent shall do. `agent` absent: one like the caller."""

    agent: str | None
    prompt: str
    call: str


class Others(Protocol):
    async def delegate(self, caller: Caller, task: Task) -> Report:
        """Cancelled: the subagent and everything below it is stopped before the cancellation goes on."""
        ...

    async def write(self, caller: Caller, letter: Letter, call: str) -> Reply: ...

    def answered(self, conversation: str, exchange: Exchange, answer: ExchangeReturned) -> None:
        """The answer that this conversation gave is on disk; whoever asked can be told. Returns at once."""
        ...


class Alone:
    """A conversation without a server around it."""

    async def delegate(self, caller: Caller, task: Task) -> Report:
        return Report(ok=False, text="There are no other agents here.")

    async def write(self, caller: Caller, letter: Letter, call: str) -> Reply:
        return Reply(status="failed", response="There are no other agents here.")

    def answered(self, conversation: str, exchange: Exchange, answer: ExchangeReturned) -> None:
        pass
