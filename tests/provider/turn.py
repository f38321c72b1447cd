"""A turn in memory: what a backend yields is numbered and folded as a conversation would, without a log.

As strict as the real one where it matters: the view is only what was committed, a request is opened once and answered
once, and the first resolution holds. A test drives a backend with `drive` and looks at `turn.events`, `turn.state`,
`turn.pauses_s`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from palaver.backends.base import Backend
from palaver.backends.program_lookup import ProgramLookup
from palaver.core.fold.evolve import fold
from palaver.core.settle import fail, finish, settle
from palaver.core.state import OPEN_TOOL, find_call, find_request
from palaver.errors import AgentError
from palaver.schema.base import BlobRef
from palaver.schema.content import Content, as_content
from palaver.schema.events import (
    ConversationCreated,
    ConversationUpdated,
    KnownEvent,
    MessageAdded,
    RequestOpened,
    RequestResolved,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from palaver.schema.records import AgentRecord
from palaver.schema.view import Message, Request, State, Trigger
from palaver.tools.base import Letter, Passage, Reply, Report
from tests.provider.programs import programs_outside
from tests.provider.quotes import QUOTING

E = TypeVar("E", bound=KnownEvent)

DRIVE_S = 30.0
"""A turn of a test that takes longer hangs, unless a program has to be started for it."""

Decide = Callable[[Request], RequestResolved | None]
"""Answers a request as it is opened; None leaves it open."""


def allow(request: Request) -> RequestResolved:
    return RequestResolved(request=request.id, status="answered", verdict="allow")


def allow_always(request: Request) -> RequestResolved:
    return RequestResolved(request=request.id, status="answered", verdict="allow", scope="conversation")


def deny(request: Request) -> RequestResolved:
    return RequestResolved(request=request.id, status="answered", verdict="deny", text="not now")


def leave_open(request: Request) -> None:
    return None


class MemoryTurn:
    """Implements `backends.base.Turn`. Given a `state`, goes on from it with a new turn."""

    def __init__(
        self,
        *said: str | Content,
        project: Path = Path("/nowhere"),
        agent: AgentRecord | None = None,
        params: Mapping[str, Any] | None = None,
        decide: Decide = leave_open,
        state: State | None = None,
        trigger: Trigger | None = None,
        blobs: Mapping[str, bytes] | None = None,
        limit_s: float = DRIVE_S,
        programs: ProgramLookup | None = None,
    ) -> None:
        self.limit_s = limit_s
        self.quoting = QUOTING
        self.programs = programs or programs_outside(project)
        self.project = project
        self.agent = agent or AgentRecord(id="default", name="Default")
        self.events: list[KnownEvent] = []
        self.pauses_s: list[float] = []
        self.error: AgentError | None = None
        self.waited_for_seq = 0
        """Everything up to here was on disk when the backend last asked for that."""
        self.decide = decide
        self.blobs = dict(blobs or {})
        self.passages: list[Passage] = []
        self.processes_ended: list[tuple[str, int | None, str]] = []
        self.tasks: list[tuple[str | None, str, str]] = []
        self.letters: list[tuple[Letter, str]] = []
        self._state = state or State()
        self._ids = self._state.seq * 1000
        self.id = self.new_id()
        self._pending: list[KnownEvent] = []
        self._deliveries: list[str] = []
        self._waiters: dict[str, asyncio.Future[RequestResolved]] = {}
        self._opened = asyncio.Condition()
        self._grown = asyncio.Event()
        begin: list[KnownEvent] = [] if state else [ConversationCreated()]
        begin += [ConversationUpdated(params=dict(params))] if params else []
        begin += [MessageAdded(message=self.new_id(), content=as_content(text)) for text in said]
        begin.append(TurnStarted(agent="default", backend="api", trigger=trigger or Trigger(), resumable=True))
        self._append([replace(event, turn=self.id) for event in begin])
        self.events.clear()

    # -- the handle

    @property
    def conversation(self) -> str:
        return "conversation"

    @property
    def state(self) -> State:
        return self._state

    @property
    def params(self) -> Mapping[str, Any]:
        return self._state.params

    @property
    def history(self) -> Sequence[Message]:
        return self._state.messages

    def new_id(self) -> str:
        self._ids += 1
        return f"id-{self._ids}"

    def now_ms(self) -> int:
        return 1_760_000_000_000 + self._state.seq

    async def sleep(self, seconds: float) -> None:
        self.pauses_s.append(seconds)
        await asyncio.sleep(0)

    async def committed(self) -> None:
        await asyncio.sleep(0)
        self._commit()
        self.waited_for_seq = self._state.seq

    async def deliveries(self) -> Sequence[Message]:
        self._commit()
        texts, self._deliveries = self._deliveries, []
        added = [MessageAdded(turn=self.id, message=self.new_id(), content=as_content(text)) for text in texts]
        self._append(added)
        return self._state.messages[len(self._state.messages) - len(added) :]

    async def request(self, request: RequestOpened) -> RequestResolved:
        self._commit()
        known = find_request(self._state, request.request)
        if known is None:
            self._append([replace(request, turn=self.id)])
            known = find_request(self._state, request.request)
        assert known is not None
        if known.resolution is None and (answer := self.decide(known)):
            self._append([answer])
        known = find_request(self._state, request.request)
        assert known is not None
        if known.resolution is not None:
            return recorded(known)
        waiter = self._waiters.setdefault(known.id, asyncio.get_running_loop().create_future())
        async with self._opened:
            self._opened.notify_all()
        return await waiter

    async def result_of(self, call: str) -> None:
        async with asyncio.timeout(self.limit_s):
            while (known := find_call(self._state, call)) is not None and known.status in OPEN_TOOL:
                self._grown.clear()
                await self._grown.wait()

    async def store_blob(self, data: bytes, mime: str) -> BlobRef:
        name = sha256(data).hexdigest()
        self.blobs[name] = data
        return BlobRef(id=name, size=len(data), mime=mime)

    async def load_blob(self, blob: str) -> bytes | None:
        return self.blobs.get(blob)

    async def search(self, query: str, limit: int) -> Sequence[Passage]:
        return self.passages[:limit]

    async def process_ended(self, process: str, exit_code: int | None, text: str) -> None:
        self.processes_ended.append((process, exit_code, text))
        self._grown.set()

    async def delegate(self, agent: str | None, prompt: str, call: str) -> Report:
        self.tasks.append((agent, prompt, call))
        return Report(ok=True, text=f"Did: {prompt}", conversation=f"child-of-{call}")

    async def write_to(self, letter: Letter, call: str) -> Reply:
        self.letters.append((letter, call))
        return Reply(status="complete", response=f"Read: {letter.content}", conversation=f"other-of-{call}")

    # -- the test's side

    def accept(self, event: KnownEvent) -> None:
        """An event the backend yielded. It counts once it is committed, as in a log."""
        self._pending.append(replace(event, turn=self.id))
        if len(self._pending) == 1:
            asyncio.get_running_loop().call_soon(self._commit)

    def deliver(self, text: str) -> None:
        """Queued for the next boundary."""
        self._deliveries.append(text)

    async def opened(self, count: int) -> list[Request]:
        """Until so many requests are open."""

        def waiting() -> list[Request]:
            return [request for request in self._state.requests if request.status == "open"]

        async with asyncio.timeout(self.limit_s), self._opened:
            await self._opened.wait_for(lambda: len(waiting()) >= count)
        return waiting()

    async def seen(self, kind: type[KnownEvent]) -> None:
        """Until an event of that kind is committed."""
        await self.until(lambda: bool(self.of(kind)))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Until it is so: looked at whenever an event is committed or a process has ended."""
        async with asyncio.timeout(self.limit_s):
            while not condition():
                self._grown.clear()
                await self._grown.wait()

    def resolve(self, answer: RequestResolved) -> None:
        self._append([answer])

    def return_result(self, call: str, output: str) -> None:
        """What an editor sends back."""
        self._append([ToolFinished(turn=self.id, call=call, ok=True, output=output)])

    def fail(self, error: AgentError) -> None:
        self._commit()
        self.error = error
        self._append(fail(self._state, error.wire(), now=self.now_ms()))

    def interrupt(self) -> None:
        """What the conversation writes when a person stops the turn."""
        self._commit()
        self._append(settle(self._state, "user", now=self.now_ms()))

    def restart(self) -> State:
        """What a conversation looks like after the server died at this moment and came back."""
        self._commit()
        self._append(settle(self._state, "restart", now=self.now_ms()))
        return self._state

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def finished(self) -> TurnFinished:
        return self.of(TurnFinished)[-1]

    # -- the log's side

    def _commit(self) -> None:
        pending, self._pending = self._pending, []
        for event in pending:
            self._append(finish(self._state, event, now=self.now_ms()) if isinstance(event, TurnFinished) else [event])

    def _append(self, events: Sequence[KnownEvent]) -> None:
        numbered: list[KnownEvent] = []
        for at, event in enumerate(events, self._state.seq + 1):
            numbered.append(replace(event, seq=at, id=f"e{at}", ts=1_760_000_000_000 + at, conversation="conversation"))
        self.events += numbered
        self._grown.set()
        self._state = fold(self._state, numbered)
        for event in numbered:
            if isinstance(event, RequestResolved) and (waiter := self._waiters.pop(event.request, None)):
                known = find_request(self._state, event.request)
                if not waiter.done() and known is not None:
                    waiter.set_result(recorded(known))


def recorded(request: Request) -> RequestResolved:
    """The resolution that holds."""
    resolution = request.resolution
    assert resolution is not None
    return RequestResolved(
        request=request.id,
        status=resolution.status,
        verdict=resolution.verdict,
        then=resolution.then,
        scope=resolution.scope,
        offer=resolution.offer,
        answers=resolution.answers,
        text=resolution.text,
        input=resolution.input,
    )


async def drive(backend: Backend, turn: MemoryTurn) -> MemoryTurn:
    """The whole turn. A failure of the backend ends it as the conversation would; see `turn.error`."""
    try:
        async with asyncio.timeout(turn.limit_s):
            async with aclosing(cast(Any, backend.run(turn))) as events:
                async for event in events:
                    turn.accept(event)
    except AgentError as error:
        turn.fail(error)
    await turn.committed()
    return turn
