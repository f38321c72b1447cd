"""Agents that write to each other, in memory: each does what its next script says, and a crash can be had after any commit."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palaver.agents.exchange import Exchanges
from palaver.backends.base import Backend, Turn
from palaver.clock import Ids, ManualClock
from palaver.conversation.directory import Directory
from palaver.conversation.peers import Caller, Task
from palaver.conversation.services import Surroundings
from palaver.core.decide.facts import Runner
from palaver.feed.feed import Feed
from palaver.log.base import Append, Appended, EventLog
from palaver.log.memory import MemoryLog
from palaver.schema.commands import CreateConversation, Order, SendMessage
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ExchangeReturned,
    KnownEvent,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    decode_event,
)
from palaver.schema.records import AgentRecord
from palaver.schema.view import Exchange, State
from palaver.tools.base import Letter, Reply, Report
from tests.unit.conversation.house import STEERABLE, WAIT_S, Script, answer, anywhere, says

HOME = "/usr"


@dataclass
class Players:
    """A backend of all agents: the next script of whoever's turn it is."""

    scripts: dict[str, list[Script]] = field(default_factory=lambda: defaultdict(list))
    name: str = "players"
    capabilities: Any = STEERABLE

    async def run(self, turn: Turn) -> AsyncIterator[KnownEvent]:
        waiting = self.scripts[turn.agent.id]
        script = waiting.pop(0) if waiting else says(f"{turn.agent.id} is here")
        async for event in script(turn):
            yield event

    async def close(self) -> None:
        pass


@dataclass
class Crew:
    players: Players
    records: Sequence[AgentRecord]

    def agent(self, agent: str, project: str | None = None) -> AgentRecord | None:
        return next((record for record in self.records if record.id == agent), None)

    def able(self, project: str | None = None) -> Sequence[AgentRecord]:
        return self.records

    def why_not(self, agent: str, project: str | None = None) -> str:
        return f"No agent is called “{agent}”."

    def backend(self, record: AgentRecord) -> Backend:
        return self.players

    def runner(self, record: AgentRecord, params: Mapping[str, Any]) -> Runner:
        return Runner(agent=record.id, backend="players", resumable=True, steerable=True)


class Colleagues:
    """Only letters: nobody is given a task here."""

    def __init__(self, exchanges: Callable[[], Exchanges]) -> None:
        self._exchanges = exchanges

    async def delegate(self, caller: Caller, task: Task) -> Report:
        raise NotImplementedError

    async def write(self, caller: Caller, letter: Letter, call: str) -> Reply:
        return await self._exchanges().write(caller, letter, call)

    def answered(self, conversation: str, exchange: Exchange, answer: ExchangeReturned) -> None:
        self._exchanges().answered(conversation, exchange, answer)


@dataclass
class Office:
    log: EventLog
    feed: Feed
    directory: Directory
    exchanges: Exchanges
    scripts: dict[str, list[Script]]
    clock: ManualClock

    async def begin(self, agent: str, **fields: Any) -> str:
        return (await self.directory.create(CreateConversation(agent=agent, **fields), None)).conversation

    async def do(self, conversation: str, order: Order) -> Any:
        return await asyncio.wait_for(self.directory.command(conversation, order, None), WAIT_S)

    async def say(self, conversation: str, text: str = "go") -> None:
        await self.do(conversation, SendMessage(content=text))

    async def ask(self, conversation: str, *scripts: Script) -> None:
        """A person speaks, and the conversation's agent does this."""
        agent = (await self.directory.state(conversation)).agent
        self.scripts[agent] += scripts
        await self.say(conversation)

    async def events(self, conversation: str) -> list[Any]:
        return await events_of(self.log, conversation)

    async def until(self, conversation: str, holds: Callable[[State], bool]) -> State:
        async def watch() -> State:
            async for _ in self.feed.subscribe(conversation, None):
                state = await self.directory.state(conversation)
                if holds(state):
                    return state
            raise AssertionError("a feed never ends")

        return await asyncio.wait_for(watch(), WAIT_S)

    async def at_rest(self, conversation: str, turns: int) -> State:
        """The view once so many turns have begun here and the last one is over."""

        async def watch() -> State:
            async for _ in self.feed.subscribe(conversation, None):
                state = await self.directory.state(conversation)
                begun = [event for event in await self.events(conversation) if isinstance(event, TurnStarted)]
                if len(begun) >= turns and state.turn is None and not state.queue:
                    return state
            raise AssertionError("a feed never ends")

        return await asyncio.wait_for(watch(), WAIT_S)

    async def at_work(self, agent: str, count: int) -> None:
        """Until an agent has so many conversations and says something in the last one."""
        async with asyncio.timeout(WAIT_S):
            while len(known := await self.conversations(agent)) < count:
                await self.clock.advance(0)
        await self.until(known[-1], lambda state: any(message.role == "assistant" for message in state.messages))

    async def in_time(self, work: Coroutine[None, None, State]) -> State:
        """The same, while minutes go by."""
        task = asyncio.create_task(work)
        while not task.done():
            await self.clock.advance(60)
        return task.result()

    async def conversations(self, agent: str) -> list[str]:
        rows = (await self.log.list(archived=None)).items
        return [row.id for row in reversed(rows) if row.agent == agent]


