"""Owner of asyncio tasks: whatever runs beside its starter is held here, and cancelled and awaited in one place.

Used wherever a task is started. A block holds its tasks with `async with TaskOwner() as tasks`; an object that starts tasks in
one method and ends them in another keeps an owner and closes it. A failed task fails nobody else: who needs its result awaits
it. Where the failure of one task must end the others, `asyncio.TaskGroup` is the right tool.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class TaskOwner:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def hold(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        """As `start`, for work whose result nobody awaits."""
        _ = self.start(work, name)

    def __len__(self) -> int:
        """How many run."""
        return len(self._tasks)

    async def wait(self) -> None:
        """Returns once none runs, however each of them ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Cancel all and return once they have ended."""
        self.cancel()
        await self.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


@asynccontextmanager
async def running(work: Coroutine[Any, Any, T], name: str) -> AsyncIterator[asyncio.Task[T]]:
    """Work that runs for the length of a block."""
    async with TaskOwner() as tasks:
        yield tasks.start(work, name)


async def wait_first(*waits: asyncio.Future[Any]) -> None:
    """Returns as soon as one of them is done. None is cancelled: that is their owner's part."""
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
