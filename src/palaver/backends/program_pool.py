"""Programs that serve conversations: at most one live one each, kept between turns, let go when nobody talks to it.

Used by the backends that drive other programs. A backend says how to start its program and whether a live one still fits;
here is who runs, since when and for whom, which a person sees in the process table. Each is held by a task of its own, so it
may be started in one turn and ended in another. Losing a program loses nothing: the next turn starts it again and resumes.

Must never run two programs for one conversation, or leave one running when `close` returns.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

from palaver.clock import Clock
from palaver.journal import Journal

IDLE_S = 600.0
"""A program holds 100 to 600 MB and starts in under a second (opencode in five): ten minutes is long enough to think."""
SWEEP_S = 30.0
END_S = 10.0
"""For a program to end: the stop ladder of `process.py` takes two seconds."""

logger = Journal(__name__)


class Program(Protocol):
    """What a backend keeps running. Ended by leaving the context it was started in."""

    @property
    def pid(self) -> int | None: ...

    @property
    def alive(self) -> bool:
        """It can take another turn."""
        ...

    @property
    def started_as(self) -> str:
        """What was started, in a word or two. No more of its command line: that may hold keys and instructions."""
        ...

    async def has_background_work(self) -> bool:
        """Something that it started is still at work, and would end with it."""
        ...


P = TypeVar("P", bound=Program)
Start = Callable[[], AbstractAsyncContextManager[P]]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the process table."""

    conversation: str
    pid: int | None
    started_ms: int
    busy: bool
    idle_s: float
    command: str = ""
    agent: str | None = None
    """Whose turn started it. None: any may use it."""


@runtime_checkable
class RunsPrograms(Protocol):
    """A backend whose work is done by processes. One without them need not say so."""

    def table(self) -> Sequence[Row]: ...

    async def let_go(self, conversation: str, *, even_busy: bool = False) -> bool:
        """End the program under this name in the table unless a turn runs in it. Whether it is not there any more."""
        ...


@dataclass(slots=True)
class _Held(Generic[P]):
    program: P
    task: "asyncio.Task[None]"
    letting_go: asyncio.Event
    started_ms: int
    used_s: float
    agent: str | None
    users: int = 0


class Programs(Generic[P]):
    def __init__(self, name: str, clock: Clock, idle_s: float = IDLE_S) -> None:
        self._name = name
        self._clock = clock
        self._idle_s = idle_s
        self._held: dict[str, _Held[P]] = {}
        self._starting: dict[str, asyncio.Lock] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self._closed = False

    @asynccontextmanager
    async def use(
        self, conversation: str, start: Start[P], fits: Callable[[P], bool], agent: str | None = None
    ) -> AsyncIterator[P]:
        """The program of a conversation for one turn: the live one when it fits, else a new one in its place."""
        # One at a time: a turn that was stopped may still be leaving when the next one comes.
        async with self._starting.setdefault(conversation, asyncio.Lock()):
            held = self._held.get(conversation)
            if held is not None and not (held.program.alive and fits(held.program)):
                await self._end(conversation)
                held = None
            if held is None:
                held = await self._start(conversation, start, agent)
            held.users += 1
            try:
                yield held.program
            finally:
                held.users -= 1
                held.used_s = self._clock.monotonic_s()
                if not held.program.alive:
                    await self._end(conversation)

    async def drop(self, conversation: str) -> None:
        """End the program of a conversation, whatever it does. Nothing happens when there is none."""
        await self._end(conversation)

    async def let_go(self, conversation: str, *, even_busy: bool = False) -> bool:
        """As `drop`, unless a turn runs in it. What it still does in the background ends with it."""
        held = self._held.get(conversation)
        if held is not None and held.users and not even_busy:
            return False
        await self._end(conversation)
        return True

    def table(self) -> list[Row]:
        now_s = self._clock.monotonic_s()
        return [
            Row(
                conversation,
                held.program.pid,
                held.started_ms,
                held.users > 0,
                0.0 if held.users else max(0.0, now_s - held.used_s),
                held.program.started_as,
                held.agent,
            )
            for conversation, held in self._held.items()
        ]

    async def let_idle_go(self) -> int:
        """End those that nobody has talked to for a while and that do nothing by themselves; answers how many went."""
        gone = 0
        for conversation, held in list(self._held.items()):
            if not self._is_idle(held) or await held.program.has_background_work():
                continue
            # A turn may have come while it was asked.
            if self._held.get(conversation) is held and self._is_idle(held):
                await self._end(conversation)
                gone += 1
        return gone

    async def close(self) -> None:
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.wait({self._sweeper})
        await asyncio.gather(*(self._end(conversation) for conversation in list(self._held)))
        # What somebody else was ending when they were cancelled: the program is not gone before it is gone.
        if self._ending:
            await asyncio.wait(self._ending)

    # -- how it works

    def _is_idle(self, held: _Held[P]) -> bool:
        return not held.users and self._clock.monotonic_s() - held.used_s >= self._idle_s

    async def _start(self, conversation: str, start: Start[P], agent: str | None) -> _Held[P]:
        if self._closed:
            raise RuntimeError("these programs are closed")
        ready: asyncio.Future[P] = asyncio.get_running_loop().create_future()
        letting_go = asyncio.Event()
        task = asyncio.create_task(_hold(start, ready, letting_go), name=f"{self._name} of {conversation}")
        try:
            program = await asyncio.shield(ready)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task}, timeout=END_S)
            raise
        now_s = self._clock.monotonic_s()
        held = self._held[conversation] = _Held(program, task, letting_go, self._clock.now_ms(), now_s, agent)
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep(), name=f"let idle {self._name} go")
        logger.debug("program started", program=self._name, conversation=conversation, pid=program.pid)
        return held

    async def _end(self, conversation: str) -> None:
        held = self._held.pop(conversation, None)
        if held is None:
            return
        ending = asyncio.create_task(self._let_go(held), name=f"end {self._name} of {conversation}")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        await asyncio.shield(ending)

    async def _let_go(self, held: _Held[P]) -> None:
        held.letting_go.set()
        _, left = await asyncio.wait({held.task}, timeout=END_S)
        if left:
            held.task.cancel()
            logger.warning("a program did not end in time", program=self._name, pid=held.program.pid)

    async def _sweep(self) -> None:
        while True:
            await self._clock.sleep(SWEEP_S)
            await self.let_idle_go()


async def _hold(start: Start[P], ready: "asyncio.Future[P]", letting_go: asyncio.Event) -> None:
    """Enters and leaves the program's context in one task, as it must be."""
    try:
        async with start() as program:
            if not ready.done():
                ready.set_result(program)
            await letting_go.wait()
    except BaseException as failure:
        if ready.done():
            logger.exception("a program failed while it ended")
        else:
            ready.set_exception(failure if isinstance(failure, Exception) else asyncio.CancelledError())
        if not isinstance(failure, Exception):
            raise
