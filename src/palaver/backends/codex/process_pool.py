"""One program for all conversations: the first turn starts it, the last one lets it idle, and one that died is replaced.

Between the backend and `Programs`, which keeps one program a key and lends it to one user at a time: here many turns share
that one loan. Must never give out a program that has ended.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from palaver.backends.codex.process import AppServer
from palaver.backends.process import to_the_end
from palaver.backends.program_pool import Programs
from palaver.errors import TimedOut

LEAVE_S = 10.0
"""For the turns of a program that died to leave it: each ends at once with a failure."""


@dataclass(slots=True)
class _Loan:
    server: AppServer
    context: AbstractAsyncContextManager[AppServer]
    users: int = 0


class Shared:
    """The program under one key."""

    def __init__(
        self, programs: Programs[AppServer], key: str, start: Callable[[], AbstractAsyncContextManager[AppServer]]
    ) -> None:
        self._programs = programs
        self._key = key
        self._start = start
        self._loan: _Loan | None = None
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def use(self) -> AsyncIterator[AppServer]:
        loan = await self._join()
        try:
            yield loan.server
        finally:
            # A loan that is not given back would keep the program for ever.
            await to_the_end(self._leave(loan))

    async def drop(self, server: AppServer) -> None:
        """End it, whoever else uses it: it no longer does what it is told."""
        if self._loan is not None and self._loan.server is server:
            await self._programs.drop(self._key)

    async def _join(self) -> _Loan:
        async with self._changed:
            if self._loan is not None and not self._loan.server.alive:
                await self._until_left()
            if self._loan is None:
                context = self._programs.use(self._key, self._start, lambda _: True)
                self._loan = _Loan(await context.__aenter__(), context)
            self._loan.users += 1
            return self._loan

    async def _until_left(self) -> None:
        try:
            async with asyncio.timeout(LEAVE_S):
                await self._changed.wait_for(lambda: self._loan is None or self._loan.server.alive)
        except TimeoutError:
            raise TimedOut("Codex ended and is still being cleared away. Try again.") from None

    async def _leave(self, loan: _Loan) -> None:
        async with self._changed:
            loan.users -= 1
            if loan.users == 0:
                self._loan = None
                await loan.context.__aexit__(None, None, None)
            self._changed.notify_all()