async def events_of(log: EventLog, conversation: str) -> list[Any]:
    found: list[Any] = []
    cursor = 0
    while segments := await log.read(conversation, cursor):
        found += [decode_event(line) for segment in segments for line in segment.body.splitlines()]
        cursor = segments[-1].last
    return found


@asynccontextmanager
async def open_office(
    log: EventLog | None = None, *records: AgentRecord, take_up: bool = True
) -> AsyncIterator[Office]:
    """Ada asks, Bea answers, unless a test says otherwise. Without `take_up` nobody looks after what a crash cut."""
    log, players, clock = log or MemoryLog(), Players(), ManualClock()
    directory: Directory
    exchanges: Exchanges

    async def snapshot(conversation: str) -> tuple[int, bytes]:
        return await directory.snapshot(conversation)

    feed = Feed(log, clock, snapshot)
    crew = Crew(players, records or [AgentRecord(id=name, name=name.title(), backend="p") for name in ("ada", "bea")])
    ids = Ids(clock)
    others = Colleagues(lambda: exchanges)
    directory = Directory(Surroundings(log, feed, clock, ids, crew, anywhere(HOME), others=others))
    exchanges = Exchanges(directory, log, clock, ids, crew)
    async with directory.running(), exchanges.running() if take_up else nullcontext():
        yield Office(log, feed, directory, exchanges, players.scripts, clock)


class Recorded(MemoryLog):
    """Remembers what a disk would hold after each commit."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self.commits = 0

    async def append(self, append: Append) -> Appended:
        done = await super().append(append)
        self.commits += 1
        await self.backup(self._folder / str(self.commits))
        return done

    def after(self, commit: int) -> MemoryLog:
        return MemoryLog.restore_from(self._folder / str(commit))


# -- what agents do


def writes(letter: Letter, replies: list[Reply] | None = None, call: str = "x") -> Script:
    """Calls `agents_message`, and says how it came out."""

    async def script(turn: Turn) -> AsyncIterator[KnownEvent]:
        message = turn.new_id()
        yield AnswerStarted(message=message)
        yield ToolCalled(message=message, block=0, call=call, name="agents_message", input={})
        yield AnswerFinished(message=message, finish_reason="tool_calls")
        yield ToolStarted(call=call, grant="reads_only")
        await turn.committed()
        reply = await turn.write_to(letter, call)
        if replies is not None:
            replies.append(reply)
        yield ToolFinished(call=call, ok=reply.status != "failed", output=reply.status)
        for event in answer(turn, f"{reply.status}: {reply.response}"):
            yield event
        yield TurnFinished(outcome="completed")

    return script


def to(agent: str = "bea", content: str = "What do you think?", **fields: Any) -> Letter:
    return Letter(agent=agent, content=content, **fields)
