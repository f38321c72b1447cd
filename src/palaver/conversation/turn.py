"""A running turn: the task that iterates a backend, and the handle the backend works with.

Started and cancelled by the owner of the conversation, to whom it hands every event. It decides nothing and stores
nothing. Cancelling the task is the stop: the backend's own clean-up then has `CLEANUP_S` to end what it started.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from msgspec.structs import replace

from palaver.backends.base import Backend
from palaver.backends.program_lookup import ProgramLookup
from palaver.clock import Clock, Ids
from palaver.context.quotes import Quoting
from palaver.conversation.peers import Others, Task
from palaver.conversation.turn_limits import TurnLimits
from palaver.errors import AgentError, LimitReached, LogError, PalaverError
from palaver.journal import Journal
from palaver.log.base import Blobs
from palaver.schema.base import BlobRef
from palaver.schema.errors import WireError
from palaver.schema.events import KnownEvent, RequestOpened, RequestResolved, TextFinished, TurnFinished
from palaver.schema.records import AgentRecord
from palaver.schema.view import Message, State
from palaver.tools.base import Letter, Passage, Reply, Report

CLEANUP_S = 5.0
"""How long a cancelled backend may take to end its processes before the conversation goes on without it."""

TEXT_EVENT_CHARS = 64_000
"""A finished text beyond this goes to a blob: an event may hold 256 KiB."""

logger = Journal(__name__)


class Owner(Protocol):
    """What a turn may ask of its conversation."""

    @property
    def state(self) -> State: ...
    async def record(self, turn: str, event: KnownEvent) -> None: ...
    async def recorded(self, turn: str) -> None: ...
    async def deliver(self, turn: str) -> Sequence[Message]: ...
    async def ask(self, turn: str, request: RequestOpened) -> RequestResolved: ...
    async def result_of(self, call: str) -> None: ...
    def ended(self, turn: str, error: WireError | None) -> None: ...
    async def recall(self, query: str, limit: int) -> Sequence[Passage]: ...
    def process_ended(self, process: str, exit_code: int | None, text: str) -> None: ...


@dataclass(slots=True)
class RunningTurn:
    """Implements `backends.base.Turn`."""

    id: str
    owner: Owner
    agent: AgentRecord
    project: Path
    clock: Clock
    ids: Ids
    blobs: Blobs
    others: Others
    quoting: Quoting
    programs: ProgramLookup
    earlier: Sequence[Message] = ()
    """Messages before those the owner keeps in memory, loaded when the turn begins."""
    limits: TurnLimits = field(init=False)

    def __post_init__(self) -> None:
        self.limits = TurnLimits(self.clock)

    @property
    def conversation(self) -> str:
        return self.owner.state.conversation

    @property
    def params(self) -> Mapping[str, Any]:
        return self.owner.state.params

    @property
    def state(self) -> State:
        state = self.owner.state
        if not self.earlier:
            return state
        return replace(state, messages=(*self.earlier, *state.messages), offset=0)

    @property
    def history(self) -> Sequence[Message]:
        return self.state.messages

    def new_id(self) -> str:
        return self.ids.new()

    def now_ms(self) -> int:
        return self.clock.now_ms()

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    async def committed(self) -> None:
        await self.owner.recorded(self.id)

    async def deliveries(self) -> Sequence[Message]:
        return await self.owner.deliver(self.id)

    async def request(self, request: RequestOpened) -> RequestResolved:
        return await self.owner.ask(self.id, replace(request, turn=self.id))

    async def result_of(self, call: str) -> None:
        await self.owner.result_of(call)

    async def store_blob(self, data: bytes, mime: str) -> BlobRef:
        return await self.blobs.put(data, mime)

    async def load_blob(self, blob: str) -> bytes | None:
        found = await self.blobs.get(blob)
        return found[0] if found else None

    async def search(self, query: str, limit: int) -> Sequence[Passage]:
        return await self.owner.recall(query, limit)

    async def process_ended(self, process: str, exit_code: int | None, text: str) -> None:
        self.owner.process_ended(process, exit_code, text)

    # -- other agents

    @property
    def agent_id(self) -> str:
        return self.agent.id

    @property
    def mode(self) -> str:
        """As the person, the conversation or the agent says, in this order."""
        active = self.owner.state.turn
        return (active.mode if active else None) or self.params.get("mode") or self.agent.mode or "ask"

    async def tell(self, *events: KnownEvent) -> None:
        for event in events:
            await self.record(event)
        await self.committed()

    async def record(self, event: KnownEvent) -> None:
        """Hand an event to the owner. Raises LimitReached instead when the turn has written its fill."""
        self.limits.take(event)
        await self.owner.record(self.id, await _fitting(replace(event, turn=self.id), self))

    async def delegate(self, agent: str | None, prompt: str, call: str) -> Report:
        return await self.others.delegate(self, Task(agent, prompt, call))

    async def write_to(self, letter: Letter, call: str) -> Reply:
        return await self.others.write(self, letter, call)


async def run_turn(
    turn: RunningTurn,
    backend: Callable[[], Backend],
    earlier: Callable[[State], Awaitable[Sequence[Message]]],
    after: "asyncio.Task[None] | None",
) -> None:
    """The life of one turn. Whatever happens, the owner is told that it ended, unless the owner itself cancelled it."""
    error: WireError | None = None
    try:
        if after is not None and not after.done():
            # The turn before may still be ending its processes; two must never work in one folder at once.
            await asyncio.wait({after}, timeout=CLEANUP_S)
        turn.earlier = await earlier(turn.owner.state)
        async with aclosing(cast(AsyncGenerator[KnownEvent, None], backend().run(turn))) as events:
            async for event in events:
                await turn.record(event)
    except LogError:
        return  # The owner met the same failure and settles the turn itself.
    except LimitReached as reached:
        # Its end is a result like any other; what is open is closed with it.
        limited = TurnFinished(turn=turn.id, outcome="limited", error=reached.wire())
        await turn.owner.record(turn.id, limited)
        return
    except AgentError as failure:
        error = failure.wire()
    except PalaverError as failure:
        logger.exception("turn failed", conversation=turn.conversation, turn=turn.id)
        error = failure.wire()
    except Exception:
        logger.exception("backend crashed", conversation=turn.conversation, turn=turn.id)
        error = WireError(
            code="internal",
            message="The agent's backend crashed. The server's log has the details; sending again may work.",
            retryable=True,
        )
    turn.owner.ended(turn.id, error)


async def _fitting(event: KnownEvent, turn: RunningTurn) -> KnownEvent:
    if isinstance(event, TextFinished) and len(event.text) > TEXT_EVENT_CHARS and event.blob is None:
        blob = await turn.store_blob(event.text.encode(), "text/plain; charset=utf-8")
        return replace(event, text=event.text[:TEXT_EVENT_CHARS], blob=blob)
    return event
