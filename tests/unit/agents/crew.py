"""Conversations in memory whose agents give each other tasks: what each does is said by the task it is given."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from palaver.agents.colleagues import Colleagues
from palaver.agents.delegation import Delegation
from palaver.agents.exchange import Exchanges
from palaver.agents.roster import Roster, Source
from palaver.backends.base import Capabilities, Turn
from palaver.clock import Ids, ManualClock
from palaver.conversation.directory import Directory
from palaver.conversation.services import Surroundings
from palaver.feed.feed import Feed
from palaver.log.base import EventLog
from palaver.log.memory import MemoryLog
from palaver.schema.commands import Accepted, CreateConversation, Order
from palaver.schema.events import KnownEvent, TurnFinished
from palaver.schema.records import AgentRecord
from palaver.schema.view import State, TextBlock
from palaver.tools.base import Report
from tests.unit.conversation.house import STEERABLE, WAIT_S, House, OneAgent, Puppet, Script, answer, anywhere, says


@dataclass
class Player:
    """A backend whose turns do what the script for their message says."""

    scripts: dict[str, Script] = field(default_factory=dict[str, Script])
    name: str = "player"
    capabilities: Capabilities = STEERABLE
    running: set[str] = field(default_factory=set[str])
    """Conversations at work."""
    at_rest: asyncio.Event = field(default_factory=asyncio.Event)
    """None is."""

    async def run(self, turn: Turn) -> AsyncIterator[KnownEvent]:
        said = [block.text for block in turn.history[-1].blocks if isinstance(block, TextBlock)][-1]
        self.running.add(turn.conversation)
        self.at_rest.clear()
        try:
            async for event in self.scripts.get(said, says("ok"))(turn):
                yield event
        finally:
            self.running.discard(turn.conversation)
            if not self.running:
                self.at_rest.set()

    async def close(self) -> None:
        pass


NOBODY = OneAgent(Puppet())
"""The agents of a plain house, of whom nobody is asked here."""


def delegates(*tasks: tuple[str | None, str], reports: list[Report] | None = None) -> Script:
    """Gives all the tasks at once, and says what came of them."""

    async def script(turn: Turn) -> AsyncIterator[KnownEvent]:
        calls = [turn.delegate(agent, prompt, f"call-{place}") for place, (agent, prompt) in enumerate(tasks)]
        came = await asyncio.gather(*calls)
        if reports is not None:
            reports.extend(came)
        for event in answer(turn, " | ".join(report.text for report in came)):
            yield event
        yield TurnFinished(outcome="completed")

    return script


def never(started: asyncio.Event) -> Script:
    async def script(turn: Turn) -> AsyncIterator[KnownEvent]:
        started.set()
        await asyncio.Event().wait()
        yield TurnFinished(outcome="completed")

    return script


@dataclass
class Crew(House):
    player: Player

    async def begin_with(self, text: str, **params: Any) -> str:
        body = CreateConversation(project="/usr/share", params=params, message=text)
        return (await asyncio.wait_for(self.directory.create(body, None), WAIT_S)).conversation

    async def order(self, conversation: str, order: Order) -> Accepted:
        return await asyncio.wait_for(self.directory.command(conversation, order, None), WAIT_S)

    async def child_of(self, conversation: str, holds: Callable[[State], bool] = lambda _: True) -> str:
        """The first subagent, once there is one and the view is as wanted."""
        state = await self.until(conversation, lambda state: bool(state.subagents) and holds(state))
        return state.subagents[0].conversation


@asynccontextmanager
async def open_crew(
    *agents: AgentRecord, log: EventLog | None = None, scripts: dict[str, Script] | None = None
) -> AsyncIterator[Crew]:
    log, clock = log or MemoryLog(), ManualClock()
    player, ids = Player(scripts or {}), Ids(clock)
    records = [AgentRecord(id="default", name="default"), *agents]
    roster = Roster([replace(record, backend="player") for record in records], {"player": Source(lambda: player)})
    feed = Feed(log, clock, lambda conversation: directory.snapshot(conversation))  # noqa: PLW0108
    colleagues = Colleagues(lambda: delegation, lambda: exchanges)
    around = Surroundings(log, feed, clock, ids, roster, anywhere(), others=colleagues)
    directory = Directory(around)
    delegation = Delegation(directory, roster, ids)
    exchanges = Exchanges(directory, log, clock, ids, roster)
    async with directory.running():
        yield Crew(log, feed, directory, NOBODY.puppet, clock, NOBODY, player)
