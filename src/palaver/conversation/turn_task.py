"""The task that runs a conversation's turn: begun and ended as the log says, never the other way round.

Held by the owner. At most one turn runs; the task of the one before may still be cleaning up, and the next waits for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from palaver.backends.base import Backend
from palaver.conversation.services import Surroundings
from palaver.conversation.turn import CLEANUP_S, Owner, RunningTurn, run_turn
from palaver.errors import NotInstalled, PalaverError
from palaver.schema.records import AgentRecord
from palaver.schema.view import Message, State

OlderMessages = Callable[[State], Awaitable[Sequence[Message]]]


class Running:
    def __init__(self, owner: Owner, around: Surroundings, older: OlderMessages) -> None:
        self._owner = owner
        self._around = around
        self._older = older
        self._active: tuple[str, asyncio.Task[None]] | None = None
        self._ending: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        return self._active is not None

    def agree_with(self, state: State, *, may_start: bool = True) -> None:
        """End what the log ended, start what it started."""
        wanted = state.turn
        if self._active is not None and (wanted is None or wanted.id != self._active[0]):
            self.end()
        if wanted is not None and self._active is None and may_start:
            folder = self._around.folder_of(state)
            run = self._run(wanted.id, wanted.agent, folder, self._ending)
            self._active, self._ending = (wanted.id, asyncio.create_task(run, name=f"turn {wanted.id}")), None

    def end(self) -> None:
        if self._active is not None:
            self._ending, self._active = self._active[1], None
            self._ending.cancel()

    async def calm(self) -> None:
        """Returns once all that the last turn started is gone, or its time for that is up."""
        if self._ending is not None and not self._ending.done():
            await asyncio.wait({self._ending}, timeout=CLEANUP_S)

    async def abandon(self) -> None:
        """Bounded: a backend that ignores its cancellation is left behind."""
        self.end()
        ending, self._ending = self._ending, None
        if ending is not None:
            ending.cancel()
            await asyncio.wait({ending}, timeout=CLEANUP_S)

    async def _run(self, turn: str, agent: str, folder: str, after: asyncio.Task[None] | None) -> None:
        try:
            held = await self._around.folders.enter(folder)
        except PalaverError as refusal:
            self._owner.ended(turn, refusal.wire())
            return
        with held:
            await self._run_in(held.path, turn, agent, folder, after)

    async def _run_in(
        self, project: Path, turn: str, agent: str, folder: str, after: asyncio.Task[None] | None
    ) -> None:
        record = self._around.roster.agent(agent, folder)
        known = record or AgentRecord(id=agent, name=agent, backend="none")
        running = RunningTurn(
            id=turn,
            owner=self._owner,
            agent=replace(known, params={**self._around.defaults.limits, **known.params}),
            project=project,
            clock=self._around.clock,
            ids=self._around.ids,
            blobs=self._around.log.blobs,
            others=self._around.others,
            quoting=self._around.quoting,
            programs=self._around.folders.programs,
        )

        def backend() -> Backend:
            if record is None:
                raise NotInstalled(self._around.roster.why_not(agent, folder))
            return self._around.roster.backend(record)

        await run_turn(running, backend, self._older, after)
