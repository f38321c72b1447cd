"""A turn in memory: what a backend yields is numbered and folded at once, so a test can look at the view it makes.

Its clock never waits: a sleep moves time on. Requests are answered by a function, or stay open for ever.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from palaver.backends.base import Backend
from palaver.core.fold.evolve import evolve
from palaver.schema.base import BlobRef
from palaver.schema.content import Content, as_content
from palaver.schema.events import (
    ConversationCreated,
    EventBase,
    KnownEvent,
    MessageAdded,
    RequestOpened,
    RequestResolved,
    TurnStarted,
)
from palaver.schema.records import AgentRecord
from palaver.schema.view import Message, State, TextBlock, Trigger
from palaver.tools.base import Letter, Passage, Reply, Report
from tests.provider.programs import programs_outside
from tests.provider.quotes import QUOTING

WAIT_S = 60.0
"""Every wait of a test ends by then; none is expected to come near it."""

Decide = Callable[[RequestOpened], RequestResolved]
E = TypeVar("E", bound=EventBase)


class MemoryTurn:
    def __init__(
        self,
        text: str | Content = "Hello",
        *,
        agent: AgentRecord | None = None,
        decide: Decide | None = None,
        earlier: Sequence[Message] = (),
    ) -> None:
        self.id = "turn"
        self.conversation = "conversation"
        self.agent = agent or AgentRecord(id="tester", name="Tester", model="scripted-1")
        self.project = Path("/project")
        self.params: Mapping[str, Any] = {}
        self.state = State()
        self.quoting = QUOTING
        self.programs = programs_outside(self.project)
        self.events: list[KnownEvent] = []
        self.committed_counts: list[int] = []
        self.slept_s = 0.0
        self.opened = asyncio.Event()
        self._grown = asyncio.Event()
        self._decide = decide
        self._waiting: list[str] = []
        self._ids = 0
        self.record(ConversationCreated(agent=self.agent.id))
        self.state = replace(self.state, messages=tuple(earlier))
        self.record(MessageAdded(message=self.new_id(), content=as_content(text)))
        self.record(TurnStarted(agent=self.agent.id, backend="test", trigger=Trigger()))

    # -- what a backend sees

    @property
    def history(self) -> Sequence[Message]:
        return self.state.messages

    def new_id(self) -> str:
        self._ids += 1
        return f"id-{self._ids}"

    def now_ms(self) -> int:
        return 1_000_000 + round(self.slept_s * 1000)

    async def sleep(self, seconds: float) -> None:
        self.slept_s += seconds
        await asyncio.sleep(0)

    async def committed(self) -> None:
        self.committed_counts.append(len(self.events))

    async def deliveries(self) -> Sequence[Message]:
        waiting, self._waiting = self._waiting, []
        for text in waiting:
            self.record(MessageAdded(message=self.new_id(), content=as_content(text)))
        return self.history[len(self.history) - len(waiting) :]

    async def request(self, request: RequestOpened) -> RequestResolved:
        self.record(request)
        self.opened.set()
        if self._decide:
            resolved = self._decide(request)
        else:
            resolved = await asyncio.get_running_loop().create_future()
        self.record(resolved)
        return resolved

    async def result_of(self, call: str) -> None:
        raise AssertionError("no editor takes part here")

    async def store_blob(self, data: bytes, mime: str) -> BlobRef:
        return BlobRef(id="blob", size=len(data), mime=mime)

    async def load_blob(self, blob: str) -> bytes | None:
        return None

    async def search(self, query: str, limit: int) -> Sequence[Passage]:
        return []

    async def process_ended(self, process: str, exit_code: int | None, text: str) -> None:
        pass

    async def delegate(self, agent: str | None, prompt: str, call: str) -> Report:
        return Report(ok=False, text="There is nobody else.")

    async def write_to(self, letter: Letter, call: str) -> Reply:
        return Reply(status="failed", response="There is nobody else.")

    # -- what a test does

    def record(self, event: KnownEvent) -> None:
        self.events.append(
            replace(event, seq=len(self.events) + 1, ts=self.now_ms(), turn=self.id, conversation=self.conversation)
        )
        self.state = evolve(self.state, self.events[-1])
        self._grown.set()

    async def seen(self, kind: type[EventBase]) -> None:
        """Until an event of that kind is recorded."""
        async with asyncio.timeout(WAIT_S):
            while not self.of(kind):
                self._grown.clear()
                await self._grown.wait()

    def deliver(self, text: str) -> None:
        """The message joins the turn at its next boundary."""
        self._waiting.append(text)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def types(self) -> list[str]:
        """The types of what came after the turn's start, repeated deltas as one."""
        kinds = [str(type(event).__struct_config__.tag) for event in self.events[3:]]
        return [kind for at, kind in enumerate(kinds) if at == 0 or kind != kinds[at - 1] or not kind.endswith("delta")]

    @property
    def answer_text(self) -> str:
        return "\n".join(
            block.text
            for message in self.state.messages
            if message.role == "assistant"
            for block in message.blocks
            if isinstance(block, TextBlock)
        )


async def play(backend: Backend, turn: MemoryTurn) -> MemoryTurn:
    """Runs the turn to its end, as a conversation would."""
    async with asyncio.timeout(WAIT_S):
        async with aclosing(cast(AsyncGenerator[KnownEvent, None], backend.run(turn))) as events:
            async for event in events:
                turn.record(event)
    return turn


def allow(request: RequestOpened) -> RequestResolved:
    return RequestResolved(request=request.request, status="answered", verdict="allow")


def deny(request: RequestOpened) -> RequestResolved:
    return RequestResolved(request=request.request, status="answered", verdict="deny")
