"""A whole conversation layer in memory, and an agent on strings: the test says what it yields, and when."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palaver.backends.base import Backend, Capabilities, Turn
from palaver.clock import Clock, Ids, ManualClock
from palaver.conversation.directory import Directory
from palaver.conversation.folders import ProjectFolders
from palaver.conversation.services import Surroundings
from palaver.core.decide.facts import Runner
from palaver.errors import AgentError
from palaver.feed.feed import Feed
from palaver.log.base import EventLog
from palaver.log.memory import MemoryLog
from palaver.schema.commands import Accepted, Command, CreateConversation
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    KnownEvent,
    TextDelta,
    TextFinished,
    TurnFinished,
    decode_event,
)
from palaver.schema.records import AgentRecord
from palaver.schema.view import State

WAIT_S = 10.0
"""Every wait of a test ends by then; none is expected to come near it."""

STEERABLE = Capabilities(resume=True, steer=True)

Script = Callable[[Turn], AsyncIterator[KnownEvent]]


@dataclass
class Puppet:
    """A backend whose turns are generators that the test wrote."""

    scripts: list[Script] = field(default_factory=list[Script])
    name: str = "puppet"
    capabilities: Capabilities = STEERABLE
    turns: list[str] = field(default_factory=list[str])
    ended: list[str] = field(default_factory=list[str])

    async def run(self, turn: Turn) -> AsyncIterator[KnownEvent]:
        self.turns.append(turn.id)
        script = self.scripts.pop(0) if self.scripts else says("ok")
        try:
            async for event in script(turn):
                yield event
        finally:
            self.ended.append(turn.id)

    async def close(self) -> None:
        pass


def says(text: str) -> Script:
    async def script(turn: Turn) -> AsyncIterator[KnownEvent]:
        for event in answer(turn, text):
            yield event
        yield TurnFinished(outcome="completed")

    return script


def says_until(gate: asyncio.Event, text: str, started: asyncio.Event | None = None) -> Script:
    """Half an answer, then nothing until the gate opens: a turn that is surely running."""

    async def script(turn: Turn) -> AsyncIterator[KnownEvent]:
        message = turn.new_id()
        yield AnswerStarted(message=message)
        yield TextDelta(message=message, block=0, text=text)
        await turn.committed()
        if started:
            started.set()
        await gate.wait()
        yield TextFinished(message=message, block=0, text=text)
        yield AnswerFinished(message=message, finish_reason="stop")
        yield TurnFinished(outcome="completed")

    return script


def answer(turn: Turn, text: str) -> list[KnownEvent]:
    message = turn.new_id()
    return [
        AnswerStarted(message=message),
        TextDelta(message=message, block=0, text=text),
        TextFinished(message=message, block=0, text=text),
        AnswerFinished(message=message, finish_reason="stop"),
    ]


@dataclass
class OneAgent:
    """A roster of one."""

    puppet: Puppet
    missing: AgentError | None = None
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    """The agent's own, in every record."""

    def agent(self, agent: str, project: str | None = None) -> AgentRecord | None:
        if agent not in ("default", "other"):
            return None
        return AgentRecord(id=agent, name=agent, backend="puppet", params=self.params)

    def why_not(self, agent: str, project: str | None = None) -> str:
        return f"No agent is called “{agent}”."

    def backend(self, record: AgentRecord) -> Backend:
        if self.missing:
            raise self.missing
        return self.puppet

    def runner(self, record: AgentRecord, params: Mapping[str, Any]) -> Runner:
        return Runner(agent=record.id, backend="puppet", resumable=True, steerable=True)


@dataclass
class House:
    log: EventLog
    feed: Feed
    directory: Directory
    puppet: Puppet
    clock: Clock
    roster: OneAgent

    async def begin(self) -> str:
        return (await self.directory.create(CreateConversation(), None)).conversation

    async def do(self, conversation: str, command: Command) -> Accepted:
        return await asyncio.wait_for(self.directory.command(conversation, command, None), WAIT_S)

    async def events(self, conversation: str) -> list[Any]:
        found: list[Any] = []
        cursor = 0
        while segments := await self.log.read(conversation, cursor):
            for segment in segments:
                found.extend(event for line in segment.body.splitlines() if (event := decode_event(line)).seq > cursor)
            cursor = segments[-1].last
        return found

    async def until(self, conversation: str, holds: Callable[[State], bool]) -> State:
        """The view once it satisfies a condition, seen through the feed like any client sees it."""

        async def watch() -> State:
            async for _ in self.feed.subscribe(conversation, None):
                state = await self.directory.state(conversation)
                if holds(state):
                    return state
            raise AssertionError("a feed never ends")

        return await asyncio.wait_for(watch(), WAIT_S)

    async def at_rest(self, conversation: str) -> State:
        return await self.until(conversation, lambda state: state.turn is None and not state.queue)


def anywhere(home: str = "/usr") -> ProjectFolders:
    """Any folder that a person chooses; there is no data directory to keep apart."""
    return ProjectFolders(Path("/no/such/data"), Path(home))


@asynccontextmanager
async def open_house(
    log: EventLog | None = None, puppet: Puppet | None = None, clock: Clock | None = None
) -> AsyncIterator[House]:
    log, puppet, clock = log or MemoryLog(), puppet or Puppet(), clock or ManualClock()
    directory: Directory

    async def snapshot(conversation: str) -> tuple[int, bytes]:
        return await directory.snapshot(conversation)

    feed = Feed(log, clock, snapshot)
    roster = OneAgent(puppet)
    directory = Directory(Surroundings(log, feed, clock, Ids(clock), roster, anywhere()))
    async with directory.running():
        yield House(log, feed, directory, puppet, clock, roster)


async def soon(work: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(work, WAIT_S)
